// Triggers of a realm: what a schedule dispatches, what becomes of slots that start nothing, and what operators change. The
// clock of the hub is moved from slot to slot.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

const MINUTE = 60_000
const TEAM = `name: "@admin/digest"
version: 1.0.0
inputs: [{ name: day, type: string, default: "" }, { name: key, type: string, secret: true }]
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`

let hub: TestHub
let team: string
let daemon: { token: string; daemon_id: string }
/** How far the clock of the hub is ahead. */
let ahead = 0
let names = 0

beforeAll(async () => {
  hub = await startTestHub()
  team = await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = { token, daemon_id: (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id }
})
afterAll(() => hub.stop())

interface Firing {
  id: string
  state: string
  reason: string | null
  detail: string | null
  occasion: string
  run_id: string | null
  count: number
}

/** A schedule of every five minutes, or what the fields say. The clock stands half a minute after a slot. */
async function schedule(fields: object = {}) {
  const every = 5 * MINUTE
  const now = Date.now() + ahead
  await later(every - (now % every) + MINUTE / 2)
  const body = { realm_id: hub.realm, name: `s${++names}`, kind: 'schedule', team, cron: '*/5 * * * *', ...fields }
  return hub.ok(hub.admin, 'triggers/add', body)
}

async function later(ms: number): Promise<void> {
  ahead += ms
  await hub.skew(ahead)
}

const call = (path: string, body: object) => hub.ok(hub.admin, `triggers/${path}`, body)
const firingsOf = async ({ id: trigger_id }: { id: string }): Promise<Firing[]> =>
  (await call('firings', { trigger_id })).firings
/** The newest firings of a trigger, once there are so many. */
const fired = (trigger: { id: string }, count: number): Promise<Firing[]> =>
  until(async () => {
    const all = await firingsOf(trigger)
    return all.length >= count && all
  }, `${count} firings`)

/** No daemon has taken the run, so that it ends at once. */
const end = (run_id: string | null) => hub.ok(hub.admin, 'dispatch/cancel', { run_id })

test('a slot that is due dispatches a run with the version, the inputs and the starter of that moment', async () => {
  const added = await schedule({ inputs: { day: '{{ slot }}' }, run_name: 'morning', priority: 5 })
  expect(added).toMatchObject({ state: 'active', owner: 'admin', tz: 'UTC', revision: 1, last: [], priority: 5 })
  expect(added.next).toHaveLength(5)
  await later(5 * MINUTE)
  const [firing] = await fired(added, 1)
  expect(firing).toMatchObject({ state: 'started', reason: null, count: 1 })
  const slot = `${new Date(added.next[0].at).toISOString().slice(0, 16)}Z`
  expect(firing!.occasion).toBe(slot)
  const run = await hub.ok(hub.admin, 'runs/get', { run_id: firing!.run_id })
  const started_by = {
    kind: 'schedule',
    trigger: added.id,
    name: added.name,
    firing: firing!.id,
    slot,
    catch_up: false,
  }
  expect(run).toMatchObject({ team, version: '1.0.0', run_name: 'morning', inputs: { day: slot }, started_by })
  const { jobs } = await hub.ok(daemon.token, 'daemons/poll', { daemon_id: daemon.daemon_id, slots: 10, wait_ms: 0 })
  const job = jobs.find(({ run_id }: { run_id: string }) => run_id === firing!.run_id)
  expect(job.payload).toMatchObject({ inputs: { day: slot }, started_by })
  const { triggers } = await call('list', { realm_id: hub.realm })
  expect(triggers.find(({ id }: { id: string }) => id === added.id).last).toEqual([firing])
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  const of = (action: string) => audit.find((entry: { action: string }) => entry.action === action)
  expect(of('triggers/add')).toMatchObject({ username: 'admin', target: `${added.name}: ${team}`, realm_id: hub.realm })
  expect(of('triggers/fire')).toMatchObject({ username: 'admin', token_id: null, address: null })
  await call('remove', { trigger_id: added.id })
})

test('a slot is skipped while the run before has not ended, and starts after its end', async () => {
  const added = await schedule()
  await later(5 * MINUTE)
  const [first] = await fired(added, 1)
  await later(5 * MINUTE)
  const [second] = await fired(added, 2)
  expect(second).toMatchObject({ state: 'skipped', reason: 'overlap', run_id: null })
  expect(second!.detail).toBe(`run ${first!.run_id} has not ended`)
  await end(first!.run_id)
  await later(5 * MINUTE)
  const [third] = await fired(added, 3)
  expect(third).toMatchObject({ state: 'started', reason: null })
  await call('remove', { trigger_id: added.id })
})

/** An operator of the realm. */
async function operator(username: string): Promise<string> {
  const { token } = await hub.account(username)
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role: 'operator' })
  return token
}

test('runs start with the rights that the owner has then, and another operator takes a trigger over', async () => {
  const ann = await operator('ann')
  const added = await schedule()
  const owned = await hub.ok(ann, 'triggers/update', { trigger_id: added.id, owner: 'me' })
  expect(owned).toMatchObject({ owner: 'ann', created_by: 'admin', state: 'active', revision: 2 })
  await later(5 * MINUTE)
  const [first] = await fired(added, 1)
  expect(first).toMatchObject({ state: 'started' })
  await end(first!.run_id)

  const removed = await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'ann' })
  expect(removed.owns.triggers).toEqual([{ id: added.id, realm_id: hub.realm, name: added.name }])
  expect(await call('get', { trigger_id: added.id })).toMatchObject({ state: 'broken', problem: { reason: 'owner' } })
  await later(5 * MINUTE)
  const [second] = await fired(added, 2)
  expect(second).toMatchObject({ state: 'refused', reason: 'owner', run_id: null })
  expect(second!.detail).toBe('ann, who owns it, may not start runs in the realm any more')
  expect((await hub.call(ann, 'triggers/get', { trigger_id: added.id })).status).toBe(404)

  const taken = await call('update', { trigger_id: added.id, owner: 'me' })
  expect(taken).toMatchObject({ owner: 'admin', state: 'active', problem: null })
  await later(5 * MINUTE)
  const [third] = await fired(added, 3)
  expect(third).toMatchObject({ state: 'started' })
  await call('remove', { trigger_id: added.id })
})

test('a trigger whose team leaves the list is broken, and goes on when the team is back', async () => {
  const added = await schedule()
  await hub.ok(hub.admin, 'realms/remove_team', { realm_id: hub.realm, team })
  await later(5 * MINUTE)
  const [first] = await fired(added, 1)
  expect(first).toMatchObject({ state: 'refused', reason: 'team' })
  expect(first!.detail).toContain('is not on the team list')
  const { state, problem } = await call('get', { trigger_id: added.id })
  expect([state, problem.reason]).toEqual(['broken', 'team'])
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team })
  await later(5 * MINUTE)
  const [second] = await fired(added, 2)
  expect(second).toMatchObject({ state: 'started' })
  expect((await call('get', { trigger_id: added.id })).state).toBe('active')
  expect((await call('refire', { firing_id: first!.id })).state).toBe('skipped')
  await call('remove', { trigger_id: added.id })
})
