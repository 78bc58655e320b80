// Issues that are created and updated from a dispatch.json.

import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../lib/json.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { failureOf } from '../support/failure.ts'
import { addIssue, doc } from '../vendors/issues.ts'
import { begin, find, give, phase, run, site, siteForEachTest, web, writes } from './issues-site.ts'

siteForEachTest()

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
    ['no JSON', '{', 'must be JSON'],
    ['missing fields', { summary: 's' }, '/issues/0/project is required; /issues/0/type is required'],
    ['unknown fields', { project: 'WEB', type: 'T', summary: 's', story: 1 }, '/issues/0/story unknown property'],
    ['a label with blanks', { project: 'WEB', type: 'T', summary: 's', labels: ['a b'] }, '/issues/0/labels/0'],
    [
      'ids twice',
      { issues: [STORIES.issues[0], STORIES.issues[0]] },
      '/issues/1/id must be unique, but epic is used twice',
    ],
    [
      'parents after children',
      { issues: STORIES.issues.toReversed() },
      '/issues/1/parent must name an issue that precedes this one',
    ],
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
    const again = begin('once', { attempt: 2, workspace: at.workspace })
    const { data } = await run('create_issue', { file: 'd.json' }, again)
    expect((data as { items: JsonObject[] }).items.map(({ key }) => key)).toEqual(['WEB-2', 'WEB-4', 'WEB-5'])
    expect(web('WEB-4').fields.parent).toEqual({ key: 'WEB-2' })
  })
})

describe('an issue whose creation got no reply', () => {
  const FILE = { 'd.json': JSON.stringify(STORIES.issues[0]) }

  test('is found before the search knows it, by the numbers after the newest one', async () => {
    for (let n = 2; n <= 70; n++) addIssue(site, { summary: `Issue ${n}` })
    site.fail(
      /^POST .*issue$/,
      () => {
        site.unindexed.add('WEB-71')
        return refusal(502)
      },
      { done: true },
    )
    const ended = await phase('new', 'create_issue', { file: 'd.json' }, FILE)
    expect(ended).toMatchObject({ state: 'completed', data: { key: 'WEB-71' } })
    expect(site.issues.size).toBe(71)
  })

  test('is found as the first of a project that the search does not know', async () => {
    site.issues.clear()
    site.unindexed.add('WEB-1')
    site.fail(/^POST .*issue$/, () => refusal(502), { done: true })
    const ended = await phase('new', 'create_issue', { file: 'd.json' }, FILE)
    expect(ended).toMatchObject({ state: 'completed', data: { key: 'WEB-1' } })
    expect(site.issues.size).toBe(1)
  })

  test('is not said to be missing when Jira cannot look it up', async () => {
    const issueErrors = [{ id: 'WEB-2', errorMessage: 'try again' }]
    site.fail(/bulkfetch$/, () => Response.json({ issues: [], issueErrors }), { times: 9 })
    const at = begin()
    give(at, 'd.json', STORIES.issues[0]!)
    const error = await failureOf(find('create_issue', { file: 'd.json' }, at))
    expect(error).toMatchObject({ code: 'vendor_error', retryable: true })
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
    expect((await failureOf(run('update_issue', { file: 'd.json' }, at))).message).toContain(
      'must have fields to write for at least one issue',
    )
  })

  test('is repeated after a lost reply', async () => {
    site.fail(/^PUT/, () => refusal(503, '', { 'retry-after': '0' }), { done: true })
    const at = begin('idempotent')
    give(at, 'd.json', DISPATCH)
    await run('update_issue', { file: 'd.json' }, at)
    expect(writes()).toHaveLength(2)
  })
})
