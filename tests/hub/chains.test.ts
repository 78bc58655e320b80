// Chains of a realm: the end of a top run starts another team, once, and never in a circle. A daemon of the test reports
// the ends.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type Firing, type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'
import { reporter } from '../support/reporter.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let t: RealmTriggerHub
let r: Awaited<ReturnType<typeof reporter>>
let names = 0

const teamText = (name: string) => `name: "@admin/${name}"
version: 1.0.0
inputs: [{ name: said, type: string, default: "" }]
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`

beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
  for (const name of ['build', 'next', 'a', 'b', 'c', 'd']) await hub.addTeam(teamText(name))
  r = await reporter(hub)
})
afterAll(() => hub.stop())

const chain = (fields: object = {}) =>
  t.call('add', {
    ...{ realm_id: hub.realm, name: `chain-${++names}`, kind: 'chain', team: '@admin/next', after: '@admin/build' },
    ...fields,
  })
const codeOf = async (path: string, body: object): Promise<unknown[]> => {
  const { status, error } = await hub.call(hub.admin, `triggers/${path}`, body)
  return [status, error?.code, error?.message]
}
const build = { team: '@admin/build', call_path: ['@admin/build'] }
const ended = (fields: object = {}) => r.ended({ ...build, ...fields })
const runOf = (run_id: string | null) => hub.ok(hub.admin, 'runs/get', { run_id })
const shown = (all: readonly Firing[]) => all.map(({ occasion, state, reason }) => [occasion, state, reason])

test('the end of a run dispatches the next one, which knows what it was', async () => {
  const said =
    '{{ run.team }} {{ run.version }} {{ run.state }} {{ string(int(run.outputs.number)) }} {{ run.started_by.kind }}'
  const added = await chain({ inputs: { said } })
  expect(added).toMatchObject({ kind: 'chain', after: '@admin/build', on: ['completed'], again: false, owner: 'admin' })
  expect(added).toMatchObject({ state: 'active', overlap: 'allow', next: [] })
  const started_by = { kind: 'person', name: 'ada', via: 'cli' }
  const run_id = await ended({ outputs: { number: 7 }, started_by })
  const firing = await t.firing(added, { state: 'started' })
  expect(firing.occasion).toBe(run_id)
  const run = await runOf(firing.run_id)
  expect(run.inputs).toEqual({ said: '@admin/build 1.0.0 completed 7 person' })
  const by = { kind: 'chain', trigger: added.id, name: added.name, firing: firing.id, run_id, depth: 1 }
  expect(run.started_by).toEqual(by)
  await t.remove(added)
})

test('the end of a run is no later than its report, whatever the clock of its daemon says', async () => {
  const added = await chain()
  const run_id = await r.end(await r.begun(build), { ...build, completed_at: Date.UTC(9_999, 0) })
  const { occasion, at, seen_at } = await t.firing(added, { state: 'started' })
  expect([occasion, at]).toEqual([run_id, seen_at])
  await t.remove(added)
})

test('outputs that are too large for a row are whole', async () => {
  const added = await chain({ inputs: { said: '{{ string(size(run.outputs.text)) }}' } })
  await ended({ outputs: { text: 'x'.repeat(50_000) } })
  const { run_id } = await t.firing(added, { state: 'started' })
  expect((await runOf(run_id)).inputs).toEqual({ said: '50000' })
  const again = await t.call('run_now', { trigger_id: added.id })
  expect((await runOf(again.run_id)).inputs).toEqual({ said: '50000' })
  await t.remove(added)
})

test('only ends that it names count, of teams that it names, of top runs, and of its realm', async () => {
  const any = await chain({ after: 'build', on: ['failed', 'cancelled'] })
  const other = await chain({ after: '@admin/built' })
  const below = await chain({ after: '@admin/d' })
  const { org_id } = await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })
  const elsewhere = await hub.ok(hub.admin, 'realms/create', { org_id, name: 'Elsewhere', slug: 'elsewhere' })
  const realm_id = elsewhere.id
  await hub.ok(hub.admin, 'realms/add_team', { realm_id, team: '@admin/next' })
  const outside = await chain({ realm_id, after: 'build', on: ['failed', 'cancelled', 'completed'] })
  await ended()
  const failed = await ended({ state: 'failed', error: { code: 'agent', message: 'no' } })
  const root = await r.begun(build)
  const parts = { root_run_id: root, parent_run_id: root, parent_phase: 'call', call_depth: 1, tree_key: '000000000' }
  await r.ended({ ...parts, team: '@admin/d', call_path: ['@admin/build', '@admin/d'] })
  const cancelled = await r.end(root, { ...build, state: 'cancelled' })
  await t.fired(any, 2)
  expect((await t.firings(any)).map(({ occasion }) => occasion).sort()).toEqual([failed, cancelled].sort())
  for (const none of [other, below, outside]) expect(await t.firings(none)).toEqual([])
  for (const each of [any, other, below, outside]) await t.remove(each)
})

test('a run that the hub itself ends counts as well', async () => {
  const added = await chain({
    on: ['cancelled', 'failed'],
    inputs: { said: '{{ run.state }} {{ run.started_by.kind }}' },
  })
  const dispatch = { realm_id: hub.realm, team: '@admin/build' }
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', dispatch)
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  const first = await t.firing(added, { occasion: run_id, state: 'started' })
  expect((await runOf(first.run_id)).inputs).toEqual({ said: 'cancelled person' })
  const late = await hub.ok(hub.admin, 'dispatch/run', {
    ...dispatch,
    queue_timeout: '1ms',
    requires: { labels: { no: 'x' } },
  })
  const second = await t.firing(added, { occasion: late.run_id, state: 'started' })
  expect((await runOf(second.run_id)).inputs).toEqual({ said: 'failed person' })
  await t.remove(added)
})

test('a report that comes twice is one occasion, and so is a run that is resumed, unless each attempt counts', async () => {
  const once = await chain({ on: ['completed', 'failed'] })
  const again = await chain({ on: ['completed', 'failed'], again: true })
  const failed = { ...build, state: 'failed', error: { code: 'agent', message: 'no' } }
  const run_id = await r.ended(failed)
  await r.repeat()
  await r.anew([[run_id, failed]])
  await t.firing(once, { state: 'started' })
  await r.end(run_id, build, 2)
  await t.fired(again, 2)
  expect(shown(await t.firings(once))).toEqual([[run_id, 'started', null]])
  const all = (await t.firings(again)).map(({ occasion }) => occasion)
  expect(all).toEqual([`${run_id}/2`, `${run_id}/1`])
  const second = await t.firing(again, { occasion: `${run_id}/2`, state: 'started' })
  expect((await runOf(second.run_id)).started_by).toMatchObject({ run_id, depth: 1, attempt: 2 })
  for (const each of [once, again]) await t.remove(each)
})

test('ends are recorded while it is paused, and not while it is disabled', async () => {
  const added = await chain()
  const which = { trigger_id: added.id }
  await t.call('pause', { ...which, reason: 'the week of the fair' })
  const passed = await ended()
  await t.call('resume', which)
  await t.call('disable', which)
  await ended()
  await t.call('enable', which)
  expect(shown(await t.firings(added))).toEqual([[passed, 'skipped', 'paused']])
  expect((await t.firings(added))[0]!.detail).toBe('paused by admin: the week of the fair')
  const [firing] = await t.firings(added)
  const refired = await t.call('refire', { firing_id: firing!.id })
  expect(refired).toMatchObject({ state: 'started', occasion: `${passed}#2`, manual: { by: 'admin' } })
  expect((await runOf(refired.run_id)).started_by).toMatchObject({ run_id: passed, depth: 1, manual: { by: 'admin' } })
  expect((await codeOf('refire', { firing_id: firing!.id })).slice(0, 2)).toEqual([409, 'conflict'])
  await t.remove(added)
})

test('by hand it follows the newest end, and none where there is none', async () => {
  const none = await chain({ after: 'never' })
  expect(await codeOf('run_now', { trigger_id: none.id })).toEqual([
    ...[409, 'invalid_state', 'no run of never has completed yet'],
  ])
  const added = await chain({ inputs: { said: '{{ run.run_id }}' } })
  await ended()
  const newest = await ended()
  await ended({ state: 'failed', error: { code: 'agent', message: 'no' } })
  const fired = await t.call('run_now', { trigger_id: added.id })
  const run = await runOf(fired.run_id)
  expect(run.inputs).toEqual({ said: newest })
  expect(run.started_by).toMatchObject({ kind: 'chain', run_id: newest, depth: 1, manual: { by: 'admin' } })
  const again = await t.call('refire', { firing_id: fired.id, again: true })
  expect((await runOf(again.run_id)).inputs).toEqual({ said: newest })
  for (const each of [none, added]) await t.remove(each)
})

test('when, inputs, overlap and at_most say what becomes of an end', async () => {
  const when = await chain({ when: 'run.outputs.number > 5' })
  const inputs = await chain({ inputs: { said: '{{ run.outputs.lost }}' } })
  const skip = await chain({ overlap: 'skip' })
  const most = await chain({ at_most: { count: 1, per: '1h' } })
  const first = await ended({ outputs: { number: 3 } })
  await t.firing(skip, { occasion: first, state: 'started' })
  const second = await ended({ outputs: { number: 7 } })
  await t.firing(when, { occasion: second, state: 'started' })
  await t.firing(most, { occasion: second, state: 'waiting', reason: 'limit' })
  await t.firing(skip, { occasion: second, state: 'skipped', reason: 'overlap' })
  await t.fired(inputs, 2)
  await t.firing(inputs, { occasion: second, state: 'refused' })
  expect(await t.rows(when)).toEqual(['skipped when', 'started'])
  expect(await t.rows(most)).toEqual(['started', 'waiting limit'])
  expect((await t.rows(inputs)).map(row => row.split(' ')[0])).toEqual(['refused', 'refused'])
  for (const each of [when, inputs, skip, most]) await t.remove(each)
})

test('of the ends that come while a run of it goes on, the newest wait, and what starts nothing takes no place', async () => {
  const queue = await chain({ overlap: 'queue', when: 'run.outputs.number > 5' })
  const cancels = await chain({ overlap: 'cancel_running' })
  const first = await ended({ outputs: { number: 7 } })
  const { run_id } = await t.firing(queue, { occasion: first, state: 'started' })
  const before = await t.firing(cancels, { occasion: first, state: 'started' })
  // They come in one report, so that one look judges them all.
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await r.begun(build))
  const over = (number: number) => ({
    ...{ ...build, state: 'completed', started_at: Date.now(), completed_at: Date.now(), outputs: { number } },
  })
  await r.send(ids.map((id, at) => runChange(id, over(at === 3 ? 3 : 7))))
  await t.firing(queue, { occasion: ids[2]!, state: 'waiting', reason: 'overlap' })
  const words = (all: readonly Firing[]) =>
    ids
      .map(id => all.find(({ occasion }) => occasion === id))
      .map(firing => [firing?.state, firing?.reason].filter(Boolean).join(' '))
  const judged = ['skipped superseded', 'skipped superseded', 'waiting overlap', 'skipped when']
  await until(async () => Bun.deepEquals(words(await t.firings(queue)), judged), 'all are judged')
  await t.end(run_id)
  await t.firing(queue, { occasion: ids[2]!, state: 'started' })
  await until(async () => (await runOf(before.run_id)).state === 'cancelled', 'the run before has ended')
  const last = await t.firing(cancels, { occasion: ids[3]!, state: 'started' })
  expect(words(await t.firings(cancels)).slice(0, 3)).toEqual(Array(3).fill('skipped superseded'))
  for (const each of [queue, cancels]) await t.remove(each)
  await t.end(last.run_id)
})

test('where the realm has room for some of those that wait, these start', async () => {
  const { org_id } = await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id, name: 'Small', slug: 'small' })
  for (const team of ['@admin/build', '@admin/next']) await hub.ok(hub.admin, 'realms/add_team', { realm_id, team })
  await hub.ok(hub.admin, 'realms/update', { realm_id, quotas: { waiting: 3 } })
  const small = await reporter(hub, 'small', realm_id)
  const added = await chain({ realm_id })
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push(await small.begun(build))
  const over = { ...build, state: 'completed', started_at: Date.now(), completed_at: Date.now() }
  await small.send(ids.map(id => runChange(id, over)))
  const rows = () => t.rows(added)
  const full = ['started', 'started', 'started', 'waiting limit', 'waiting limit']
  await until(async () => Bun.deepEquals(await rows(), full), 'three have started, and two wait')
  const [first] = (await t.firings(added)).filter(({ state }) => state === 'started')
  await t.end(first!.run_id)
  await until(async () => Bun.deepEquals(await rows(), full.with(3, 'started')), 'the next one has started')
  await t.remove(added)
})

test('what waits when it is disabled starts nothing when it is enabled again', async () => {
  const added = await chain({ overlap: 'queue' })
  const first = await ended()
  const { run_id } = await t.firing(added, { occasion: first, state: 'started' })
  const second = await ended()
  await t.firing(added, { occasion: second, state: 'waiting', reason: 'overlap' })
  await t.call('disable', { trigger_id: added.id })
  await t.call('enable', { trigger_id: added.id })
  await t.end(run_id)
  const third = await ended()
  await t.firing(added, { occasion: third, state: 'started' })
  expect(await t.rows(added)).toEqual(['started', 'skipped removed', 'started'])
  await t.remove(added)
})

test('an end is kept once, however many chains follow it', async () => {
  const all: Awaited<ReturnType<typeof chain>>[] = []
  for (let n = 0; n < 10; n++)
    all.push(await chain({ when: 'size(run.outputs.text) == 50000 && run.state == "failed"' }))
  const { store } = hub
  const size = async () => {
    const { runEnds, firings } = store
    const length = sql<number>`coalesce(sum(length(cast(${firings.variables} as text))), 0)`.mapWith(Number)
    const [stored] = await store.db.select({ length }).from(firings)
    return { ends: (await store.db.select({ id: runEnds.id }).from(runEnds)).length, variables: stored!.length }
  }
  const before = await size()
  const run_id = await ended({ outputs: { text: 'x'.repeat(50_000) } })
  for (const each of all) await t.firing(each, { occasion: run_id, state: 'skipped', reason: 'when' })
  const after = await size()
  expect(after.ends).toBe(before.ends + 1)
  // Nothing follows the end of another attempt.
  await r.end(run_id, { ...build, state: 'failed', error: { code: 'agent', message: 'no' } }, 2)
  await r.end(run_id, { ...build, outputs: { text: 'y' } }, 3)
  expect((await size()).ends).toBe(after.ends)
  expect(after.variables - before.variables).toBeLessThan(1_000)
  for (const each of all) await t.remove(each)
})

test('it starts with the rights that its owner has then', async () => {
  const ann = await t.person('ann')
  const added = await chain()
  await hub.ok(ann, 'triggers/update', { trigger_id: added.id, owner: 'me' })
  await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'ann' })
  await ended()
  expect(await t.firing(added, { state: 'refused' })).toMatchObject({ reason: 'owner', run_id: null })
  await t.call('update', { trigger_id: added.id, owner: 'me' })
  const run_id = await ended()
  await t.firing(added, { occasion: run_id, state: 'started' })
  await t.remove(added)
})

test('chains that would start each other are refused, whichever of them comes last', async () => {
  const named = (name: string, after: string, team: string) =>
    codeOf('add', { realm_id: hub.realm, name, kind: 'chain', team: `@admin/${team}`, after })
  const idOf = async (name: string) => (await t.call('get', { realm_id: hub.realm, name })).id
  expect((await named('self', 'a', 'a')).slice(0, 2)).toEqual([409, 'conflict'])
  await named('a-b', '@admin/a', 'b@^1')
  await named('b-c', 'b', 'c')
  expect((await named('c-a', '@admin/c', 'a'))[2]).toContain('for ever: c-a → a-b → b-c → c-a')
  await named('c-d', '@admin/c', 'd')
  const toA = { trigger_id: await idOf('c-d'), team: '@admin/a' }
  expect((await codeOf('update', toA))[2]).toContain('c-d → a-b')
  const first = { trigger_id: await idOf('a-b') }
  await t.call('disable', first)
  await t.call('update', toA)
  const refused = await codeOf('enable', first)
  expect(refused[0]).toBe(409)
  expect(refused[2]).toContain('a-b → b-c → c-d → a-b')
  for (const name of ['a-b', 'b-c', 'c-d']) await t.call('remove', { realm_id: hub.realm, name })
})

test('a circle that no check saw ends by itself', async () => {
  const added = await chain()
  // A person started the run above, with another trigger between.
  const root = await ended()
  const first = await t.firing(added, { occasion: root, state: 'started' })
  const of = (run_id: string | null) => ({
    kind: 'chain',
    trigger: crypto.randomUUID(),
    name: 'x',
    firing: 'f',
    run_id,
  })
  const between = await ended({ started_by: { ...of(first.run_id), depth: 2 } })
  const firing = await t.firing(added, { occasion: between })
  const refused = await t.firing(added, { id: firing.id, state: 'refused' })
  expect(refused).toMatchObject({ reason: 'cycle', run_id: null })
  await t.remove(added)
})

test('a chain of runs has 16 that were started by another, at most', async () => {
  const added = await chain()
  const by = { kind: 'chain', trigger: crypto.randomUUID(), name: 'x', firing: 'f', run_id: 'gone' }
  const last = await ended({ started_by: { ...by, depth: 15 } })
  const started = await t.firing(added, { occasion: last, state: 'started' })
  expect((await runOf(started.run_id)).started_by.depth).toBe(16)
  const beyond = await ended({ started_by: { ...by, depth: 16 } })
  expect(await t.firing(added, { occasion: beyond, state: 'refused' })).toMatchObject({ reason: 'depth' })
  await t.remove(added)
})

test('what is wrong with a chain is said with its place', async () => {
  const details = async (fields: object) => {
    const rule = { realm_id: hub.realm, name: 'wrong', kind: 'chain', team: '@admin/next', ...fields }
    const { status, error } = await hub.call(hub.admin, 'triggers/add', rule)
    return [status, ...(error.details ?? []).map(({ path }) => path)]
  }
  expect(await details({})).toEqual([400, '/after'])
  expect(await details({ after: 'build', on: ['added'], cron: '@daily', when: 'files' })).toEqual([
    ...[400, '/cron', '/on', '/when'],
  ])
})

test('a run that no id can be of does not hold up the ends behind it', async () => {
  const added = await chain()
  const forged = { kind: 'chain', trigger: 't', name: 'x', firing: 'f', run_id: 'a\ud800b', depth: 1 }
  await ended({ started_by: forged })
  const good = await ended()
  expect(await t.firing(added, { occasion: good, state: 'started' })).toMatchObject({ reason: null })
})
