import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import wiki from '../../agents/wiki.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { outcomeOf } from '../support/outcome.ts'
import { truthful } from '../support/truthful.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { addAttachment, addPage, type FakeWiki, fakeWiki, SITE } from '../vendors/wiki.ts'

const actions = truthful(wiki).actions!
const settings = (url: string) => ({ ...ACCOUNT, base_url: url })

let site: FakeWiki
beforeEach(() => {
  site = fakeWiki()
})
afterEach(() => site[Symbol.dispose]())

const begin = (effect: Effect = 'read', more: { key?: string } = {}) =>
  testContext({
    agent: 'wiki',
    settings: settings(site.url),
    network: { allow: [], literalOrigins: [] },
    effect,
    ...more,
  })
const run = (action: string, entry: object, at: TestContext) =>
  actions[action]!.run(entry, at.context as AgentContext<never>)
const written = (at: TestContext, name: string) => readFileSync(join(phaseFolder(at), name), 'utf8')
const puts = () => site.seen.filter(({ method }) => method === 'PUT')

await testAgent({
  file: join(import.meta.dir, '../../agents/wiki.ts'),
  vendor() {
    const vendor = fakeWiki()
    addAttachment(vendor, 'log.txt', 'first')
    return vendor
  },
  settings: ({ url }) => settings(url),
  examples: {
    get_page: { entry: { name: 'p.md', ref: '131073' }, names: 'get page 131073', scope: 'read:page:confluence' },
    search: {
      entry: { name: 's.json', ref: 'type = page' },
      names: '[wiki.search] search',
      scope: 'search:confluence',
    },
    get_attachments: {
      entry: { name: 'a', ref: '131073' },
      request: /\/131073\/attachments$/,
      names: 'get attachments of page 131073',
      scope: 'read:attachment:confluence',
    },
    create_page: {
      entry: { name: 'p', ref: 'DOCS', title: 'New', file: 'p.md' },
      files: { 'p.md': 'hello' },
      names: 'create page "New" in DOCS',
      scope: 'write:page:confluence',
    },
    update_page: {
      entry: { name: 'p', ref: '131073', title: 'Runbook', file: 'p.md' },
      files: { 'p.md': 'hello' },
      names: 'update page 131073',
      scope: 'write:page:confluence',
    },
    add_attachment: {
      entry: { name: 'a', ref: '131073', file: 'report.txt' },
      files: { 'report.txt': 'all is well' },
      names: 'attach report.txt to page 131073',
      scope: 'write:attachment:confluence',
    },
  },
})

describe('reading', () => {
  test('a page, as Markdown, storage format or record', async () => {
    const at = begin()
    const { data } = await run('get_page', { name: 'page.md', ref: '131073' }, at)
    const url = `${site.url}/wiki/spaces/DOCS/pages/131073`
    expect(data).toEqual({ id: '131073', url, title: 'Runbook', version: 1 })
    expect(written(at, 'page.md')).toBe('# Steps\n\nTurn it **off**.\n')
    await run('get_page', { name: 'page.html', ref: '131073' }, at)
    expect(written(at, 'page.html')).toBe('<h1>Steps</h1><p>Turn it <strong>off</strong>.</p>')
    await run('get_page', { name: 'page.json', ref: '131073' }, at)
    expect(JSON.parse(written(at, 'page.json'))).toMatchObject({ id: '131073', spaceId: '65538' })
  })

  test('a site that is given with /wiki', async () => {
    const at = testContext({
      agent: 'wiki',
      settings: settings(`${site.url}/wiki/`),
      network: { allow: [], literalOrigins: [] },
    })
    expect((await run('get_page', { name: 'p', ref: '131073' }, at)).data).toMatchObject({ title: 'Runbook' })
  })

  test('a page that is not there', async () => {
    const error = await failureOf(run('get_page', { name: 'p', ref: '9' }, begin()))
    expect(error.code).toBe('not_found')
  })

  test.each([false, true])('a search over pages and up to the limit (by start: %p)', async byStart => {
    site.byStart = byStart
    const at = begin()
    const { data } = await run('search', { name: 's.json', ref: 'text ~ "a & b"', limit: 220 }, at)
    const { items, total, truncated } = data as { items: unknown[]; total: number; truncated: boolean }
    expect([items.length, total, truncated]).toEqual([220, 250, true])
    expect(items[219]).toEqual({
      id: '220',
      type: 'page',
      title: 'Page 220',
      url: `${site.url}/wiki/spaces/DOCS/pages/220`,
      last_modified: '2026-02-01T10:30:00.000Z',
    })
    expect(site.seen.map(({ query }) => query.get('cql'))).toEqual(Array(3).fill('text ~ "a & b"'))
    const file = JSON.parse(written(at, 's.json'))
    expect(file.items).toHaveLength(220)
    const all = await run('search', { name: 's.json', ref: 'x', limit: 250 }, at)
    expect(all.data).toMatchObject({ total: 250, truncated: false })
  })

  test('a search without results, and one that never ends', async () => {
    site.results = 0
    const { data } = await run('search', { name: 's', ref: 'x' }, begin())
    expect(data).toEqual({ items: [], total: 0, truncated: false })
    site.fail(
      /search$/,
      () => Response.json({ results: [], _links: { next: `/rest/api/search?cursor=${crypto.randomUUID()}` } }),
      { times: 1_000 },
    )
    expect((await failureOf(run('search', { name: 's', ref: 'x' }, begin()))).code).toBe('endless')
    expect(site.seen.length).toBeLessThan(50)
  })
})

describe('creating a page', () => {
  const create = async (entry: object, at: TestContext, file = 'page.md', text = '# Hi <there> & "you"\n') => {
    writeFileSync(join(at.workspace, file), text)
    return run('create_page', { name: 'p', ref: 'DOCS', title: 'New', file, ...entry }, at)
  }

  test('takes Markdown, storage format and a parent', async () => {
    const { data, external } = await create({ parent: 131073 }, begin('once'))
    const url = `${site.url}/wiki/spaces/DOCS/pages/131074`
    expect(data).toEqual({ id: '131074', url, title: 'New', version: 1 })
    expect(external).toEqual({ id: '131074', url })
    const page = site.pages.get('131074')!
    expect(page.parentId).toBe('131073')
    expect(page.body.storage.value).toStartWith('<h1>Hi &lt;there&gt; &amp; &quot;you&quot;</h1>')
    await create({ title: 'Raw' }, begin('once'), 'page.html', '<p>as <em>is</em></p>')
    expect(site.pages.get('131075')!.body.storage.value).toStartWith('<p>as <em>is</em></p>')
  })

  test('its marker is not seen when the page is read', async () => {
    await create({}, begin('once'), 'page.md', 'text\n')
    const at = begin()
    await run('get_page', { name: 'p.md', ref: '131074' }, at)
    expect(written(at, 'p.md')).toBe('text\n')
  })

  test('refusals say that nothing was written', async () => {
    expect(await failureOf(create({ ref: 'NONE' }, begin('once')))).toMatchObject({ code: 'not_found', sent: 'no' })
    const taken = await failureOf(create({ title: 'Runbook' }, begin('once')))
    expect(taken).toMatchObject({ code: 'rejected', sent: 'no', hint: expect.stringContaining('titles are unique') })
    expect(await failureOf(create({ parent: 1 }, begin('once')))).toMatchObject({ code: 'not_found', sent: 'no' })
    expect(await failureOf(create({}, begin('once'), 'e.md', ' '))).toMatchObject({ sent: 'no' })
    site.fail(/spaces$/, () => refusal(500, '', { 'retry-after': '0' }), { times: 4 })
    expect(await failureOf(create({}, begin('once')))).toMatchObject({ sent: 'no', retryable: true })
    site.fail(/^POST/, () => refusal(403))
    expect((await failureOf(create({}, begin('once')))).hint).toContain('write:page:confluence')
    expect(site.pages.size).toBe(1)
  })

  test('a page of the same title is not taken for ours', async () => {
    const at = begin('once')
    const find = () => actions.create_page!.find!({ ref: 'DOCS', title: 'New' }, at.context as never)
    expect(await find()).toBeNull()
    const other = addPage(site, { title: 'New', value: '<p>another</p>' })
    expect(await find()).toBeNull()
    site.pages.delete(other.id)
    await create({}, at)
    expect((await find())!.data).toMatchObject({ title: 'New', url: expect.stringContaining('/wiki/spaces/DOCS') })
  })

  test.each([
    ['was created', true],
    ['was not', false],
  ])('whose reply is lost and that %s is there once in the end', async (_, done) => {
    site.fail(/^POST/, () => refusal(504), { done })
    const phase = await outcomeOf({
      agent: wiki,
      name: 'wiki',
      settings: settings(site.url),
      files: { 'page.md': 'text' },
      phase: {
        action: 'create_page',
        retry: { attempts: 3, backoff: '1ms' },
        target_entries: [{ name: 'page', ref: 'DOCS', title: 'New', file: 'page.md' }],
      },
    })
    expect(phase).toMatchObject({ state: 'completed', data: { title: 'New', version: 1 } })
    expect([...site.pages.values()].filter(({ title }) => title === 'New')).toHaveLength(1)
  })
})

describe('updating a page', () => {
  const update = async (at: TestContext, ref = '131073') => {
    writeFileSync(join(at.workspace, 'page.md'), 'new text')
    return run('update_page', { name: 'p', ref, title: 'Runbook 2', file: 'page.md' }, at)
  }

  test('makes the next version', async () => {
    const { data } = await update(begin('idempotent'))
    expect(data).toMatchObject({ id: '131073', title: 'Runbook 2', version: 2 })
    expect(site.pages.get('131073')!.body.storage.value).toBe('<p>new text</p>')
  })

  test('once more when someone else was faster, and then no more', async () => {
    site.fail(/^PUT/, () => refusal(409, { message: 'conflict' }))
    expect((await update(begin('idempotent'))).data).toMatchObject({ version: 2 })
    site.fail(/^PUT/, () => refusal(409, { message: 'conflict' }), { times: 9 })
    const other = begin('idempotent', { key: 'another' })
    expect(await failureOf(update(other))).toMatchObject({ code: 'conflict', sent: 'no' })
    expect(puts()).toHaveLength(4)
  })

  test('makes one version though the reply is lost', async () => {
    site.fail(/^PUT/, () => refusal(503, '', { 'retry-after': '0' }), { done: true })
    expect((await update(begin('idempotent'))).data).toMatchObject({ version: 2 })
    expect((await update(begin('idempotent'))).data).toMatchObject({ version: 2 })
    expect(site.pages.get('131073')!.version.number).toBe(2)
  })

  test('that is in the trash does not bring it back', async () => {
    site.pages.get('131073')!.status = 'trashed'
    expect(await failureOf(update(begin('idempotent')))).toMatchObject({ code: 'invalid_state' })
    expect(puts()).toHaveLength(0)
  })

  test('that is not there is an error', async () => {
    expect((await failureOf(update(begin('idempotent'), '9'))).code).toBe('not_found')
  })
})

describe('people whom a page mentions', () => {
  const mention = (id: string) => `<ac:link><ri:user ri:account-id="${id}" /></ac:link>`
  const read = async (at: TestContext) => {
    const { id } = addPage(site, { title: 'People', value: `<p>${mention('5b1')} and ${mention('5b2')}</p>` })
    await run('get_page', { name: 'p.md', ref: id }, at)
    return written(at, 'p.md')
  }

  test('are shown by their names, where the account may see them', async () => {
    site.people = { '5b1': 'Ada Lovelace' }
    expect(await read(begin())).toBe('[@Ada Lovelace](accountid:5b1) and [@5b2](accountid:5b2)\n')
  })

  test('are shown by their ids when the token may not ask', async () => {
    site.fail(/users-bulk$/, () => refusal(403))
    const at = begin()
    expect(await read(at)).toBe('[@5b1](accountid:5b1) and [@5b2](accountid:5b2)\n')
    expect(at.lines.join()).toContain('read:user:confluence')
  })
})

describe('attachments', () => {
  const attach = async (content: string, options: Parameters<typeof testContext>[0] = {}, entry: object = {}) => {
    const at = testContext({
      ...{ agent: 'wiki', settings: settings(site.url), network: { allow: [], literalOrigins: [] } },
      ...{ effect: 'idempotent', ...options },
    })
    writeFileSync(join(at.workspace, 'report.txt'), content)
    return run('add_attachment', { name: 'a', ref: '131073', file: 'report.txt', ...entry }, at)
  }

  test('are downloaded over pages and up to the limit, or by name', async () => {
    for (let n = 1; n <= 120; n++) addAttachment(site, `file ${n}.txt`, `content ${n}`)
    const all = begin()
    const { data } = await run('get_attachments', { name: 'all', ref: '131073', limit: 200 }, all)
    expect(data).toMatchObject({ id: '131073', total: 120, truncated: false })
    const { items } = data as { items: { file: string }[] }
    expect(items.map(({ file }) => written(all, file))).toEqual(items.map((_, at) => `content ${at + 1}`))
    const some = await run('get_attachments', { name: 'all', ref: '131073', limit: 110 }, begin())
    expect(some.data).toMatchObject({ total: 110, truncated: true })
    const one = await run('get_attachments', { name: 'one', ref: '131073', filename: 'file 7.txt' }, begin())
    expect(one.data).toMatchObject({ total: 1, items: [{ filename: 'file 7.txt', size: 9, version: 1 }] })
  })

  test('of a page that is not there', async () => {
    const error = await failureOf(run('get_attachments', { name: 'all', ref: '9' }, begin()))
    expect(error).toMatchObject({ code: 'not_found', message: expect.stringContaining('page 9') })
  })

  test('are attached, and get a new version under the same name', async () => {
    const { data, external } = await attach('one', { key: 'first' })
    const url = `${site.url}/wiki/spaces/DOCS/pages/131073`
    expect(data).toMatchObject({ id: '131073', url, title: 'Runbook', filename: 'report.txt', size: 3 })
    expect(external).toEqual({ id: 'att70000', url })
    await attach('two', { key: 'second' })
    expect(site.attachments).toMatchObject([{ title: 'report.txt', content: 'two', version: { number: 2 } }])
    await attach('three', { key: 'second' }, { filename: 'other ü.txt' })
    expect(site.attachments.map(({ title }) => title)).toEqual(['report.txt', 'other ü.txt'])
  })

  test('get one version though the reply is lost', async () => {
    site.fail(/^PUT/, () => refusal(400), { done: true })
    expect(await failureOf(attach('one'))).toMatchObject({ code: 'rejected' })
    expect((await attach('one')).text).toContain('had the attachment already')
    expect(site.attachments).toMatchObject([{ version: { number: 1 } }])
  })
})

describe('through the gateway for tokens with scopes', () => {
  test('addresses are those that people open', async () => {
    const at = testContext({
      agent: 'wiki',
      settings: settings(`${site.url}/ex/confluence/8c5b-11`),
      network: { allow: [], literalOrigins: [] },
    })
    const page = await run('get_page', { name: 'p.md', ref: '131073' }, at)
    expect(page.data).toMatchObject({ url: `${SITE}/wiki/spaces/DOCS/pages/131073` })
    const found = await run('search', { name: 's.json', ref: 'x', limit: 1 }, at)
    expect(found.data).toMatchObject({ items: [{ url: `${SITE}/wiki/spaces/DOCS/pages/1` }] })
    writeFileSync(join(at.workspace, 'page.md'), 'text')
    const made = await run('create_page', { name: 'p', ref: 'DOCS', title: 'New', file: 'page.md' }, at)
    expect(made.external!.url).toBe(`${SITE}/wiki/spaces/DOCS/pages/131074`)
    expect(site.seen.every(({ path }) => path.startsWith('/ex/confluence/8c5b-11/wiki/'))).toBe(true)
  })
})
