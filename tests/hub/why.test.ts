// What the hub answers to `runs/why`: what the daemon of a run has said while it counts, and otherwise what the hub can
// tell by itself, as for daemons that explain nothing.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Explanation } from '../../lib/wire/records/run-records.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { phaseChange, runChange } from '../support/sync.ts'

let hub: TestHub
let token: string
let daemon_id: string

beforeAll(async () => {
  hub = await startTestHub()
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
})
afterAll(() => hub.stop())

async function report(...changes: object[]): Promise<void> {
  const body = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1 }
  const numbered = changes.map((change, at) => ({ ...change, seq: at + 1 }))
  expect((await hub.ok(token, 'runs/sync', { ...body, changes: numbered })).rejected).toEqual([])
}
const why = (run_id: string) => hub.ok(hub.admin, 'runs/why', { run_id })

const ended = { state: 'failed', started_at: 1_000, completed_at: 3_000 }
const explanation = (run_id: string, more: Partial<Explanation> = {}): Explanation => ({
  ...{ run_id, lines: ['It broke.'], next: [['resume', run_id]], chain: [], written: [], cancelled: [] },
  ...more,
})

test('the answer is what the daemon has said, with the commands that a hub takes', async () => {
  const run_id = crypto.randomUUID()
  const next = [
    ['resume', run_id],
    ['settings', 'set', 'network.allow', '*'],
    ['why', run_id, '--ask'],
  ]
  const found = explanation(run_id, { next, lines: ['It broke.', 'Badly.'] })
  await report(runChange(run_id, { ...ended, why: found }))
  const shown = { next: [['resume', run_id]], text: 'It broke.\nBadly.', started_by: { kind: 'unknown' } }
  expect(await why(run_id)).toEqual({ ...found, ...shown })
})

test('what a daemon said of an earlier state or attempt does not count, and neither does what has another form', async () => {
  const run_id = crypto.randomUUID()
  const asks = { state: 'awaiting_input', started_at: 1_000, why: explanation(run_id) }
  await report(runChange(run_id, asks))
  expect((await why(run_id)).lines).toEqual(['It broke.'])
  await report(runChange(run_id, { ...ended, why: { ...explanation(run_id), lines: 'none' } }))
  expect((await why(run_id)).lines[0]).toMatch(/^Run \S+ of @admin\/t failed after 2.0s/)
})

test('the run of a daemon that explains nothing is explained by its error, down to the leaf', async () => {
  const [run_id, below] = [crypto.randomUUID(), crypto.randomUUID()]
  const error = { code: 'exec_failed', message: 'no such thing', phase: 'leaf', run_id: below }
  const phase = (id: string, name: string, type: string, more: object) => {
    const { phase, ...change } = phaseChange(id)
    return { ...change, phase: { ...phase, name, type, ...ended, ...more } }
  }
  const sub = { root_run_id: run_id, parent_run_id: run_id, parent_phase: 'down', call_depth: 1 }
  const place = { call_path: ['@admin/t', '@admin/u'], tree_key: '000000000', team: '@admin/u' }
  await report(
    runChange(run_id, { ...ended, error }),
    phase(run_id, 'down', 'team', { error: { code: 'sub_run_failed', message: 'it failed' } }),
    runChange(below, { ...sub, ...place, ...ended, error }),
    phase(below, 'leaf', 'standard', { agent: 'exec', error }),
  )
  const { lines, chain, next } = await why(run_id)
  expect(lines.slice(0, 2)).toEqual([
    `Sub-run ${below} of @admin/u failed after 2.0s because its phase leaf (exec) failed: no such thing.`,
    `Run ${run_id} of @admin/t failed after 2.0s because its phase down (team) did.`,
  ])
  expect(chain).toMatchObject([
    { run_id, phase: 'down' },
    { run_id: below, phase: 'leaf' },
  ])
  expect(next).toEqual([['resume', run_id]])
})

test('a daemon can put no command into the answer that is not about its own tree, and no crowd of them', async () => {
  const [run_id, foreign] = [crypto.randomUUID(), crypto.randomUUID()]
  const next = [
    ['logs', foreign, '--phase', 'say'],
    ['cancel', foreign],
    ['why', foreign],
    ['decide', run_id, 'approve'],
    ['decide', foreign],
    ['dispatch', '@evil/team', '--hub', 'https://evil.example'],
    ['resume', run_id, '--from', '`id`'],
    ['resume', run_id, '--from', 'say'],
    ...Array.from({ length: 3_000 }, () => ['logs', run_id, '--phase', 'say']),
  ]
  await report(runChange(foreign, ended), runChange(run_id, { ...ended, why: explanation(run_id, { next }) }))
  expect((await why(run_id)).next).toEqual([['resume', run_id, '--from', 'say']])
})

test('an explanation ends when the daemon says that there is nothing to explain any more', async () => {
  const run_id = crypto.randomUUID()
  const done = { ...ended, state: 'completed' }
  await report(runChange(run_id, { ...done, why: explanation(run_id, { lines: ['A message may not have arrived.'] }) }))
  expect((await why(run_id)).lines).toEqual(['A message may not have arrived.'])
  await report(runChange(run_id, { ...done, why: null }))
  expect((await why(run_id)).lines).not.toContain('A message may not have arrived.')
})
