// What one program reported wrongly is shown as unreadable, with its id. It keeps nobody from what the others reported.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { type Mirror, startMirror } from '../support/hub-mirror.ts'
import { phaseChange, reviewChange, runChange } from '../support/sync.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let mirror: Mirror
const home = folder()
const good = { run: crypto.randomUUID(), review: crypto.randomUUID() }
const bad = { run: crypto.randomUUID(), review: crypto.randomUUID() }
let daemon_id: string

beforeAll(async () => {
  hub = await startTestHub()
  mirror = startMirror(hub.url)
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
  const changes = [
    runChange(good.run, { state: 'awaiting_input' }),
    phaseChange(good.run),
    reviewChange(good.run, good.review, { prompt: 'Publish it?' }),
    runChange(bad.run, { state: 'awaiting_input' }),
    // The phase that asks does not exist, and printed something.
    reviewChange(bad.run, bad.review, { phase: 'nowhere', kind: 'oracle', entries: [{ a: 1 }, null] }),
    {
      kind: 'log',
      run_id: bad.run,
      attempt: 1,
      lines: [{ seq: 1, phase: 'nowhere', at: 5, stream: 'stdout', text: 'said' }],
      to: 1,
    },
  ]
  const { rejected } = await hub.ok(token, 'runs/sync', {
    ...{ daemon_id, epoch: crypto.randomUUID(), from_seq: 1 },
    changes: changes.map((each, index) => ({ seq: index + 1, ...each })),
  })
  expect(rejected).toEqual([])
  const signIn = ['login', 'admin', '--hub', mirror.url]
  expect((await command(signIn, { home, stdin: ADMIN_PASSWORD })).code).toBe(0)
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await hub.stop()
})

const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await command(args, { home })
  expect([args, code, stderr.includes('fault of this program')]).toEqual([args, 0, false])
  return { stdout, stderr }
}

test('a review that names no phase of its run keeps nobody from the others', async () => {
  mirror.change = (_, data) => data
  const { stdout } = await run('reviews', '--hub')
  expect(stdout).toContain('Publish it?')
  expect(stdout).toContain(good.review)
  // A kind of a newer daemon is shown as its word.
  expect(stdout).toMatch(/^oracle {2}nowhere/m)
  expect(stdout).toContain('| said')
})

test('a review whose run cannot be read is told with its id, and the others are shown', async () => {
  mirror.change = (path, data) =>
    path === 'runs/get' && (data as { run_id: string }).run_id === bad.run ? { run_id: 1 } : data
  const { stdout } = await run('reviews', '--hub')
  expect(stdout).toContain('Publish it?')
  expect(stdout).toMatch(new RegExp(`^unreadable {2}review ${bad.review}: `, 'm'))
})

// What each list calls, the name of its rows, and a word of the row that is well.
const LISTS: [args: string[], path: string, rows: string, word: () => string][] = [
  [['reviews', '--hub'], 'reviews/list', 'reviews', () => 'Publish it?'],
  [['runs', '--hub'], 'runs/list', 'runs', () => good.run],
  [['tree', good.run, '--hub'], 'runs/tree', 'runs', () => 'say'],
  [['phases', good.run, '--hub'], 'runs/phases', 'phases', () => 'say'],
  [['daemons', 'list', '--hub'], 'daemons/list', 'daemons', () => daemon_id],
  [['realms', 'list', '--hub'], 'realms/list', 'realms', () => hub.realm],
  [['tokens', 'list', '--hub'], 'auth/get_tokens', 'tokens', () => 'enrol'],
  [['audit', '--hub'], 'audit/list', 'audit', () => 'daemons/register'],
]

test.each(LISTS)('%p: a row of another form is unreadable, and the others are shown', async (args, at, rows, word) => {
  const row = { id: 'a\u202eb', run_id: 7, state: null, started_at: 'yesterday' }
  mirror.change = (path, data) =>
    path === at ? { ...(data as object), [rows]: [row, ...(data as Record<string, object[]>)[rows]!, 5] } : data
  const words = [...args.filter(each => each !== '--hub'), '--hub', mirror.url]
  const { stdout, stderr } = await run(...words)
  expect(stdout).toContain(word())
  expect(stderr).toMatch(/^unreadable {2}a<U\+202E>b: /m)
  if (args[0] === 'reviews') return
  const told = JSON.parse((await run(...words, '--json')).stdout)
  expect(told.unreadable.map(({ id }: { id: string }) => id)).toContain('a\u202eb')
})
