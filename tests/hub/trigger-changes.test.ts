// What operators do to the triggers of a realm: pause and resume, changes, switching off and on, removal, starts by hand;
// and who may.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { deleteOldFirings } from '../../lib/hub/triggers/old-firings.ts'
import { until } from '../support/bounded.ts'
import { drivenClock } from '../support/driven-clock.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { HOUR, MINUTE, type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'

let hub: TestHub
let t: RealmTriggerHub
beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
})
afterAll(() => hub.stop())

const codeOf = async (path: string, body: object, token = hub.admin): Promise<unknown[]> => {
  const { status, error } = await hub.call(token, `triggers/${path}`, body)
  return [status, error?.code]
}

test('a pause makes one row when it ends, and the trigger goes on from then', async () => {
  const added = await t.schedule()
  const which = { trigger_id: added.id }
  const paused = await t.call('pause', { ...which, reason: 'the vendor is down' })
  expect(paused).toMatchObject({ state: 'paused', next: [], revision: 2, paused: { by: 'admin' } })
  await t.later(HOUR)
  const resumed = await t.call('resume', which)
  expect(resumed).toMatchObject({ state: 'active', paused: null, revision: 3 })
  expect(await t.rows(added)).toEqual(['skipped paused x12'])
  expect((await t.firings(added))[0]!.detail).toBe('paused by admin: the vendor is down')
  await t.slot()
  await t.fired(added, 2)
  expect(await t.rows(added)).toEqual(['skipped paused x12', 'started'])
  await t.remove(added)
})

test('a resume catches up when it is told to, once', async () => {
  const added = await t.schedule({ cron: '0 * * * *' })
  await t.call('pause', { trigger_id: added.id })
  await t.later(5 * HOUR)
  await t.call('resume', { trigger_id: added.id, catch_up: 'last' })
  const started = await t.firing(added, { state: 'started' })
  expect(started.late_ms).toBeGreaterThan(0)
  expect(await t.rows(added)).toEqual(['skipped missed x4', 'started'])
  expect(await codeOf('resume', { trigger_id: added.id, catch_up: 'all' })).toEqual([200, undefined])
  await t.call('pause', { trigger_id: added.id })
  expect(await codeOf('resume', { trigger_id: added.id, catch_up: 'all' })).toEqual([400, 'invalid_request'])
  const chain = { realm_id: hub.realm, name: 'follows', kind: 'chain', team: t.team, after: '@admin/build' }
  const follows = await t.call('add', chain)
  await t.call('pause', { trigger_id: follows.id })
  expect(await codeOf('resume', { trigger_id: follows.id, catch_up: 'last' })).toEqual([400, 'invalid_request'])
  expect((await t.call('resume', { trigger_id: follows.id, catch_up: 'none' })).paused).toBeNull()
  await t.remove(follows)
  await t.remove(added)
})

test('a new rule counts from now on, other changes keep what is due, and an old revision is refused', async () => {
  const added = await t.schedule({ catch_up: 'last' })
  const which = { trigger_id: added.id }
  await t.call('disable', which)
  await t.later(HOUR)
  const enabled = await t.call('enable', which)
  expect(enabled).toMatchObject({ state: 'active', revision: 3 })
  expect(await t.rows(added)).toEqual([])
  const changed = await t.call('update', { ...which, revision: 3, cron: '*/10 * * * *', inputs: { day: '{{ slot }}' } })
  expect(changed).toMatchObject({ revision: 4, cron: '*/10 * * * *', tz: 'UTC', catch_up: 'last' })
  expect(await codeOf('update', { ...which, revision: 3, cron: '* * * * *' })).toEqual([409, 'conflict'])
  const renamed = await t.call('update', { ...which, name: 'renamed', run_name: 'a run' })
  expect(renamed).toMatchObject({ name: 'renamed', run_name: 'a run', revision: 5, id: added.id })
  await t.later(10 * MINUTE)
  const started = await t.firing(added, { state: 'started' })
  expect(await hub.ok(hub.admin, 'runs/get', { run_id: started.run_id })).toMatchObject({ run_name: 'a run' })
  await t.remove(added)
})

test('who adds or enables a trigger is told of another one that starts the team on the same occasions', async () => {
  const first = await t.schedule({ cron: '7 3 * * *' })
  const second = await t.schedule({ cron: '7 3 * * *', team: `${t.team}@^1` })
  const warnings = [`${first.name} starts this team on the same occasions, too: each of them has a run of both`]
  expect(second.warnings).toEqual(warnings)
  const which = { trigger_id: second.id }
  expect(await t.call('get', which)).not.toHaveProperty('warnings')
  expect(await t.call('disable', which)).not.toHaveProperty('warnings')
  expect((await t.call('enable', which)).warnings).toEqual(warnings)
  expect(await t.call('update', { ...which, cron: '8 3 * * *' })).not.toHaveProperty('warnings')
  await t.remove(first)
  await t.remove(second)
})

test('names are unique in a realm until a trigger is removed, also when two are added at once', async () => {
  const rule = { realm_id: hub.realm, name: 'unique', kind: 'schedule', team: t.team, cron: '@yearly' }
  const both = await Promise.all([1, 2].map(() => hub.call(hub.admin, 'triggers/add', rule)))
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
  const byName = { realm_id: hub.realm, name: 'unique' }
  const found = await t.call('get', byName)
  expect(await codeOf('get', { name: 'unique' })).toEqual([400, 'invalid_request'])
  await t.call('remove', byName)
  expect(await codeOf('get', byName)).toEqual([404, 'not_found'])
  expect(await codeOf('get', { trigger_id: found.id })).toEqual([404, 'not_found'])
  expect(await t.firings(found)).toEqual([])
  await t.remove(await t.call('add', rule))
})

test('a removed trigger starts nothing more, and what waited is skipped', async () => {
  const added = await t.schedule({ overlap: 'queue' })
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  await t.slot()
  await t.firing(added, { state: 'waiting', reason: 'overlap' })
  await t.remove(added)
  await t.end(first.run_id)
  await t.slot()
  expect(await t.rows(added)).toEqual(['started', 'skipped removed'])
})

test('what waits starts after the run before, and only the newest waits', async () => {
  const added = await t.schedule({ overlap: 'queue' })
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  await t.slot()
  await t.firing(added, { state: 'waiting' })
  await t.slot()
  await t.firing(added, { reason: 'superseded' })
  await t.end(first.run_id)
  await t.firing(added, { occasion: (await t.firings(added))[0]!.occasion, state: 'started' })
  expect(await t.rows(added)).toEqual(['started', 'skipped superseded', 'started'])
  await t.remove(added)
})

test('with cancel_running the run before is asked to end, and the slot starts after its end', async () => {
  const added = await t.schedule({ overlap: 'cancel_running' })
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  await t.slot()
  const [second] = await t.fired(added, 2)
  const started = await t.firing(added, { id: second!.id, state: 'started' })
  expect((await hub.ok(hub.admin, 'runs/get', { run_id: first.run_id })).state).toBe('cancelled')
  expect(started.run_id).not.toBe(first.run_id)
  await t.remove(added)
})

test('many firings that wait start in several looks', async () => {
  const added = await t.schedule({ cron: '@yearly', overlap: 'allow', at_most: { count: 1, per: '30d' } })
  for (let n = 0; n < 70; n++) await t.call('run_now', { trigger_id: added.id })
  expect((await t.firings(added)).filter(({ state }) => state === 'waiting').length).toBeGreaterThan(0)
  await t.call('update', { trigger_id: added.id, at_most: null })
  await until(
    async () => (await t.rows(added)).every(row => row === 'started'),
    'all have started, those beyond one look too',
  )
  await t.remove(added)
})

test('at_most makes firings wait, and quotas of the realm do', async () => {
  const added = await t.schedule({ overlap: 'allow', at_most: { count: 1, per: '12m' } })
  await t.slot()
  await t.firing(added, { state: 'started' })
  await t.slot()
  await t.firing(added, { state: 'waiting', reason: 'limit' })
  await t.later(10 * MINUTE)
  await t.fired(added, 3)
  expect((await t.rows(added)).slice(0, 2)).toEqual(['started', 'started'])
  await t.remove(added)

  const other = await t.schedule({ overlap: 'allow' })
  await hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, quotas: { waiting: 0 } })
  await t.slot()
  const waits = await t.firing(other, { state: 'waiting' })
  expect([waits.reason, waits.detail]).toEqual(['limit', expect.stringContaining('quota waiting')])
  expect(await codeOf('run_now', { trigger_id: other.id })).toEqual([429, 'rate_limited'])
  await hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, quotas: { waiting: null } })
  await t.firing(other, { id: waits.id, state: 'started' })
  await t.remove(other)
})

test('an occasion is skipped or refused with its reason, and refired by hand', async () => {
  const added = await t.schedule({ when: 'slot < "2000"', inputs: { many: '{{ size(slot) }}' } })
  await t.slot()
  const skipped = await t.firing(added, { reason: 'when' })
  await t.call('update', { trigger_id: added.id, when: null, inputs: { many: '{{ slot }}' } })
  await t.slot()
  const refused = await t.firing(added, { state: 'refused' })
  expect(refused).toMatchObject({ reason: 'inputs', run_id: null, detail: expect.stringContaining('many') })
  await t.call('update', { trigger_id: added.id, inputs: { day: '{{ slot }}' } })
  const again = await t.call('refire', { firing_id: refused.id })
  expect(again).toMatchObject({ state: 'started', occasion: `${refused.occasion}#2`, manual: { by: 'admin' } })
  const run = await hub.ok(hub.admin, 'runs/get', { run_id: again.run_id })
  expect(run.inputs).toEqual({ day: refused.occasion })
  expect(run.started_by).toMatchObject({ slot: refused.occasion, manual: { by: 'admin' }, catch_up: true })
  expect(await codeOf('refire', { firing_id: again.id })).toEqual([409, 'conflict'])
  await t.end(again.run_id)
  // The occasion has its run, whichever of its firings is asked.
  expect(await codeOf('refire', { firing_id: refused.id })).toEqual([409, 'conflict'])
  expect((await t.call('refire', { firing_id: again.id, again: true })).occasion).toBe(`${refused.occasion}#3`)
  expect((await t.call('refire', { firing_id: skipped.id })).state).toBe('skipped')
  expect((await t.call('run_now', { trigger_id: added.id, force: true })).state).toBe('started')
  const found = await t.call('firings', { trigger_id: added.id, state: 'refused', reason: 'inputs' })
  expect(found).toMatchObject({ total: 1, firings: [{ id: refused.id }] })
  expect((await t.call('firings', { begins: refused.id.slice(0, 18) })).firings[0].id).toBe(refused.id)
  await t.remove(added)
})

test('many who fire an occasion again at once start one run, or one each where they ask for another', async () => {
  const added = await t.schedule({ when: 'slot < "2000"', overlap: 'allow' })
  await t.slot()
  const { id: firing_id, occasion } = await t.firing(added, { reason: 'when' })
  await t.call('update', { trigger_id: added.id, when: null })
  await t.call('pause', { trigger_id: added.id })
  const refire = (again: boolean) => hub.call(hub.admin, 'triggers/refire', { firing_id, again })
  const once = await Promise.all([1, 2, 3, 4].map(() => refire(false)))
  expect(once.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
  const wanted = await Promise.all([1, 2, 3, 4].map(() => refire(true)))
  expect(wanted.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const { firings } = await t.call('firings', { trigger_id: added.id, state: 'started' })
  expect(firings.map((each: { occasion: string }) => each.occasion).sort()).toEqual(
    [2, 3, 4, 5, 6].map(number => `${occasion}#${number}`),
  )
  await t.remove(added)
})

test('what is wrong with a trigger is said at once, with its place', async () => {
  const wrong = { realm_id: hub.realm, name: 'wrong', kind: 'schedule', team: t.team }
  const details = async (fields: object) => {
    const { status, error } = await hub.call(hub.admin, 'triggers/add', { ...wrong, ...fields })
    return [status, ...(error.details ?? []).map(({ path }) => path)]
  }
  expect(await details({ cron: '60 * * * *', tz: 'EST', inputs: { key: 'x', lost: 1, many: 'no' } })).toEqual([
    ...[400, '/tz', '/cron', '/inputs/many', '/inputs/key', '/inputs/lost'],
  ])
  expect(await details({ cron: '@daily', queue_timeout: 'soon' })).toEqual([400, '/queue_timeout'])
  expect(await details({ cron: '@daily', catch_up: 'all' })).toEqual([400, '/catch_up'])
  expect(await codeOf('add', { ...wrong, cron: '@daily', team: '@admin/none' })).toEqual([409, 'conflict'])
})

test('a preview tells slots without a trigger, and where a change of clocks moves one', async () => {
  const berlin = { cron: '30 2 * * *', tz: 'Europe/Berlin', after: Date.parse('2026-03-28T12:00Z'), limit: 2 }
  const found = await t.call('preview', berlin)
  expect(found.slots.map(({ local }: { local: string }) => local)).toEqual([
    '2026-03-29T03:00+02:00',
    '2026-03-30T02:30+02:00',
  ])
  expect(found.notes[0]).toMatchObject({ day: '2026-03-29', kind: 'moved' })
})

test('members see triggers, operators change them, and others see none', async () => {
  const added = await t.schedule()
  const [member, stranger] = [await t.person('mia', 'member'), (await hub.account('stranger')).token]
  const which = { trigger_id: added.id }
  expect(await codeOf('get', which, member)).toEqual([200, undefined])
  expect(await codeOf('pause', which, member)).toEqual([403, 'forbidden'])
  for (const path of ['get', 'pause', 'firings', 'preview', 'run_now']) {
    expect([path, ...(await codeOf(path, which, stranger))]).toEqual([path, 404, 'not_found'])
  }
  expect((await hub.ok(stranger, 'triggers/list')).triggers).toEqual([])
  await t.remove(added)
})

test('a range is resolved at each firing', async () => {
  const added = await t.schedule({ team: `${t.team}@^1.0`, overlap: 'allow', requires: { labels: { gpu: 'yes' } } })
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  await hub.addTeam(`name: "${t.team}"\nversion: 1.1.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n`)
  await t.slot()
  const [second] = await t.fired(added, 2)
  const versions = await Promise.all(
    [first, second!].map(async ({ run_id }) => (await hub.ok(hub.admin, 'runs/get', { run_id })).version),
  )
  expect(versions).toEqual(['1.0.0', '1.1.0'])
  // Runs of the other tests wait, too.
  const { jobs } = await hub.ok(hub.admin, 'dispatch/queue', { realm_id: hub.realm, limit: 100 })
  const job = jobs.find(({ run_id }: { run_id: string }) => run_id === second!.run_id)
  expect(job.waiting_for).toContain('gpu=yes')
  await t.remove(added)
})

test('a clock that was ahead: slots after now come again, and what had started does not start again', async () => {
  const added = await t.schedule({ overlap: 'allow' })
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  await t.later(HOUR)
  await t.firing(added, { reason: 'missed' })
  await t.later(-HOUR - 5 * MINUTE)
  // The newest slot of the hour had started, too.
  await until(
    async () => (await t.rows(added)).join() === 'started,started',
    'the slots that were missed are forgotten',
  )
  await t.slot()
  await t.slot()
  const all = await t.fired(added, 3)
  expect(all.map(({ state }) => state)).toEqual(['started', 'started', 'started'])
  expect(all.at(-1)!.run_id).toBe(first.run_id)
  expect(new Set(all.map(({ occasion }) => occasion)).size).toBe(3)
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  expect(
    audit.some(({ action, target }: Record<string, string>) => action === 'triggers/clock' && target === added.name),
  ).toBe(true)
  await t.remove(added)
})

test('a zone that is not known any more breaks the trigger, until it is', async () => {
  const added = await t.schedule()
  const { triggers } = hub.store
  const setZone = (tz: string) =>
    hub.store.write(async tx => {
      const [row] = await tx.select().from(triggers).where(eq(triggers.id, added.id))
      const changed = {
        ...row!.spec,
        own: { cron: '*/5 * * * *', tz, catch_up: 'none', window: '24h', max: 10, late_after: '5m' },
      }
      await tx.update(triggers).set({ spec: changed }).where(eq(triggers.id, added.id))
    })
  await setZone('Europe/Nowhere')
  await t.slot()
  const isIn = (state: string) =>
    until(async () => (await t.call('get', { trigger_id: added.id })).state === state, `it is ${state}`)
  await isIn('broken')
  expect(await t.rows(added)).toEqual([])
  await setZone('UTC')
  await t.later(MINUTE)
  await isIn('active')
  await t.slot()
  await t.firing(added, { state: 'started' })
  await t.remove(added)
})

test('old firings are deleted, but the newest hundred, what waits, and those whose run is there', async () => {
  const added = await t.schedule()
  await t.slot()
  const started = await t.firing(added, { state: 'started' })
  const { firings } = hub.store
  const rows = Array.from({ length: 350 }, (_, n) => ({
    ...{ id: crypto.randomUUID(), trigger_id: added.id, revision: 1, occasion: `o${n}`, at: n, seen_at: n },
    ...{ state: n === 7 ? ('waiting' as const) : ('skipped' as const), count: 1, variables: {} },
  }))
  await hub.store.write(tx => tx.insert(firings).values(rows))
  await Array.fromAsync(deleteOldFirings({ store: hub.store, clock: drivenClock(Date.now) } as never, 30 * 24 * HOUR))
  const left = await hub.store.db.select().from(firings).where(eq(firings.trigger_id, added.id))
  expect(left).toHaveLength(102)
  expect(left.some(({ id }) => id === started.id)).toBe(true)
  await t.remove(added)
})

test('texts that PostgreSQL cannot look into are refused, so that lists by team go on', async () => {
  const added = await t.schedule()
  for (const text of ['\ud800', 'a\0b']) {
    const at = async (changes: object) => {
      const { status, error } = await hub.call(hub.admin, 'triggers/update', { trigger_id: added.id, ...changes })
      return [status, error?.details?.[0]?.path]
    }
    expect(await at({ inputs: { note: text } })).toEqual([400, '/inputs/note'])
    expect(await at({ workspace: `w${text}` })).toEqual([400, '/workspace'])
  }
  const { total } = await t.call('list', { realm_id: hub.realm, team: added.team })
  expect(total).toBe(1)
  await t.remove(added)
})
