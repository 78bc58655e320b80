// Writes to each vendor that are done twice, late, or unseen: what the vendor says about an identity of ours (a title, a
// branch, what was there before) makes one object of them.

import { afterEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import crm from '../../agents/crm.ts'
import git from '../../agents/git.ts'
import issues from '../../agents/issues.ts'
import wiki from '../../agents/wiki.ts'
import type { AgentResult } from '../../lib/agent/agent-context.ts'
import type { Agent } from '../../lib/agent/define.ts'
import type { JsonObject } from '../../lib/json.ts'
import { type FakeVendor, refusal } from '../../lib/testing/fake-vendor.ts'
import { inEmptyHome } from '../agents/git-clone.ts'
import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { ACCOUNT as BITBUCKET, fakeBitbucket } from '../vendors/bitbucket.ts'
import { fakeCrm, TOKEN as HUBSPOT } from '../vendors/crm.ts'
import { freshClone } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { addAttachment, addComment, addIssue, fakeIssues } from '../vendors/issues.ts'
import { addPage, fakeWiki } from '../vendors/wiki.ts'
import { late } from './late.ts'

inEmptyHome()
const open: (Disposable | { close(): Promise<void> })[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await ('close' in each ? each.close() : each[Symbol.dispose]())
})
const opened = <T extends Disposable>(it: T): T => {
  open.push(it)
  return it
}

interface Given {
  agent: Agent
  name: string
  settings: Record<string, unknown>
  phase: JsonObject
  workspace?: string
  /** Milliseconds from which on an absence counts, where the look-up may lag. */
  settle?: number
}

/** Starts a run of one phase, and waits for its end. */
async function ran({ agent, name, settings, phase, workspace = folder(), settle = 0 }: Given) {
  const t: TestEngine = await testEngine({ agents: { [name]: agent }, settings: { [name]: settings }, settle })
  open.push(t)
  writeFileSync(join(workspace, 'text.md'), 'the text')
  const team = { name: '@local/one', version: '1.0.0', phases: [{ name: 'one', agent: name, ...phase }] }
  const { run_id } = await t.start(JSON.stringify(team), {}, { workspace })
  const ended = async () => {
    await t.engine.ended(run_id)
    return t.engine.store.runs.get(run_id)!.state
  }
  return {
    state: await ended(),
    receipts: t.engine.store.receipts.ofRun(run_id),
    async resume() {
      await t.engine.resume(run_id)
      return ended()
    },
  }
}

const twice = { retry: { attempts: 2, backoff: '1ms' } }

/** What an action does whose second write the vendor refuses, because the first one is there. */
interface Refused {
  vendor: FakeVendor
  write: RegExp
  /** What the vendor asks the list of, and what it answers while it does not show the first one. */
  list: RegExp
  empty: unknown
  /** How many lists do not show it. */
  behind: number
  given: Given
  count(): number
}

const onWiki = (): Refused => {
  const vendor = opened(fakeWiki())
  const target_entries = [{ name: 'page', ref: 'DOCS', title: 'New', file: 'text.md' }]
  return {
    vendor,
    write: /^POST .*\/pages$/,
    list: /^GET .*\/pages$/,
    empty: { results: [] },
    behind: 3,
    given: {
      agent: wiki,
      name: 'wiki',
      settings: { ...ACCOUNT, base_url: vendor.url },
      phase: { action: 'create_page', target_entries },
    },
    count: () => [...vendor.pages.values()].filter(({ title }) => title === 'New').length,
  }
}

const onGitHub = (): Refused => {
  const vendor = opened(fakeGitHub())
  const workspace = freshClone(`${vendor.url}/acme/app.git`)
  return {
    vendor,
    write: /^POST .*\/pulls$/,
    list: /^GET .*\/pulls$/,
    empty: [],
    behind: 4,
    given: {
      agent: git,
      name: 'git',
      settings: { provider: 'github', github: { token: TOKEN, base_url: vendor.url } },
      phase: { action: 'create_pr', title: 'T' },
      workspace,
    },
    count: () => vendor.pullRequests.length,
  }
}

describe.each([
  ['a page of Confluence', onWiki],
  ['a pull request on GitHub', onGitHub],
])('%s is there once', (_, begin) => {
  test('when it lands after its repetition', async () => {
    const { vendor, write, given, count } = begin()
    const landing = late(vendor, write, 1_500)
    const { state } = await ran({ ...given, phase: { ...given.phase, ...twice } })
    expect([state, count()]).toEqual(['completed', 1])
    await landing.done()
    expect(count()).toBe(1)
  })

  test('when it lands after the run has failed, which a resume finds out', async () => {
    const { vendor, write, given, count } = begin()
    const failed = Promise.withResolvers<void>()
    const landing = late(vendor, write, failed.promise)
    const { state, resume } = await ran(given)
    expect(state).toBe('failed')
    failed.resolve()
    await landing.done()
    expect([await resume(), count()]).toEqual(['completed', 1])
  })

  test('when no list shows it before it is written again', async () => {
    const { vendor, write, list, empty, behind, given, count } = begin()
    vendor.fail(write, () => refusal(502), { done: true })
    vendor.fail(list, () => Response.json(empty), { times: behind })
    const { state, receipts } = await ran({ ...given, phase: { ...given.phase, ...twice } })
    expect([state, count(), receipts.map(({ state }) => state)]).toEqual(['completed', 1, ['done']])
    expect(vendor.seen.filter(({ method, path }) => write.test(`${method} ${path}`))).toHaveLength(2)
  })
})

test('a page of the title that is not ours stays an error', async () => {
  const { vendor, given } = onWiki()
  addPage(vendor as ReturnType<typeof fakeWiki>, { title: 'New', value: '<p>another</p>' })
  expect((await ran(given)).state).toBe('failed')
})

describe('an attachment of Jira', () => {
  const begin = () => {
    const vendor = opened(fakeIssues())
    const target_entries = [{ name: 'file', ref: 'WEB-1', file: 'text.md' }]
    const given: Given = {
      agent: issues,
      name: 'issues',
      settings: { ...ACCOUNT, base_url: vendor.url },
      phase: { action: 'add_attachment', target_entries, ...twice },
      settle: 1_000,
    }
    return { vendor, given, issue: vendor.issues.get('WEB-1')! }
  }
  const POST = /^POST .*attachments$/

  test('that lands late is waited for, and is there once', async () => {
    const { vendor, given, issue } = begin()
    const landing = late(vendor, POST, 400)
    const { state, receipts } = await ran(given)
    await landing.done()
    expect([state, issue.attachments.length]).toEqual(['completed', 1])
    expect(receipts).toMatchObject([{ state: 'done', external_id: '30000' }])
  })

  test('that was there before is neither attached again nor taken for ours', async () => {
    const { vendor, given, issue } = begin()
    addAttachment(issue, 'text.md', 'another')
    addAttachment(issue, 'text.md', 'the text')
    expect((await ran(given)).state).toBe('completed')
    expect(issue.attachments).toHaveLength(2)
    expect(vendor.seen.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('that is there twice is told with both', async () => {
    const { vendor, given, issue } = begin()
    vendor.fail(POST, () => {
      for (let n = 0; n < 2; n++) addAttachment(issue, 'text.md', 'the text')
      return refusal(502)
    })
    const { state, receipts } = await ran(given)
    expect(state).toBe('completed')
    expect(receipts).toMatchObject([{ external_id: '30000', copies: expect.stringContaining('30001') }])
  })
})

test('each issue with the mark of an entry is found, and the oldest is the result', async () => {
  const jira = opened(fakeIssues())
  const run = { id: Bun.randomUUIDv7(), name: null, team: '@local/t', created_at: Date.now(), url: null }
  const network = { allow: [], literalOrigins: [] }
  const at = testContext({ network, settings: { ...ACCOUNT, base_url: jira.url }, run })
  const drafts = ['a', 'b'].map(summary => ({ project: 'WEB', type: 'Story', summary }))
  writeFileSync(join(at.workspace, 'd.json'), JSON.stringify({ issues: drafts }))
  const mark = (index: number) => ({ cadre: { key: at.context.key, index } })
  for (const index of [0, 1, 0]) addIssue(jira, { summary: 'x' }, mark(index))
  const found = await issues.actions!.create_issue!.find!({ file: 'd.json' }, at.context as never)
  const ids = (found as unknown as AgentResult[]).map(({ external }) => external!.id)
  expect(ids).toEqual(['WEB-2, WEB-3', 'WEB-4'])
})

test('each comment and note with the mark of an entry is found, in whatever order the vendor lists them', async () => {
  const jira = opened(fakeIssues())
  const hubspot = opened(fakeCrm())
  const options = { network: { allow: [], literalOrigins: [] } }
  const run = { id: Bun.randomUUIDv7(), name: null, team: '@local/t', created_at: Date.now(), url: null }
  const at = testContext({ ...options, settings: { ...ACCOUNT, base_url: jira.url }, run })
  for (let n = 0; n < 2; n++) {
    const { properties } = addComment(jira.issues.get('WEB-1')!, { type: 'doc', version: 1, content: [] })
    properties.push({ key: 'cadre', value: { key: at.context.key } })
  }
  const found = await issues.actions!.add_comment!.find!({ ref: 'WEB-1' }, at.context as never)
  expect((found as unknown as object[]).length).toBe(2)
  const other = testContext({ ...options, settings: { access_token: HUBSPOT, base_url: hubspot.url } })
  writeFileSync(join(other.workspace, 'n.md'), 'a note')
  const { add_note } = crm.actions!
  for (let n = 0; n < 2; n++)
    await add_note!.run({ name: 'n', ref: 'contacts/42', file: 'n.md' }, other.context as never)
  const notes = await add_note!.find!({ ref: 'contacts/42' }, other.context as never)
  expect((notes as unknown as object[]).length).toBe(2)
})

test('each pull request for a branch is found where the host opens a second one, and the oldest is the result', async () => {
  const host = opened(fakeBitbucket())
  const settings = { provider: 'bitbucket', bitbucket: { ...BITBUCKET, base_url: `${host.url}/2.0` } }
  const network = { allow: ['127.0.0.1'], literalOrigins: [] }
  const at = testContext({ network, settings, effect: 'once' })
  freshClone(`${host.url}/acme/app.git`, at.workspace)
  writeFileSync(join(at.workspace, 'new.md'), 'new')
  const { create_pr } = git.actions!
  await create_pr!.run({ title: 'T', branch: 'ours' }, at.context as never)
  const [first] = host.pullRequests
  host.pullRequests.unshift({ ...first!, id: 7 })
  const found = await create_pr!.find!({ title: 'T', branch: 'ours' }, at.context as never)
  expect((found as unknown as AgentResult[]).map(({ external }) => external!.id)).toEqual(['1', '7'])
})

test.each(['update_page', 'add_attachment'])(
  '%s writes another content of the same entry, and the same one once',
  async action => {
    const vendor = opened(fakeWiki())
    const at = testContext({
      network: { allow: [], literalOrigins: [] },
      settings: { ...ACCOUNT, base_url: vendor.url },
      effect: 'idempotent',
    })
    const write = async (text: string) => {
      writeFileSync(join(at.workspace, 'a.md'), text)
      const entry = { name: 'p', ref: '131073', file: 'a.md', ...(action === 'update_page' && { title: 'Runbook' }) }
      await wiki.actions![action]!.run(entry, at.context as never)
    }
    for (const text of ['one', 'one', 'two', 'two']) await write(text)
    const page = vendor.pages.get('131073')!
    const [version, content] =
      action === 'update_page'
        ? [page.version.number - 1, page.body.storage.value]
        : [vendor.attachments[0]!.version.number, vendor.attachments[0]!.content]
    expect([version, content]).toEqual([2, expect.stringContaining('two')])
  },
)
