// `reviews --hub` shows of the output of a gate what the hub has, and says what the hub lacks and where it is to be seen.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { reviewChange, runChange } from '../support/sync.ts'

let hub: TestHub
let token: string
let key: string
let daemon_id: string
let seq = 0
const epoch = crypto.randomUUID()
beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'asker' })).token
  await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: say, type: gate, review: { prompt: "Go on?" } }]\n',
  )
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'one' })).daemon_id
})
afterAll(() => hub.stop())

async function report(...changes: object[]): Promise<void> {
  const numbered = changes.map(change => ({ ...change, seq: ++seq }))
  const batch = { protocol: 1, daemon_id, epoch, from_seq: seq - changes.length + 1, changes: numbered }
  expect((await hub.ok(token, 'runs/sync', batch)).rejected).toEqual([])
}

const waits = (id: string, log?: { lines: number; ended: boolean; kept: boolean }) =>
  runChange(id, { state: 'awaiting_input', reason: 'review', ...(log && { log }) })
const printed = (run_id: string, from: number, to: number) => ({
  ...{ kind: 'log', run_id, attempt: 1, to },
  lines: Array.from({ length: to - from + 1 }, (_, at) => ({
    ...{ seq: from + at, phase: 'say', at: 5, stream: 'stdout', text: `change ${from + at}` },
  })),
})

/** What is shown of the output of the run, without what cadre says on this machine of itself. */
async function shown(run_id: string): Promise<string[]> {
  const env = { CADRE_API_KEY: key }
  const { stdout, stderr } = await command(['reviews', '--hub', hub.url], { home: folder(), env })
  if (stdout === '') throw new Error(stderr)
  const ofRun = stdout.split('\n\n').find(each => each.includes(`run ${run_id}`))!
  const own = ofRun.split('\n').filter(line => line.startsWith('  | '))
  return own.map(line => line.slice(4).replace(/: [^:]+ (logs .*)$/, ': $1'))
}

test('what the hub lacks of the output is said, with the way to see it, and what it has is shown', async () => {
  const [whole, late, gone, kept, silent] = Array.from({ length: 5 }, () => Bun.randomUUIDv7())
  const log = { lines: 4, ended: false, kept: false }
  for (const id of [whole!, late!, gone!]) await report(waits(id, log), reviewChange(id, Bun.randomUUIDv7()))
  await report(printed(whole!, 1, 4), printed(late!, 1, 2), printed(gone!, 1, 1), printed(gone!, 4, 4))
  await report(waits(kept!, { ...log, kept: true }), reviewChange(kept!, Bun.randomUUIDv7()))
  await report(waits(silent!), reviewChange(silent!, Bun.randomUUIDv7()), printed(silent!, 1, 1))
  const lines = (...numbers: number[]) => numbers.map(n => `change ${n}`)
  const lacks = (what: string, id: string) =>
    `… the hub lacks lines of its log: ${what}; on the machine of its daemon: logs ${id} --phase say`
  // More may come while the run goes on, but all that there is has come.
  expect(await shown(whole!)).toEqual(lines(1, 2, 3, 4))
  expect(await shown(late!)).toEqual([...lines(1, 2), lacks('lines 3 to 4 are still to come', late!)])
  expect(await shown(gone!)).toEqual([...lines(1, 4), lacks('lines 2 to 3 are missing for good', gone!)])
  expect(await shown(kept!)).toEqual([
    lacks('its daemon keeps the lines, because its setting `sync` is `status`', kept!),
  ])
  expect(await shown(silent!)).toEqual([
    ...lines(1),
    lacks('its daemon does not say whether these are all lines', silent!),
  ])
  await report(printed(late!, 3, 4))
  expect(await shown(late!)).toEqual(lines(1, 2, 3, 4))
}, 60_000)
