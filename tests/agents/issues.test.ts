import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import issues from '../../agents/issues.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import type { JsonObject } from '../../lib/json.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { phaseFolder, type TestContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { addAttachment, addComment, addIssue, doc, fakeIssues, SITE } from '../vendors/issues.ts'
import {
  begin,
  find,
  give,
  phase,
  RUN,
  run,
  settings,
  site,
  siteForEachTest,
  web,
  writes,
  written,
} from './issues-site.ts'

siteForEachTest()

const EVENT = {
  name: 'on_fail',
  team: '@local/t',
  run: { id: RUN.id, name: null, state: 'failed', reason: null },
  message: '@local/t: run a_b_c failed: *why*',
  outputs: {},
}
const STORY = { project: 'WEB', type: 'Story', summary: 'Form' }
const CHANGED = { key: 'WEB-1', summary: 'New', fields: { Priority: 'Low' } }

await testAgent({
  file: join(import.meta.dir, '../../agents/issues.ts'),
  vendor() {
    const vendor = fakeIssues()
    addComment(vendor.issues.get('WEB-1')!, doc('one'))
    addAttachment(vendor.issues.get('WEB-1')!, 'log.txt', 'first')
    return vendor
  },
  settings: ({ url }) => settings(url),
  examples: {
    get_issue: { entry: { name: 'i.json', ref: 'WEB-1' }, names: 'get issue WEB-1', scope: 'Browse Projects' },
    get_issue_tree: { entry: { name: 't.json', ref: 'WEB-1' }, request: /^GET .*WEB-1$/, names: 'get issue WEB-1' },
    get_comments: { entry: { name: 'c.json', ref: 'WEB-1' }, names: 'get comments of WEB-1' },
    search: { entry: { name: 's.json', ref: 'project = WEB' }, names: '[issues.search] search' },
    get_attachments: { entry: { name: 'a', ref: 'WEB-1' }, request: /^GET .*WEB-1$/, names: 'get issue WEB-1' },
    add_comment: {
      entry: { name: 'c', ref: 'WEB-1', file: 'c.md' },
      files: { 'c.md': 'hello' },
      names: 'comment on WEB-1',
      request: /^POST .*\/WEB-1\/comment$/,
      scope: 'Add Comments',
    },
    add_attachment: {
      entry: { name: 'a', ref: 'WEB-1', file: 'report.txt' },
      files: { 'report.txt': 'all is well' },
      names: 'attach report.txt to WEB-1',
      scope: 'Create Attachments',
    },
    transition: {
      entry: { name: 't', ref: 'WEB-1', to: 'Start' },
      names: 'move WEB-1 by Start',
      scope: 'Transition Issues',
    },
    create_issue: {
      entry: { name: 'n', file: 'd.json' },
      files: { 'd.json': JSON.stringify(STORY) },
      names: 'create "Form"',
      request: /^POST .*\/issue$/,
      scope: 'Create Issues',
    },
    update_issue: {
      entry: { name: 'u', file: 'd.json' },
      files: { 'd.json': JSON.stringify(CHANGED) },
      names: 'edit WEB-1',
      scope: 'Edit Issues',
    },
    update_fields: {
      entry: { name: 'f', file: 'd.json' },
      files: { 'd.json': JSON.stringify(CHANGED) },
      names: 'edit WEB-1',
      scope: 'Edit Issues',
    },
    notify: { entry: { action: 'add_comment', ref: 'WEB-1' }, event: EVENT, names: 'comment on WEB-1' },
  },
})

describe('reading', () => {
  test('an issue', async () => {
    const at = begin()
    const { data } = await run('get_issue', { ref: 'WEB-1' }, at)
    const url = `${site.url}/browse/WEB-1`
    expect(data).toMatchObject({ key: 'WEB-1', url, type: 'Story', status: 'To Do', description: 'On Mondays.\n' })
    expect(written(at)).toMatchObject({ key: 'WEB-1', fields: { summary: 'Login fails' } })
  })

  test('an issue that is not there, and a key that is a path', async () => {
    expect((await failureOf(run('get_issue', { ref: 'WEB-9' }, begin()))).code).toBe('not_found')
    expect((await failureOf(run('get_issue', { ref: '..' }, begin()))).code).toBe('invalid_request')
  })

  test('comments, oldest first, their text as Markdown', async () => {
    for (let n = 1; n <= 130; n++) addComment(web('WEB-1'), doc(`comment *${n}*`))
    const at = begin()
    const { data } = await run('get_comments', { ref: 'WEB-1', limit: 120 }, at)
    expect(data).toMatchObject({ total: 130, truncated: true })
    const { items } = data as { items: JsonObject[] }
    expect(items).toHaveLength(120)
    expect(items[0]).toMatchObject({ id: '20000', author: 'Ada', text: 'comment \\*1\\*\n' })
    expect(written(at).items[119]).toMatchObject({ text: 'comment \\*120\\*\n', body: { type: 'doc' } })
  })

  test('a search over pages and up to the limit', async () => {
    for (let n = 2; n <= 230; n++) addIssue(site, { summary: `Issue ${n} 🎉` })
    const some = await run('search', { ref: 'project = WEB', limit: 150 }, begin())
    expect((some.data as { items: unknown[] }).items).toHaveLength(150)
    expect(some.data).toMatchObject({ truncated: true })
    const at = begin()
    const { data } = await run('search', { ref: 'project = WEB', limit: 230 }, at)
    expect(data).toMatchObject({ total: 230, truncated: false })
    expect(written(at).items[229]).toMatchObject({ key: 'WEB-230', fields: { summary: 'Issue 230 🎉' } })
  })

  test('a search that is refused, and one that never ends', async () => {
    expect((await failureOf(run('search', { ref: 'ORDER BY key' }, begin()))).message).toContain('Unbounded JQL')
    const page = () => Response.json({ issues: [], nextPageToken: crypto.randomUUID() })
    site.fail(/jql$/, page, { times: 1_000 })
    expect((await failureOf(run('search', { ref: 'project = WEB' }, begin()))).code).toBe('endless')
    expect(site.seen.length).toBeLessThan(50)
  })

  test('a tree: children down to the depth, and the links of each', async () => {
    const links = [
      {
        type: { inward: 'is blocked by', outward: 'blocks' },
        outwardIssue: { id: '1', key: 'OPS-7', fields: { summary: 'x' } },
      },
    ]
    addIssue(site, { summary: 'Child', parent: { key: 'WEB-1' }, issuelinks: links })
    addIssue(site, { summary: 'Grandchild', parent: { key: 'WEB-2' } })
    // A ring, which a project of many hands may hold.
    web('WEB-1').fields.parent = { key: 'WEB-3' }
    const tree = async (entry: object) => {
      const { data } = await run('get_issue_tree', { ref: 'WEB-1', ...entry }, begin())
      const { items, ...rest } = data as { items: JsonObject[] }
      return { ...rest, items: items.map(({ key, parent, relation, depth }) => [key, parent, relation, depth]) }
    }
    const root = ['WEB-1', null, 'root', 0]
    const child = ['WEB-2', 'WEB-1', 'child', 1]
    const link = ['OPS-7', 'WEB-2', 'blocks', 2]
    expect(await tree({})).toMatchObject({
      ...{ key: 'WEB-1', status: 'To Do', total: 4, truncated: false },
      items: [root, child, link, ['WEB-3', 'WEB-2', 'child', 2]],
    })
    expect((await tree({ depth: 1 })).items).toEqual([root, child, link])
    expect((await tree({ depth: 0 })).items).toEqual([root])
    expect(await tree({ limit: 2 })).toMatchObject({ truncated: true, items: [root, child] })
  })
})

describe('commenting', () => {
  test('writes Markdown as a document with a mark that nobody sees, by which it is found', async () => {
    const at = begin('once')
    give(at, 'c.md', 'See **this** [@Ada](accountid:5b1)\n')
    for (let n = 0; n < 130; n++) addComment(web('WEB-1'), doc('another'))
    expect(await find('add_comment', { ref: 'WEB-1' }, at)).toBeNull()
    const { data, external } = await run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at)
    const url = `${site.url}/browse/WEB-1?focusedCommentId=20130`
    expect(data).toMatchObject({ key: 'WEB-1', type: 'Story', status: 'To Do', comment_id: '20130' })
    expect(external).toEqual({ id: '20130', url })
    const { body, properties } = web('WEB-1').comments.at(-1)!
    expect(JSON.stringify(body)).toContain('"mention"')
    expect(JSON.stringify(body)).not.toContain(at.context.key)
    expect(properties).toEqual([{ key: 'cadre', value: { key: at.context.key } }])
    for (let n = 0; n < 130; n++) addComment(web('WEB-1'), doc('later'))
    expect((await find('add_comment', { ref: 'WEB-1' }, at))!.external).toEqual({ id: '20130', url })
  })

  test('as an internal note is not shown to customers', async () => {
    const at = begin('once')
    give(at, 'c.md', 'only for us')
    await run('add_comment', { ref: 'WEB-1', file: 'c.md', public: false }, at)
    expect(web('WEB-1').comments[0]!.properties).toContainEqual({
      key: 'sd.public.comment',
      value: { internal: true },
    })
    const { data } = await run('get_comments', { ref: 'WEB-1' }, begin())
    expect(data).toMatchObject({ items: [{ public: false }] })
  })

  test('is not looked for among what is older than the run', async () => {
    for (let n = 0; n < 300; n++) addComment(web('WEB-1'), doc('old'), '2020-01-01T00:00:00.000Z')
    expect(await find('add_comment', { ref: 'WEB-1' }, begin())).toBeNull()
    expect(site.seen).toHaveLength(1)
  })

  const AHEAD = Date.now() + 400 * 86_400_000
  test.each([
    ['the time in the id of the run is later than the run', { id: Bun.randomUUIDv7('hex', AHEAD) }],
    ['the clock was ahead when the run was created', { created_at: AHEAD }],
  ])('is found when %s', async (_, ahead) => {
    const at = begin('once', { run: { ...RUN, ...ahead } })
    give(at, 'c.md', 'text')
    const { external } = await run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at)
    expect((await find('add_comment', { ref: 'WEB-1' }, at))!.external).toEqual(external!)
  })

  test('an outage before it is sent leaves no doubt', async () => {
    site.fail(/^GET/, () => refusal(503, '', { 'retry-after': '0' }), { times: 4 })
    const at = begin('once')
    give(at, 'c.md', 'text')
    expect(await failureOf(run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at))).toMatchObject({ sent: 'no' })
    site.fail(/^POST/, () => refusal(403))
    expect((await failureOf(run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at))).hint).toContain('Add Comments')
  })

  test.each([
    ['arrived', true],
    ['did not arrive', false],
  ])('whose reply is lost and that %s is there once in the end', async (_, done) => {
    site.fail(/^POST .*comment$/, () => refusal(504), { done })
    const ended = await phase('note', 'add_comment', { ref: 'WEB-1', file: 'c.md' }, { 'c.md': 'text' })
    expect(ended).toMatchObject({ state: 'completed', data: { key: 'WEB-1', comment_id: '20000' } })
    expect(web('WEB-1').comments).toHaveLength(1)
  })
})

describe('a transition', () => {
  test.each([
    ['its name', 'start'],
    ['its id', 11],
    ['the status', 'In Progress'],
    ['the id of the status', '3'],
  ])('by %s', async (_, to) => {
    const { data } = await run('transition', { ref: 'WEB-1', to }, begin('once'))
    expect(data).toMatchObject({ key: 'WEB-1', status: 'In Progress' })
  })

  test('from a file, with a comment', async () => {
    const at = begin('once')
    give(at, 'to.txt', ' In Progress\n')
    await run('transition', { ref: 'WEB-1', file: 'to.txt', comment: 'on it' }, at)
    expect(web('WEB-1').fields.status.name).toBe('In Progress')
    expect(JSON.stringify(web('WEB-1').comments)).toContain('on it')
  })

  test('to where it is already does nothing; to nowhere says where it can go', async () => {
    expect((await run('transition', { ref: 'WEB-1', to: 'to do' }, begin('once'))).data).toMatchObject({
      status: 'To Do',
    })
    expect(writes()).toEqual([])
    const error = await failureOf(run('transition', { ref: 'WEB-1', to: 'Done' }, begin('once')))
    expect(error).toMatchObject({ sent: 'no', hint: 'available transitions: Start (to In Progress)' })
  })

  test('whose screen requires a field says which, and what to do', async () => {
    site.fail(/^POST .*transitions$/, () => refusal(400, { errors: { resolution: 'Resolution is required.' } }))
    const error = await failureOf(run('transition', { ref: 'WEB-1', to: 'Start' }, begin('once')))
    expect(error).toMatchObject({ code: 'rejected', sent: 'no', hint: expect.stringContaining('update_fields') })
    expect(error.message).toContain('Resolution is required.')
  })

  test('an outage before it is sent leaves no doubt', async () => {
    site.fail(/^GET .*transitions$/, () => refusal(503, '', { 'retry-after': '0' }), { times: 4 })
    const error = await failureOf(run('transition', { ref: 'WEB-1', to: 'Start' }, begin('once')))
    expect(error).toMatchObject({ sent: 'no', retryable: true })
  })

  test('whose comment failed is finished by the next attempt', async () => {
    site.fail(/^POST .*comment$/, () => refusal(503), { times: 1 })
    const entry = { ref: 'WEB-1', to: 'Start', comment: 'on it' }
    const ended = await phase('move', 'transition', entry, {})
    expect(ended).toMatchObject({ state: 'completed', data: { status: 'In Progress' } })
    expect(web('WEB-1').comments).toHaveLength(1)
    expect(web('WEB-1').histories).toHaveLength(1)
  })

  test('whose reply is lost is found, by its mark or where it led', async () => {
    site.fail(/^POST .*transitions$/, () => refusal(504), { done: true })
    expect(await phase('move', 'transition', { ref: 'WEB-1', to: 'Start' }, {})).toMatchObject({ state: 'completed' })
    expect(web('WEB-1').histories).toHaveLength(1)
    expect(await find('transition', { ref: 'WEB-1', to: 'Start' }, begin())).toBeNull()
    expect(await find('transition', { ref: 'WEB-1', to: 'in progress' }, begin())).not.toBeNull()
  })
})

describe('on events', () => {
  const notify = (entry: object) =>
    issues.notify!.run(entry, begin('once', { event: EVENT }).context as AgentContext<never>)

  test('comments, with the event’s message as it is or one in Markdown', async () => {
    await notify({ action: 'add_comment', ref: 'WEB-1' })
    await notify({ action: 'add_comment', ref: 'WEB-1', message: '**done**' })
    const [plain, marked] = web('WEB-1').comments.map(({ body }) => JSON.stringify(body))
    expect(plain).toContain('run a_b_c failed: *why*')
    expect(marked).toContain('"strong"')
  })

  test('moves', async () => {
    expect((await notify({ action: 'transition', ref: 'WEB-1', to: 'Start' })).text).toBe('WEB-1 is In Progress')
  })
})

describe('attachments', () => {
  const files = (at: TestContext) => {
    const folder = join(phaseFolder(at), 'all')
    return Object.fromEntries(readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')]))
  }

  test('are downloaded, each under a name of its own', async () => {
    for (const [name, content] of [
      ['a.txt', 'one'],
      ['A.txt', 'two'],
      ['../b?.txt', 'three'],
    ] as const)
      addAttachment(web('WEB-1'), name, content)
    const at = begin()
    const { data } = await run('get_attachments', { name: 'all', ref: 'WEB-1' }, at)
    const items = (data as { items: JsonObject[] }).items
    expect(items.map(({ filename, file }) => [filename, file])).toEqual([
      ['a.txt', 'all/a.txt'],
      ['A.txt', 'all/30001-A.txt'],
      ['../b?.txt', expect.stringMatching(/^all\/__b_-[0-9a-f]{8}\.txt$/)],
    ])
    expect(Object.values(files(at)).sort()).toEqual(['one', 'three', 'two'])
    expect(data).toMatchObject({ key: 'WEB-1', total: 3, truncated: false })
    // The service that has the files gets no credential.
    const media = site.seen.filter(({ path }) => path.startsWith('/media/'))
    expect(media).toHaveLength(3)
  })

  test('up to the limit, or by name', async () => {
    for (const name of ['a', 'b', 'c']) addAttachment(web('WEB-1'), name, name)
    const some = await run('get_attachments', { name: 'all', ref: 'WEB-1', limit: 2 }, begin())
    expect(some.data).toMatchObject({ total: 2, truncated: true })
    const at = begin()
    await run('get_attachments', { name: 'all', ref: 'WEB-1', filename: 'b' }, at)
    expect(files(at)).toEqual({ b: 'b' })
  })

  test('that are not what they were said to be are refused', async () => {
    addAttachment(web('WEB-1'), 'a.txt', 'content')
    site.fail(/media/, () => refusal(200, '<html>sign in', { 'content-type': 'text/html' }))
    const error = await failureOf(run('get_attachments', { name: 'all', ref: 'WEB-1' }, begin()))
    expect(error).toMatchObject({ code: 'unexpected_reply', message: expect.stringContaining('download a.txt') })
    site.fail(/media/, () => refusal(404))
    const gone = await failureOf(run('get_attachments', { name: 'all', ref: 'WEB-1' }, begin()))
    expect(gone).toMatchObject({ code: 'not_found', message: expect.stringContaining('download a.txt') })
  })

  test('are attached once, however often it is said, and again when the content is another', async () => {
    const attach = async (content: string, entry: object = {}) => {
      const at = begin('idempotent')
      give(at, 'report.txt', content)
      return run('add_attachment', { ref: 'WEB-1', file: 'report.txt', ...entry }, at)
    }
    const { data, external } = await attach('one ü')
    expect(data).toMatchObject({ key: 'WEB-1', attachment_id: '30000', filename: 'report.txt', size: 6 })
    expect(external).toEqual({ id: '30000', url: `${site.url}/browse/WEB-1` })
    expect((await attach('one ü')).external).toEqual(external)
    await attach('two ü')
    await attach('one ü', { filename: 'a "b" ü.txt' })
    expect(web('WEB-1').attachments.map(({ filename, content }) => [filename, content])).toEqual([
      ['report.txt', 'one ü'],
      ['report.txt', 'two ü'],
      ['a %22b%22 ü.txt', 'one ü'],
    ])
  })

  test.each([true, false])('whose reply is lost are there once in the end (arrived: %p)', async done => {
    site.fail(/^POST .*attachments$/, () => refusal(504), { done })
    const ended = await phase('file', 'add_attachment', { ref: 'WEB-1', file: 'c.md' }, { 'c.md': 'text' })
    expect(ended).toMatchObject({ state: 'completed', data: { attachment_id: '30000' } })
    expect(web('WEB-1').attachments).toHaveLength(1)
  })
})

describe('through the gateway for tokens with scopes', () => {
  const begun = (effect: Effect = 'read') => begin(effect, { settings: settings(`${site.url}/ex/jira/8c5b-11/`) })

  test('addresses are those that people open', async () => {
    expect((await run('get_issue', { ref: 'WEB-1' }, begun())).data).toMatchObject({ url: `${SITE}/browse/WEB-1` })
    const at = begun('once')
    give(at, 'c.md', 'text')
    const { external } = await run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at)
    expect(external!.url).toBe(`${SITE}/browse/WEB-1?focusedCommentId=20000`)
    const found = await run('search', { ref: 'project = WEB' }, begun())
    expect(found.data).toMatchObject({ items: [{ url: `${SITE}/browse/WEB-1` }] })
    expect(site.seen.every(({ path }) => path.startsWith('/ex/jira/8c5b-11/rest/api/3/'))).toBe(true)
  })

  test('a failure to learn them before a write leaves no doubt', async () => {
    site.fail(/serverInfo/, () => refusal(503, '', { 'retry-after': '0' }), { times: 4 })
    const at = begun('once')
    give(at, 'c.md', 'text')
    const error = await failureOf(run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at))
    expect(error).toMatchObject({ sent: 'no', retryable: true })
  })
})
