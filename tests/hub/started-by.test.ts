// Who started a run, at the hub: what a dispatch says, what travels with the job, what daemons report, and where it is seen.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let token: string
let daemon_id: string
let team: string
let seq = 0
const epoch = crypto.randomUUID()

beforeAll(async () => {
  hub = await startTestHub()
  team = await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }]\n',
  )
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
})
afterAll(() => hub.stop())

async function dispatch(bearer: string, headers: Record<string, string> = {}): Promise<string> {
  const reply = await fetch(`${hub.url}/v1/dispatch/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}`, ...headers },
    body: JSON.stringify({ realm_id: hub.realm, team }),
  })
  const { data } = (await reply.json()) as { data: { run_id: string } }
  return data.run_id
}
async function report(...changes: object[]) {
  const body = {
    daemon_id,
    epoch,
    from_seq: seq + 1,
    protocol: 1,
    changes: changes.map(each => ({ seq: ++seq, ...each })),
  }
  expect((await hub.ok(token, 'runs/sync', body)).rejected).toEqual([])
}
const get = (run_id: string) => hub.ok(hub.admin, 'runs/get', { run_id })
const listed = async (started_by: string): Promise<string[]> =>
  (await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm, started_by })).runs.map(
    ({ run_id }: { run_id: string }) => run_id,
  )
const nightly = {
  ...{ kind: 'schedule', trigger: 't', name: 'nightly', firing: 'f', slot: '2026-11-23T05:00Z', late_ms: 12 },
  catch_up: false,
}

test('a session is a person, by what it came with, and any other token is named', async () => {
  const person = (via: string) => ({ kind: 'person', name: 'admin', via })
  const minted = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'ci:main' })
  const runs = [
    await dispatch(hub.admin),
    await dispatch(hub.admin, { 'user-agent': 'cadre-cli' }),
    await dispatch(hub.admin, { 'sec-fetch-site': 'same-origin' }),
    await dispatch(minted.token),
  ]
  const found = await Promise.all(runs.map(async id => (await get(id)).started_by))
  const named = { kind: 'token', name: 'ci:main', owner: 'admin', via: 'api' }
  expect(found).toEqual([person('api'), person('cli'), person('page'), named])
  expect((await hub.ok(minted.token, 'auth/whoami')).name).toBe('ci:main')
  expect(await listed('token:ci:main')).toEqual([runs[3]!])
  expect((await listed('person:admin')).toSorted()).toEqual(runs.slice(0, 3).toSorted())
  expect(await listed('person:ada')).toEqual([])
  expect((await hub.ok(hub.admin, 'runs/why', { run_id: runs[3] })).lines.at(-1)).toBe(
    'Started by token ci:main of admin (API).',
  )
  const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots: 10, wait_ms: 0 })
  const sent = jobs.map(({ run_id, payload }: { run_id: string; payload: { started_by: unknown } }) => [
    run_id,
    payload.started_by,
  ])
  expect(Object.fromEntries(sent)[runs[3]!]).toEqual(named)
})

test('a run of the daemon has what it reports, and only that; a dispatched one keeps what the hub has said', async () => {
  const [local, old, strange, large, below, deep] = Array.from({ length: 6 }, () => crypto.randomUUID()) as [
    ...[string, string, string, string, string, string],
  ]
  const chain = { kind: 'chain', trigger: 't', name: 'c', firing: 'f', run_id: local, depth: -20 }
  const dispatched = await dispatch(hub.admin)
  await hub.ok(token, 'daemons/poll', { daemon_id, slots: 10, wait_ms: 0 })
  const under = { root_run_id: local, parent_run_id: local, parent_phase: 'a', call_depth: 1, tree_key: '000000000' }
  await report(
    runChange(local, { started_by: nightly }),
    runChange(below, { ...under, call_path: ['@admin/t', '@admin/t'], started_by: nightly }),
    runChange(old),
    runChange(strange, { started_by: { kind: 'comet', name: 'halley' } }),
    runChange(large, { started_by: { ...nightly, name: 'x'.repeat(100_000) } }),
    runChange(deep, { started_by: chain }),
    runChange(dispatched, { started_by: nightly, inputs: {} }),
  )
  expect((await get(local)).started_by).toEqual(nightly)
  expect((await get(below)).started_by).toBe(null)
  for (const id of [old, strange, large, deep]) expect((await get(id)).started_by).toEqual({ kind: 'unknown' })
  expect((await get(dispatched)).started_by).toEqual({ kind: 'person', name: 'admin', via: 'api' })
  expect(await listed('schedule:nightly')).toEqual([local])
  expect(await listed('schedule')).toEqual([local])
  expect((await listed('unknown')).toSorted()).toEqual([old, strange, large, deep].toSorted())
  await report(runChange(local, { started_by: { ...nightly, name: 'other' } }, 2))
  expect((await get(local)).started_by).toEqual(nightly)
})

test('a moved run names the one before and who moved it, and webhooks tell who started a run', async () => {
  const got: { data: { run_id: string; started_by: unknown } }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      got.push((await request.json()) as (typeof got)[number])
      return new Response()
    },
  })
  try {
    const url = `http://127.0.0.1:${server.port}/hook`
    await hub.ok(hub.admin, 'realms/add_webhook', { realm_id: hub.realm, url, events: ['run.completed'] })
    const run_id = crypto.randomUUID()
    await report(runChange(run_id, { started_by: nightly, state: 'completed', completed_at: 2_000, outputs: {} }))
    await hub.sendWebhooks()
    await until(() => got.length > 0, 'the message')
    expect(got[0]!.data).toMatchObject({ run_id, started_by: nightly })
  } finally {
    await server.stop(true)
  }
  const other = (await hub.ok(token, 'daemons/register', { name: 'e' })).daemon_id
  const before = await dispatch(hub.admin)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/move', { run_id: before, daemon_id: other, force: true })
  expect((await get(run_id)).started_by).toEqual({ kind: 'move', run_id: before, by: 'admin' })
  expect(await listed('move:admin')).toEqual([run_id])
})
