// Triggers of a realm: what a schedule dispatches, what becomes of slots that start nothing, and what operators change. The
// clock of the hub is moved from slot to slot.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type RealmTriggerHub, realmTriggers, TEAM } from '../support/realm-triggers.ts'

let hub: TestHub
let t: RealmTriggerHub
let daemon: { token: string; daemon_id: string }

beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = { token, daemon_id: (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id }
})
afterAll(() => hub.stop())

test('a list of triggers is of a kind and of a team, in whatever version', async () => {
  const other = await hub.addTeam(TEAM.replace('@admin/digest', '@admin/digest-more'))
  const { name } = await t.schedule({ team: `${other}@^1` })
  const named = async (filter: object) =>
    (await t.call('list', { realm_id: hub.realm, ...filter })).triggers.map((each: { name: string }) => each.name)
  expect(await named({ team: other })).toEqual([name])
  expect(await named({ team: `${other}@2.0.0`, kind: 'schedule' })).toEqual([name])
  expect(await named({ team: other, kind: 'hook' })).toEqual([])
  expect(await named({ team: t.team })).not.toContain(name)
})

test('a slot that is due dispatches a run with the version, the inputs and the starter of that moment', async () => {
  const added = await t.schedule({ inputs: { day: '{{ slot }}' }, run_name: 'morning', priority: 5 })
  expect(added).toMatchObject({ state: 'active', owner: 'admin', tz: 'UTC', revision: 1, last: [], priority: 5 })
  expect(added.next).toHaveLength(5)
  await t.slot()
  const [firing] = await t.fired(added, 1)
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
  expect(run).toMatchObject({ team: t.team, version: '1.0.0', run_name: 'morning', inputs: { day: slot }, started_by })
  const { jobs } = await hub.ok(daemon.token, 'daemons/poll', { daemon_id: daemon.daemon_id, slots: 10, wait_ms: 0 })
  const job = jobs.find(({ run_id }: { run_id: string }) => run_id === firing!.run_id)
  expect(job.payload).toMatchObject({ inputs: { day: slot }, started_by })
  const { triggers } = await t.call('list', { realm_id: hub.realm })
  expect(triggers.find(({ id }: { id: string }) => id === added.id).last).toEqual([firing])
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  const of = (action: string) => audit.find((entry: { action: string }) => entry.action === action)
  expect(of('triggers/add')).toMatchObject({
    username: 'admin',
    target: `${added.name}: ${t.team}`,
    realm_id: hub.realm,
  })
  expect(of('triggers/fire')).toMatchObject({ username: 'admin', token_id: null, address: null })
  await t.call('remove', { trigger_id: added.id })
})

test('a slot is skipped while the run before has not ended, and starts after its end', async () => {
  const added = await t.schedule()
  await t.slot()
  const [first] = await t.fired(added, 1)
  await t.slot()
  const [second] = await t.fired(added, 2)
  expect(second).toMatchObject({ state: 'skipped', reason: 'overlap', run_id: null })
  expect(second!.detail).toBe(`run ${first!.run_id} has not ended`)
  await t.end(first!.run_id)
  await t.slot()
  const [third] = await t.fired(added, 3)
  expect(third).toMatchObject({ state: 'started', reason: null })
  await t.call('remove', { trigger_id: added.id })
})

test('runs start with the rights that the owner has then, and another operator takes a trigger over', async () => {
  const ann = await t.person('ann')
  const added = await t.schedule()
  const owned = await hub.ok(ann, 'triggers/update', { trigger_id: added.id, owner: 'me' })
  expect(owned).toMatchObject({ owner: 'ann', created_by: 'admin', state: 'active', revision: 2 })
  await t.slot()
  const [first] = await t.fired(added, 1)
  expect(first).toMatchObject({ state: 'started' })
  await t.end(first!.run_id)

  const removed = await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'ann' })
  expect(removed.owns.triggers).toEqual([{ id: added.id, realm_id: hub.realm, name: added.name }])
  expect(await t.call('get', { trigger_id: added.id })).toMatchObject({ state: 'broken', problem: { reason: 'owner' } })
  await t.slot()
  const [second] = await t.fired(added, 2)
  expect(second).toMatchObject({ state: 'refused', reason: 'owner', run_id: null })
  expect(second!.detail).toBe('ann, who owns it, may not start runs in the realm any more')
  expect((await hub.call(ann, 'triggers/get', { trigger_id: added.id })).status).toBe(404)

  const taken = await t.call('update', { trigger_id: added.id, owner: 'me' })
  expect(taken).toMatchObject({ owner: 'admin', state: 'active', problem: null })
  await t.slot()
  const [third] = await t.fired(added, 3)
  expect(third).toMatchObject({ state: 'started' })
  await t.call('remove', { trigger_id: added.id })
})

test('a trigger whose team leaves the list is broken, and goes on when the team is back', async () => {
  const added = await t.schedule()
  await hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, notify: { on_fail: ['chat:ops'] } })
  await hub.ok(hub.admin, 'realms/remove_team', { realm_id: hub.realm, team: t.team })
  await t.slot()
  const [first] = await t.fired(added, 1)
  expect(first).toMatchObject({ state: 'refused', reason: 'team' })
  expect(first!.detail).toContain('is not on the team list')
  const { state, problem } = await t.call('get', { trigger_id: added.id })
  expect([state, problem.reason]).toEqual(['broken', 'team'])
  // Accounts are told once.
  const tells = await hub.store.db.select().from(hub.store.tells)
  expect(tells).toMatchObject([{ account: 'chat:ops', subject: added.id }])
  expect(tells[0]!.text).toContain(`trigger ${added.name} is broken (team), and starts nothing until that ends: `)
  await hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, notify: null })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: t.team })
  await t.slot()
  const [second] = await t.fired(added, 2)
  expect(second).toMatchObject({ state: 'started' })
  expect((await t.call('get', { trigger_id: added.id })).state).toBe('active')
  expect((await t.call('refire', { firing_id: first!.id })).state).toBe('skipped')
  await t.call('remove', { trigger_id: added.id })
})
