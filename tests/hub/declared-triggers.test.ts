// Triggers that a package declares, in a realm: nothing starts before an operator enables one, and nothing new after another
// version says something else.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHub } from '../../lib/hub/serve.ts'
import { checkTriggers } from '../../lib/hub/triggers/check-triggers.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { post, SECRET, signed } from '../support/hooks.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { MINUTE, type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'
import { reporter } from '../support/reporter.ts'

let hub: TestHub
let t: RealmTriggerHub
let versions = 0
beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
})
afterAll(() => hub.stop())

/** A team with these triggers, in its next version. Returns that. */
async function publish(triggers: string, team = 'weekly'): Promise<string> {
  const version = `1.${++versions}.0`
  await hub.addTeam(`name: "@admin/${team}"
version: ${version}
inputs: [{ name: day, type: string, default: "" }]
${triggers === '' ? '' : `triggers: [${triggers}]`}
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`)
  return version
}
const nightly = (day: string) =>
  `{ name: nightly, schedule: { cron: "*/5 * * * *", tz: UTC }, overlap: allow, inputs: { day: "${day}" } }`
/** Half a minute after a slot, and then the next one. */
const begin = () => t.later(5 * MINUTE - (t.now() % (5 * MINUTE)) + MINUTE / 2)
const enable = (name: string, fields: object = {}, team = '@admin/weekly') =>
  t.call('enable', { realm_id: hub.realm, team, name, ...fields })
const refused = async (path: string, body: object): Promise<unknown[]> => {
  const { status, error } = await hub.call(hub.admin, `triggers/${path}`, body)
  return [status, error?.message]
}
/** What hubs do every thirty seconds. */
const check = () =>
  Array.fromAsync(checkTriggers(createHub({ store: hub.store, log: createLog({ write: () => {} }), home: folder() })))

test('a schedule starts runs once it is enabled, and says where it stands', async () => {
  const version = await publish(nightly('{{ slot }}'))
  expect((await t.call('list', { realm_id: hub.realm })).total).toBe(0)
  await begin()
  const enabled = await enable('nightly')
  const source = { team: '@admin/weekly', version, name: 'nightly' }
  expect(enabled).toMatchObject({
    name: 'nightly',
    team: '@admin/weekly',
    state: 'active',
    source,
    revision: 1,
  })
  expect(enabled).toMatchObject({ owner: 'admin', cron: '*/5 * * * *', inputs: { day: '{{ slot }}' } })
  await t.slot()
  const { run_id } = await t.firing(enabled, { state: 'started' })
  expect((await hub.ok(hub.admin, 'runs/get', { run_id })).version).toBe(version)
  // Its spec stands in the package.
  const text = 'nightly is defined in the team.yml of @admin/weekly: change it there, and enable it again'
  const which = { trigger_id: enabled.id }
  expect(await refused('update', { ...which, cron: '@daily' })).toEqual([409, text])
  expect(await t.call('update', { ...which, owner: 'me', priority: 3 })).toMatchObject({ priority: 3, revision: 2 })
  await t.call('disable', which)
  expect(await t.call('enable', which)).toMatchObject({ id: enabled.id, state: 'active', priority: 3 })
  await t.remove(enabled)
})

test('another spec in a new version is never taken silently', async () => {
  await begin()
  await publish(nightly('a'))
  const added = await enable('nightly')
  const version = await publish(nightly('b'))
  await t.slot()
  const text = `the spec of nightly changed in ${version}; enable it again`
  expect(await t.firing(added, { state: 'refused' })).toMatchObject({ reason: 'team', detail: text, run_id: null })
  const get = () => t.call('get', { trigger_id: added.id })
  expect(await get()).toMatchObject({ state: 'broken', problem: { reason: 'team', text }, next: [] })
  await check()
  expect(await get()).toMatchObject({ state: 'broken' })
  const again = await enable('nightly')
  expect(again).toMatchObject({ id: added.id, state: 'active', inputs: { day: 'b' }, source: { version } })
  await t.slot()
  await t.firing(added, { state: 'started' })
  // What changes beside it is no matter of the trigger.
  await publish(`${nightly('b')}, { name: other, hook: { scheme: github } }`)
  await check()
  expect(await get()).toMatchObject({ state: 'active' })
  const gone = await publish('')
  await check()
  expect((await get()).problem.text).toBe(`the spec of nightly is gone in ${gone}; enable it again`)
  // It ends by itself when a version says the same again.
  await publish(nightly('b'))
  await check()
  expect(await get()).toMatchObject({ state: 'active', problem: null })
  await t.remove(added)
})

test('only what a change can mend ends a problem, so each is told once', async () => {
  await begin()
  const all = async () => {
    const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
    return audit.filter(({ action }: { action: string }) => action === 'triggers/broken').length
  }
  const before = await all()
  const told = async () => (await all()) - before
  await publish(nightly('a'))
  const { id: trigger_id } = await enable('nightly')
  await publish(nightly('b'))
  await check()
  for (const change of [{ name: 'weeknights' }, { priority: 3 }, { owner: 'me' }, { keep: false }]) {
    const { state, problem } = await t.call('update', { trigger_id, ...change })
    expect([state, problem?.reason]).toEqual(['broken', 'team'])
    await check()
  }
  expect(await told()).toBe(1)
  expect(await t.call('update', { trigger_id, keep: true })).toMatchObject({ state: 'active', problem: null })
  await check()
  expect(await t.call('get', { trigger_id })).toMatchObject({ state: 'active', problem: null })
  expect(await told()).toBe(1)
  // An owner who lost the right has no part in what others change.
  await t.person('olga')
  const { token } = await hub.ok(null, 'session/create', { username: 'olga', password: 'password of a test' })
  await hub.ok(token, 'triggers/update', { trigger_id, owner: 'me' })
  await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'olga' })
  await check()
  for (const change of [{ name: 'nightly' }, { priority: 4 }, { keep: true }]) {
    expect((await t.call('update', { trigger_id, ...change })).problem).toMatchObject({ reason: 'owner' })
    await check()
  }
  expect((await enable('nightly')).problem).toMatchObject({ reason: 'owner' })
  await check()
  expect(await told()).toBe(2)
  expect(await t.call('update', { trigger_id, owner: 'me' })).toMatchObject({ state: 'active', problem: null })
  await t.call('remove', { trigger_id })
})

test('a range that a new version does not fit goes on, and so does one that is kept', async () => {
  await begin()
  const version = await publish(nightly('a'))
  const pinned = await enable('nightly', {}, `@admin/weekly@${version}`)
  await publish(nightly('b'))
  await check()
  expect(await t.call('get', { trigger_id: pinned.id })).toMatchObject({ state: 'active', problem: null })
  const moved = await enable('nightly')
  expect(moved).toMatchObject({ id: pinned.id, team: '@admin/weekly', inputs: { day: 'b' } })
  const changed = await publish(nightly('c'))
  await check()
  expect(await t.call('get', { trigger_id: moved.id })).toMatchObject({ state: 'broken' })
  const kept = await t.call('update', { trigger_id: moved.id, keep: true })
  expect(kept).toMatchObject({ state: 'active', problem: null, inputs: { day: 'b' } })
  await check()
  await t.slot()
  const { run_id } = await t.firing(moved, { state: 'started' })
  expect((await hub.ok(hub.admin, 'runs/get', { run_id })).version).toBe(changed)
  await t.remove(moved)
  const manual = await t.schedule()
  expect((await refused('update', { trigger_id: manual.id, keep: true }))[0]).toBe(400)
  await t.remove(manual)
})

test('a hook takes its secret when it is enabled, and another one by a change', async () => {
  await publish('{ name: opened, hook: { scheme: github }, inputs: { day: "{{ body.day }}" } }')
  const needs = await refused('enable', { realm_id: hub.realm, team: '@admin/weekly', name: 'opened' })
  expect(needs).toEqual([400, expect.stringContaining('secret: is required')])
  const added = await enable('opened', { secret: SECRET })
  const body = '{"day":"Monday"}'
  const sent = await post(hub.url + added.url, body, signed(body, 'd-1'))
  expect(sent.body.data).toMatchObject({ state: 'started' })
  const twice = await refused('enable', { realm_id: hub.realm, team: '@admin/weekly', name: 'opened', secret: SECRET })
  expect(twice).toEqual([409, expect.stringContaining('has a secret already')])
  const changed = await t.call('update', { trigger_id: added.id, add_secret: `${SECRET}-other` })
  expect(changed.secrets).toHaveLength(2)
  const version = await publish('{ name: opened, hook: { scheme: github }, inputs: { day: "{{ body.date }}" } }')
  const late = await post(hub.url + added.url, body, signed(body, 'd-2'))
  expect([late.status, late.body.data]).toMatchObject([202, { state: 'refused', reason: 'team' }])
  expect((await t.firings(added))[0]!.detail).toContain(`changed in ${version}`)
  expect(await enable('opened')).toMatchObject({ id: added.id, url: added.url, state: 'active' })
  await t.remove(added)
})

test('a chain is enabled, unless that makes a circle', async () => {
  await publish('', 'build')
  const follow = '{ name: follow, chain: { after: "@admin/build" } }'
  await publish(follow)
  const added = await enable('follow')
  expect(added).toMatchObject({ kind: 'chain', after: '@admin/build', source: { name: 'follow' } })
  const r = await reporter(hub)
  await r.ended({ team: '@admin/build', call_path: ['@admin/build'] })
  await t.firing(added, { state: 'started' })
  await publish('{ name: back, chain: { after: weekly } }', 'build')
  const circle = await refused('enable', { realm_id: hub.realm, team: '@admin/build', name: 'back' })
  expect(circle).toEqual([409, expect.stringContaining('for ever: back → follow → back')])
  await t.remove(added)
})

test('two teams may declare triggers of one name: one of them gets another here', async () => {
  await publish(nightly('a'))
  await publish(nightly('z'), 'daily')
  const one = await enable('nightly')
  const body = { realm_id: hub.realm, team: '@admin/daily', name: 'nightly' }
  const other = 'has the trigger nightly of @admin/weekly: give that one another `name` with triggers/update first'
  expect(await refused('enable', body)).toEqual([409, expect.stringContaining(other)])
  expect(await t.call('update', { trigger_id: one.id, name: 'weekly-nightly' })).toMatchObject({
    ...{ name: 'weekly-nightly', source: { name: 'nightly' }, state: 'active' },
  })
  const two = await enable('nightly', {}, '@admin/daily')
  expect([two.name, two.team]).toEqual(['nightly', '@admin/daily'])
  // Each is found by what declares it, whatever its name is here.
  expect(await enable('nightly')).toMatchObject({ id: one.id, name: 'weekly-nightly' })
  await t.call('disable', { trigger_id: one.id })
  expect(await t.call('enable', { trigger_id: one.id })).toMatchObject({ id: one.id, name: 'weekly-nightly' })
  expect(await enable('nightly', {}, '@admin/daily')).toMatchObject({ id: two.id })
  await t.remove(one)
  await t.remove(two)
})

test('a watch is for homes, and what is not declared is not there', async () => {
  await publish(`{ name: papers, watch: { folder: ~/in, match: ["*.pdf"] } }, ${nightly('a')}`)
  const of = (name: string, more: object = {}) =>
    refused('enable', { realm_id: hub.realm, team: '@admin/weekly', name, ...more })
  expect(await of('papers')).toEqual([400, expect.stringContaining('papers watches a folder, which a hub has none of')])
  expect(await of('nightle')).toEqual([404, expect.stringContaining('did you mean `nightly`')])
  expect(await of('nightly', { team: '@admin/none' })).toEqual([409, expect.stringContaining('@admin/none')])
  const elsewhere = { team: '@admin/weekly', name: 'nightly' }
  expect(await refused('enable', elsewhere)).toEqual([400, expect.stringContaining('realm_id')])
  expect(await refused('enable', { team: '@admin/weekly', realm_id: hub.realm })).toEqual([
    ...[400, expect.stringContaining('name')],
  ])
})

test('only operators enable, the name is free, and a trigger that changed its kind is removed first', async () => {
  await publish(nightly('a'))
  const member = await t.person('mia', 'member')
  const body = { realm_id: hub.realm, team: '@admin/weekly', name: 'nightly' }
  expect((await hub.call(member, 'triggers/enable', body)).status).toBe(403)
  const manual = await t.schedule({ name: 'nightly' })
  expect((await refused('enable', body))[0]).toBe(409)
  await t.remove(manual)
  const added = await enable('nightly')
  await publish('{ name: nightly, hook: { scheme: github } }')
  expect(await refused('enable', { ...body, secret: SECRET })).toEqual([
    ...[409, expect.stringContaining('nightly is a schedule here and a hook in the file')],
  ])
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 20 })
  expect(audit.find(({ action }: { action: string }) => action === 'triggers/enable')).toMatchObject({
    ...{ username: 'admin', target: 'nightly: @admin/weekly', realm_id: hub.realm },
  })
  await t.remove(added)
})
