// Concurrency keys from the hub to daemons: real ones, of which one is killed, and a run that was started on a machine
// while a dispatched one needs the same key there.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { openHome } from '../support/sandbox.ts'

const LEASE_MS = 60_000

let hub: TestHub
let token: string

const head = (name: string, concurrency: string) => `name: "@admin/${name}"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
concurrency: ${concurrency}
`
const TRACE = `phases:
  - { name: write, agent: exec, commands: [{ name: w, env: { FILE: "{{ inputs.file }}" }, run: 'echo "$CADRE_RUN_ID" >> "$FILE"; echo "$CADRE_RUN_ID" >> "$FILE"' }] }
`
const ASK = 'phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n'

beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  for (const text of [
    head('trace', '{ key: trace }') + TRACE,
    head('ask', '{ key: "{{ inputs.file }}" }') + ASK,
    head('newest', '{ key: "{{ inputs.file }}", when_full: cancel_oldest }') + ASK,
  ]) {
    await hub.addTeam(text)
  }
})
afterAll(() => hub.stop())

const enrolled = (name: string, home = openHome()) =>
  spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: name } })

const dispatch = (team: string, file: string): Promise<{ run_id: string; waiting_for?: string }> =>
  hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: `@admin/${team}`, inputs: { file } })

const get = (run_id: string) => hub.ok(hub.admin, 'runs/get', { run_id })
const becomes = (run_id: string, state: string) =>
  until(async () => (await get(run_id)).state === state, `run ${run_id} is ${state}`, 60_000)

async function leave(...daemons: RunningDaemon[]) {
  for (const daemon of daemons) await daemon.stop()
  const { daemons: all } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  for (const { daemon_id } of all) await hub.ok(hub.admin, 'daemons/remove', { daemon_id })
}

test('runs of one key execute one after the other on two daemons, of which one is killed', async () => {
  const home = openHome()
  let [one, two] = [await enrolled('one', home), await enrolled('two')]
  const file = join(folder(), 'trace')
  const runs = await Promise.all(Array.from({ length: 8 }, () => dispatch('trace', file)))
  await becomes(runs[3]!.run_id, 'completed')
  await one.kill('SIGKILL')
  // A run that was leased to it, and that it had not recorded, is delivered again when the lease has lapsed.
  await hub.skew(LEASE_MS + 1_000)
  one = await enrolled('one', home)
  for (const { run_id } of runs) await becomes(run_id, 'completed')
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  // A killed command may be repeated, but no other run writes in between.
  const turns = lines.filter((id, at) => id !== lines[at - 1])
  expect(turns.toSorted()).toEqual(runs.map(({ run_id }) => run_id).toSorted())
  await leave(one, two)
}, 120_000)

test('a dispatched run waits for one that was started on the same machine, and both say so', async () => {
  const one = await enrolled('one')
  const file = crypto.randomUUID()
  const path = files({ 'team.yml': head('ask', '{ key: "{{ inputs.file }}" }').replace('@admin', '@local') + ASK })
  const local = await one.call('/v1/runs/start', { path, inputs: { file } })
  const first = await dispatch('ask', file)
  expect(first.waiting_for).toBeUndefined()
  await until(async () => (await get(first.run_id)).daemon_id !== null, 'the daemon has the run')
  await until(
    async () => (await get(first.run_id)).reason === `waits for the key ${file}`,
    'the hub says what it waits for',
  )
  const { text } = await one.call('/v1/runs/why', { run_id: first.run_id })
  expect(text).toContain(`waits for run ${local.run_id}, which holds the key ${file}`)
  // The place of the realm is taken meanwhile.
  const second = await dispatch('ask', file)
  expect(second.waiting_for).toBe(`run ${first.run_id}, which holds the key ${file}`)
  await one.call('/v1/runs/cancel', { run_id: local.run_id })
  await becomes(first.run_id, 'awaiting_input')
  expect((await get(first.run_id)).reason).toBe('review')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: first.run_id })
  await becomes(second.run_id, 'awaiting_input')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: second.run_id })
  await becomes(second.run_id, 'cancelled')
  await leave(one)
}, 60_000)

test('a dispatched run that waits on its daemon can be cancelled, and the next one takes its place', async () => {
  const one = await enrolled('one')
  const file = crypto.randomUUID()
  const path = files({ 'team.yml': head('ask', '{ key: "{{ inputs.file }}" }').replace('@admin', '@local') + ASK })
  const local = await one.call('/v1/runs/start', { path, inputs: { file } })
  const [first, second] = [await dispatch('ask', file), await dispatch('ask', file)]
  await until(async () => (await get(first.run_id)).daemon_id !== null, 'the daemon has the run')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: first.run_id })
  await becomes(first.run_id, 'cancelled')
  expect((await get(first.run_id)).started_at).toBeNull()
  await until(async () => (await get(second.run_id)).daemon_id !== null, 'the daemon has the next run')
  await one.call('/v1/runs/cancel', { run_id: local.run_id })
  await becomes(second.run_id, 'awaiting_input')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: second.run_id })
  await becomes(second.run_id, 'cancelled')
  await leave(one)
}, 60_000)

test('cancel_oldest reaches the daemon of the oldest run, which says for whom it ended', async () => {
  const one = await enrolled('one')
  const file = crypto.randomUUID()
  const first = await dispatch('newest', file)
  await becomes(first.run_id, 'awaiting_input')
  const second = await dispatch('newest', file)
  await becomes(second.run_id, 'awaiting_input')
  expect(await get(first.run_id)).toMatchObject({ state: 'cancelled', reason: `superseded by run ${second.run_id}` })
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: second.run_id })
  await becomes(second.run_id, 'cancelled')
  await leave(one)
}, 60_000)
