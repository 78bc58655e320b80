import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import helpdesk from '../../agents/helpdesk.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { zendeskSite } from '../../lib/vendors/zendesk.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { truthful } from '../support/truthful.ts'
import { ACCOUNT, addComment, type FakeHelpdesk, fakeHelpdesk } from '../vendors/helpdesk.ts'

const actions = truthful(helpdesk).actions!
const settings = (url: string) => ({ ...ACCOUNT, base_url: url })

let zendesk: FakeHelpdesk
beforeEach(() => {
  zendesk = fakeHelpdesk()
})
afterEach(() => zendesk[Symbol.dispose]())

const begin = (effect: Effect = 'read') =>
  testContext({
    agent: 'helpdesk',
    settings: settings(zendesk.url),
    network: { allow: [], literalOrigins: [] },
    effect,
  })
const run = (action: string, entry: object, at: TestContext) =>
  actions[action]!.run(entry, at.context as AgentContext<never>)
const written = (at: TestContext, name: string) => JSON.parse(readFileSync(join(phaseFolder(at), name), 'utf8'))
const lastBody = () => zendesk.seen.at(-1)!.body

const subject = await testAgent({
  file: join(import.meta.dir, '../../agents/helpdesk.ts'),
  vendor() {
    const vendor = fakeHelpdesk()
    addComment(vendor, 'one')
    return vendor
  },
  settings: vendor => settings(vendor.url),
  examples: {
    get_ticket: { entry: { name: 't.json', ref: '35436' }, names: 'get ticket 35436' },
    get_comments: { entry: { name: 'c.json', ref: '35436' }, names: 'get comments of ticket 35436' },
    search: { entry: { name: 's.json', ref: 'printer' }, names: '[helpdesk.search] search' },
    add_comment: {
      entry: { name: 'c', ref: '35436', file: 'c.md' },
      files: { 'c.md': 'hello' },
      names: 'comment on ticket 35436',
    },
    update_status: { entry: { name: 's', ref: '35436', status: 'solved' }, names: 'set the status of ticket 35436' },
  },
})

describe('reading', () => {
  test('a ticket', async () => {
    const at = begin()
    const { data } = await run('get_ticket', { name: 't.json', ref: '35436' }, at)
    const url = `${zendesk.url}/agent/tickets/35436`
    expect(data).toEqual({ id: 35436, url, status: 'open', subject: 'Printer on fire' })
    expect(written(at, 't.json')).toEqual(zendesk.ticket)
  })

  test('a ticket that is not there', async () => {
    expect((await failureOf(run('get_ticket', { name: 't', ref: '1' }, begin()))).code).toBe('not_found')
  })

  test('comments, over pages and up to the limit', async () => {
    for (let n = 1; n <= 230; n++) addComment(zendesk, `comment ${n} 🎉`)
    const all = begin()
    const { data } = await run('get_comments', { name: 'c.json', ref: '35436', limit: 500 }, all)
    expect(data).toMatchObject({ total: 230, truncated: false })
    const file = written(all, 'c.json')
    expect(file.items.map((item: { body: string }) => item.body)).toEqual(zendesk.comments.map(({ body }) => body))
    expect(file).toMatchObject({ total: 230, truncated: false })
    expect(zendesk.seen.filter(({ path }) => path.endsWith('/comments'))).toHaveLength(3)
    const some = await run('get_comments', { name: 'c.json', ref: '35436' }, begin())
    expect(some.data).toMatchObject({ truncated: true })
    expect((some.data as { items: unknown[] }).items).toHaveLength(100)
  })

  test('a search sends the query as it is and says what it left out', async () => {
    const at = begin()
    const query = 'status:open "a & b" ü'
    const { data } = await run('search', { name: 's.json', ref: query, limit: 120 }, at)
    const { items, total, truncated } = data as { items: unknown[]; total: number; truncated: boolean }
    expect([items.length, total, truncated]).toEqual([120, 250, true])
    const url = `${zendesk.url}/agent/tickets/1`
    expect(items[0]).toEqual({ id: 1, url, status: 'open', subject: 'Ticket 1' })
    expect(items[1]).toEqual({
      id: 2,
      url: `${zendesk.url}/api/v2/things/2.json`,
      status: null,
      type: 'user',
      name: 'A user',
    })
    expect(written(at, 's.json').items[0].description).toContain('long')
    expect(zendesk.seen[0]!.query.get('query')).toBe(query)
  })

  test('a search ends where the vendor ends it', async () => {
    zendesk.results = 1_500
    const { data } = await run('search', { name: 's', ref: 'x', limit: 10_000 }, begin())
    const { items, total, truncated } = data as { items: unknown[]; total: number; truncated: boolean }
    expect([items.length, total, truncated]).toEqual([1_000, 1_500, true])
  })
})

describe('more than a search gives', () => {
  test('is exported, where the query names one type', async () => {
    zendesk.results = 2_345
    const at = begin()
    const { data } = await run('search', { name: 's', ref: 'type:ticket status:open', limit: 2_200 }, at)
    const file = written(at, 's')
    expect(file).toMatchObject({ total: 2_345, truncated: true })
    expect(file.items.map(({ id }: { id: number }) => id)).toEqual(Array.from({ length: 2_200 }, (_, n) => n + 1))
    expect(data).toMatchObject({ total: 2_345, truncated: true })
    const all = begin()
    await run('search', { name: 's', ref: '(type:ticket status:open)', limit: 10_000 }, all)
    expect(written(all, 's')).toMatchObject({ total: 2_345, truncated: false })
  })

  test.each(['status:open', 'type:ticket type:user', 'subject:"about type:tickets"'])(
    'is not, where it is %s',
    async ref => {
      zendesk.results = 1_500
      const { data } = await run('search', { name: 's', ref, limit: 10_000 }, begin())
      expect(data).toMatchObject({ total: 1_500, truncated: true })
      expect(zendesk.seen).toHaveLength(10)
    },
  )
})

describe('commenting', () => {
  const comment = async (entry: object, at: TestContext, text = 'On it.') => {
    writeFileSync(join(at.workspace, 'c.md'), text)
    return run('add_comment', { name: 'c', ref: '35436', file: 'c.md', ...entry }, at)
  }

  test('takes HTML from a file of it', async () => {
    const at = begin('once')
    writeFileSync(join(at.workspace, 'c.html'), '<b>On</b> it.')
    await run('add_comment', { name: 'c', ref: '35436', file: 'c.html' }, at)
    expect(zendesk.comments[0]).toMatchObject({ html_body: '<b>On</b> it.', body: 'On it.', public: false })
  })

  test('is internal unless it says public', async () => {
    const { data, external } = await comment({}, begin('once'))
    const url = `${zendesk.url}/agent/tickets/35436`
    expect(data).toMatchObject({ id: 35436, url, status: 'open', comment_id: 5_000 })
    expect(external).toEqual({ id: '5000', url })
    await comment({ public: true }, begin('once'))
    expect(zendesk.comments.map(({ body, public: isPublic }) => [body, isPublic])).toEqual([
      ['On it.', false],
      ['On it.', true],
    ])
  })

  test('is sent once more after a conflict, and never after a doubtful end', async () => {
    zendesk.fail(/^PUT/, () => refusal(409, { error: 'DatabaseConflict' }))
    await comment({}, begin('once'))
    expect(zendesk.comments).toHaveLength(1)
    zendesk.fail(/^PUT/, () => refusal(502), { times: 9 })
    const error = await failureOf(comment({}, begin('once')))
    expect(error).toMatchObject({ sent: 'unknown', retryable: true })
    expect(zendesk.seen.filter(({ method }) => method === 'PUT')).toHaveLength(3)
  })

  test('that is empty or too long, or of a closed ticket, is not sent', async () => {
    for (const text of [' \n', 'x'.repeat(65_536)]) {
      expect(await failureOf(comment({}, begin('once'), text))).toMatchObject({ code: 'invalid_request', sent: 'no' })
    }
    expect(zendesk.seen).toHaveLength(0)
    zendesk.ticket.status = 'closed'
    expect(await failureOf(comment({}, begin('once')))).toMatchObject({ code: 'rejected', sent: 'no' })
  })

  test('is found by its key, on any page, and not by another’s', async () => {
    const at = begin('once')
    const find = () => actions.add_comment!.find!({ name: 'c', ref: '35436', file: 'c.md' }, at.context as never)
    for (let n = 0; n < 130; n++) addComment(zendesk, 'x', true, { cadre_key: 'another' })
    expect(await find()).toBeNull()
    await comment({}, at)
    expect((await find())!.data).toMatchObject({ id: 35436, comment_id: 5_130 })
  })
})

describe('the status', () => {
  test('is set from the entry or a file', async () => {
    const at = begin('idempotent')
    const { data } = await run('update_status', { name: 's', ref: '35436', status: 'pending' }, at)
    expect(data).toMatchObject({ id: 35436, status: 'pending' })
    expect(lastBody()).toEqual({ ticket: { status: 'pending' } })
    writeFileSync(join(at.workspace, 'status.txt'), 'Solved\n')
    await run('update_status', { name: 's', ref: '35436', file: 'status.txt' }, at)
    expect(zendesk.ticket.status).toBe('solved')
  })

  test('of a file that holds no status is refused before anything is sent', async () => {
    const at = begin('idempotent')
    writeFileSync(join(at.workspace, 's.txt'), 'finished')
    const error = await failureOf(run('update_status', { name: 's', ref: '35436', file: 's.txt' }, at))
    expect(error.hint).toContain('new, open, pending, hold, solved, closed')
    expect(zendesk.seen).toHaveLength(0)
  })
})

describe('settings as people paste them', () => {
  test.each([
    ['acme', undefined, 'https://acme.zendesk.com'],
    ['acme.zendesk.com', undefined, 'https://acme.zendesk.com'],
    ['https://acme.zendesk.com/agent/tickets/5', undefined, 'https://acme.zendesk.com'],
    ['acme', 'https://acme.zendesk.com/agent/tickets/5', 'https://acme.zendesk.com'],
    ['acme', 'https://help.acme.test/proxy/api/v2/', 'https://help.acme.test/proxy'],
    ['acme', 'https://help.acme.test/hc/en-us', 'https://help.acme.test'],
  ])('the subdomain %s with base_url %s', async (subdomain, base_url, site) => {
    expect(zendeskSite(subdomain, base_url)).toBe(site)
    expect(await subject.problems({ ...ACCOUNT, subdomain, ...(base_url && { base_url }) })).toEqual([])
  })

  test('a user with /token', async () => {
    const pasted = { ...settings(zendesk.url), email: `${ACCOUNT.email}/token` }
    expect(await subject.doctor(zendesk, pasted)).toMatchObject({ who: ACCOUNT.email, missing: [] })
  })

  test.each([
    [
      { subdomain: 'help.acme.test' },
      'agents.helpdesk.subdomain must be the part before .zendesk.com: write it as acme',
    ],
    [{ email: 'kim' }, 'agents.helpdesk.email must be the e-mail address of the account: write it as me@acme.com'],
  ])('%j is answered with what to write', async (wrong, words) => {
    expect(await subject.problems({ ...ACCOUNT, ...wrong })).toEqual([expect.stringContaining(words)])
  })
})
