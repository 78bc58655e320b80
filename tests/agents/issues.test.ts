import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import issues from '../../agents/issues.ts'
import type { AgentContext, Effect } from '../../lib/agent/define.ts'
import type { JsonObject } from '../../lib/json.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { outcomeOf } from '../support/outcome.ts'
import { ACCOUNT, SIGNED } from '../vendors/atlassian.ts'
import { badDays, failureOf } from '../vendors/bad-days.ts'
import { addComment, addIssue, doc, type FakeIssues, fakeIssues } from '../vendors/issues.ts'
import { refusal } from '../vendors/vendor.ts'

const actions = issues.actions!
const settings = (url: string) => ({ ...ACCOUNT, base_url: url })
/** A run that began a moment ago, as UUIDv7. */
const RUN = { id: Bun.randomUUIDv7(), name: null, team: '@local/t', url: null }

let site: FakeIssues
beforeEach(() => {
  site = fakeIssues()
})
afterEach(() => site[Symbol.dispose]())

const begin = (effect: Effect = 'read', options: Parameters<typeof testContext>[0] = {}) =>
  testContext({
    settings: settings(site.url),
    network: { allow: [], literalOrigins: [] },
    effect,
    run: RUN,
    ...options,
  })
const run = (action: string, entry: object, at: TestContext) =>
  actions[action]!.run({ name: 'x.json', ...entry }, at.context as AgentContext<never>)
const find = (action: string, entry: object, at: TestContext) =>
  actions[action]!.find!({ name: 'x.json', ...entry }, at.context as AgentContext<never>)
const written = (at: TestContext) => JSON.parse(readFileSync(join(phaseFolder(at), 'x.json'), 'utf8'))
const give = (at: TestContext, file: string, content: string | object) =>
  writeFileSync(join(at.workspace, file), typeof content === 'string' ? content : JSON.stringify(content))
const web = (key: string) => site.issues.get(key)!
const writes = () => site.seen.filter(({ method, path }) => method !== 'GET' && !path.endsWith('/jql'))
const phase = (name: string, action: string, entry: JsonObject, files: Record<string, string>) =>
  outcomeOf({
    agent: issues,
    name: 'issues',
    settings: settings(site.url),
    files,
    phase: { action, retry: { attempts: 3, backoff: '1ms' }, target_entries: [{ name, ...entry }] },
  })

badDays({
  open: fakeIssues,
  settings,
  read: context => actions.get_issue!.run({ name: 'out.json', ref: 'WEB-1' }, context),
  request: /^GET \/rest\/api\/3\/issue\/WEB-1$/,
  setting: 'agents.issues.api_token',
  scope: 'Browse Projects',
  canaries: [ACCOUNT.api_token, SIGNED.slice(6)],
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
  test('writes Markdown as a document with a marker, by which it is found', async () => {
    const at = begin('once')
    give(at, 'c.md', 'See **this** [@Ada](accountid:5b1)\n')
    for (let n = 0; n < 130; n++) addComment(web('WEB-1'), doc('another'))
    expect(await find('add_comment', { ref: 'WEB-1' }, at)).toBeNull()
    const { data, external } = await run('add_comment', { ref: 'WEB-1', file: 'c.md' }, at)
    const url = `${site.url}/browse/WEB-1?focusedCommentId=20130`
    expect(data).toMatchObject({ key: 'WEB-1', type: 'Story', status: 'To Do', comment_id: '20130' })
    expect(external).toEqual({ id: '20130', url })
    const { body } = web('WEB-1').comments.at(-1)!
    expect(JSON.stringify(body)).toContain('"mention"')
    expect(JSON.stringify(body)).toContain(at.context.key)
    for (let n = 0; n < 130; n++) addComment(web('WEB-1'), doc('later'))
    expect((await find('add_comment', { ref: 'WEB-1' }, at))!.external).toEqual({ id: '20130', url })
  })

  test('is not looked for among what is older than the run', async () => {
    for (let n = 0; n < 300; n++) addComment(web('WEB-1'), doc('old'), '2020-01-01T00:00:00.000Z')
    expect(await find('add_comment', { ref: 'WEB-1' }, begin())).toBeNull()
    expect(site.seen).toHaveLength(1)
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
    expect(error).toMatchObject({ sent: 'no', hint: 'there are: Start (to In Progress)' })
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

const STORIES = {
  issues: [
    { id: 'epic', project: 'WEB', type: 'Epic', summary: 'Sign-in', description: '# Why\n\nIt **fails**.' },
    { project: 'WEB', type: 'Story', summary: 'Form', labels: ['ui'], parent: 'epic', fields: { 'story points': 3 } },
    { project: 'WEB', type: 'Story', summary: 'Mail', parent: 'WEB-1' },
  ],
}

describe('creating issues', () => {
  test('one, with fields by id and name', async () => {
    const at = begin('once')
    const fields = { Notes: '*n*', priority: 'High', Teams: ['a', { value: 'b' }], customfield_10016: 5 }
    give(at, 'd.json', { project: 'WEB', type: 'Bug', summary: 'Crash', description: 'x', fields })
    const { data, external } = await run('create_issue', { file: 'd.json' }, at)
    expect(data).toMatchObject({ key: 'WEB-2', url: `${site.url}/browse/WEB-2`, type: 'Bug', status: 'To Do' })
    expect(external).toEqual({ id: 'WEB-2', url: `${site.url}/browse/WEB-2` })
    expect(web('WEB-2').fields).toMatchObject({
      description: doc('x'),
      customfield_10020: { type: 'doc' },
      priority: { name: 'High' },
      customfield_10030: [{ value: 'a' }, { value: 'b' }],
      customfield_10016: 5,
    })
  })

  test('several, children under the parents of the same file', async () => {
    const at = begin('once')
    give(at, 'd.json', STORIES)
    const { data } = await run('create_issue', { file: 'd.json' }, at)
    expect((data as { items: JsonObject[] }).items.map(({ key, parent }) => [key, parent])).toEqual([
      ['WEB-2', null],
      ['WEB-3', 'WEB-2'],
      ['WEB-4', 'WEB-1'],
    ])
    expect(web('WEB-3').fields).toMatchObject({ labels: ['ui'], customfield_10016: 3 })
  })

  test('an issue with a key exists already', async () => {
    const at = begin('once')
    give(at, 'd.json', {
      issues: [
        { id: 'e', key: 'WEB-1' },
        { project: 'WEB', type: 'Task', summary: 's', parent: 'e' },
      ],
    })
    await run('create_issue', { file: 'd.json' }, at)
    expect(site.issues.size).toBe(2)
    expect(web('WEB-2').fields.parent).toEqual({ key: 'WEB-1' })
  })

  test('that the account may not see afterwards is done all the same', async () => {
    site.fail(/^GET .*WEB-2$/, () => refusal(404))
    const at = begin('once')
    give(at, 'd.json', STORIES.issues[0]!)
    const { data, external } = await run('create_issue', { file: 'd.json' }, at)
    expect(data).toMatchObject({ key: 'WEB-2', status: null })
    expect(external).toMatchObject({ id: 'WEB-2' })
  })

  test('from a file of issues that all exist writes nothing', async () => {
    const at = begin('once', { attempt: 2 })
    give(at, 'd.json', { issues: [{ key: 'WEB-1' }, { key: 'WEB-1' }] })
    expect((await run('create_issue', { file: 'd.json' }, at)).data).toMatchObject({ total: 2 })
    expect((await find('create_issue', { file: 'd.json' }, at))!.data).toMatchObject({ total: 2 })
    expect(writes()).toEqual([])
  })

  test.each([
    ['no JSON', '{', 'no JSON'],
    ['missing fields', { summary: 's' }, '/issues/0/project is required; /issues/0/type is required'],
    ['unknown fields', { project: 'WEB', type: 'T', summary: 's', story: 1 }, '/issues/0/story unknown property'],
    ['a label with blanks', { project: 'WEB', type: 'T', summary: 's', labels: ['a b'] }, '/issues/0/labels/0'],
    ['ids twice', { issues: [STORIES.issues[0], STORIES.issues[0]] }, '/issues/1/id epic stands there twice'],
    ['parents after children', { issues: STORIES.issues.toReversed() }, '/issues/1/parent must stand before'],
    ['an unknown field', { ...STORIES.issues[2], fields: { Points: 1 } }, 'no field is named "Points"'],
  ])('%s is refused before anything is written', async (_, content, message) => {
    const at = begin('once')
    give(at, 'd.json', content)
    const error = await failureOf(run('create_issue', { file: 'd.json' }, at))
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain(message)
    expect(writes()).toEqual([])
  })

  test.each([
    ['was created', true],
    ['was not', false],
  ])(
    'of one whose reply is lost and that %s there is one in the end',
    async (_, done) => {
      site.fail(/^POST .*issue$/, () => refusal(502), { done })
      const ended = await phase(
        'new',
        'create_issue',
        { file: 'd.json' },
        { 'd.json': JSON.stringify(STORIES.issues[0]) },
      )
      expect(ended).toMatchObject({ state: 'completed', data: { key: 'WEB-2', status: 'To Do' } })
      expect(site.issues.size).toBe(2)
    },
    10_000,
  )

  test('that fails in the middle goes on from there, also while the search lags', async () => {
    const at = begin('once')
    give(at, 'd.json', STORIES)
    addIssue(site, { summary: 'Sign-in', issuetype: { name: 'Epic' } }, { cadre: { key: at.context.key, index: 0 } })
    addIssue(site, { summary: 'of another entry' }, { cadre: { key: 'another', index: 1 } })
    site.unindexed.add('WEB-2')
    setTimeout(() => site.unindexed.clear(), 500)
    const again = begin('once', { attempt: 2, workspace: at.workspace })
    const { data } = await run('create_issue', { file: 'd.json' }, again)
    expect((data as { items: JsonObject[] }).items.map(({ key }) => key)).toEqual(['WEB-2', 'WEB-4', 'WEB-5'])
    expect(web('WEB-4').fields.parent).toEqual({ key: 'WEB-2' })
  })
})

describe('updating issues', () => {
  const DISPATCH = {
    issues: [{ key: 'WEB-1', summary: 'New', labels: [], description: '- a', fields: { Environment: 'prod' } }],
  }

  test('writes the main fields only, or the others only', async () => {
    const at = begin('idempotent')
    give(at, 'd.json', DISPATCH)
    const { data } = await run('update_issue', { file: 'd.json' }, at)
    expect(data).toMatchObject({ key: 'WEB-1', summary: 'New', status: 'To Do', total: 1 })
    expect(Object.keys((writes()[0]!.body as { fields: object }).fields)).toEqual(['summary', 'description', 'labels'])
    await run('update_fields', { file: 'd.json' }, at)
    expect(writes()[1]!.body).toEqual({ fields: { environment: doc('prod') } })
  })

  test('takes the key from ref, and then one issue', async () => {
    const at = begin('idempotent')
    give(at, 'd.json', { fields: { Priority: 'Low' } })
    expect((await run('update_fields', { ref: 'WEB-1', file: 'd.json' }, at)).data).toMatchObject({ priority: 'Low' })
    give(at, 'd.json', STORIES)
    expect((await failureOf(run('update_issue', { ref: 'WEB-1', file: 'd.json' }, at))).hint).toContain('leave out ref')
    expect((await failureOf(run('update_issue', { file: 'd.json' }, at))).message).toContain(
      '/issues/0/key is required',
    )
    give(at, 'd.json', { key: 'WEB-1' })
    expect((await failureOf(run('update_issue', { file: 'd.json' }, at))).message).toContain('nothing to write')
  })

  test('is repeated after a lost reply', async () => {
    site.fail(/^PUT/, () => refusal(503, '', { 'retry-after': '0' }), { done: true })
    const at = begin('idempotent')
    give(at, 'd.json', DISPATCH)
    await run('update_issue', { file: 'd.json' }, at)
    expect(writes()).toHaveLength(2)
  })
})

describe('on events', () => {
  const event = {
    name: 'on_fail',
    team: '@local/t',
    run: { id: RUN.id, name: null, state: 'failed', reason: null },
    message: '@local/t: run a_b_c failed: *why*',
    outputs: {},
  }
  const notify = (entry: object) => issues.notify!.run(entry, begin('once', { event }).context as AgentContext<never>)

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
