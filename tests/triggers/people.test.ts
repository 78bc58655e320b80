// What people do to triggers: pause and resume, changes, switching off and on, removal; and occasions that start nothing
// because of what the trigger asks for.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CadreError } from '../../lib/error.ts'
import { folder } from '../support/folder.ts'
import { DAY, HOUR, MINUTE, triggerHome, WATCHED } from '../support/triggers.ts'

const ADA = 'local:ada'
const NIGHTLY = { name: 'nightly' }

const ASKS = `
import { agent, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Needs a setting.',
  settings: Type.Object({ token: secret() }),
  source: { effect: 'read', entry: Type.Object({ name: Type.String() }), run: async () => ({ text: 'asked' }) },
})
`

/** The code of what `work` throws. */
async function refusal(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    return (error as CadreError).code
  }
  return 'none'
}

test('a pause makes one row when it ends, and the trigger goes on from then', async () => {
  await using t = await triggerHome()
  await t.add()
  await t.later(5 * MINUTE)
  const paused = t.triggers.pause(NIGHTLY, 'the vendor is down', ADA)
  expect(paused).toMatchObject({ state: 'paused', next: [], revision: 2 })
  expect(paused.paused).toEqual({ since: t.clock.now, by: ADA, reason: 'the vendor is down' })
  for (let n = 0; n < 4; n++) await t.later(15 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 started'])
  const resumed = await t.triggers.resume(NIGHTLY, 'none', ADA)
  expect(resumed).toMatchObject({ state: 'active', paused: null, revision: 3 })
  expect(resumed.next[0]!.at).toBe(Date.parse('2026-11-23T01:10Z'))
  expect(t.rows()).toEqual(['23T00:05 started', '23T00:10..23T01:05 x12 skipped paused'])
  expect(t.firings()[1]!.detail).toBe('paused by local:ada: the vendor is down')
  await t.look()
  expect(t.runs()).toHaveLength(1)
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T01:10 started')
})

test('a resume catches up when it is told to, once', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *' })
  t.triggers.pause(NIGHTLY, null, ADA)
  await t.later(5 * HOUR + 20 * MINUTE)
  t.triggers.resume(NIGHTLY, 'last', ADA)
  await t.look()
  await t.look()
  await t.ended()
  expect(t.rows()).toEqual(['23T01:00..23T04:00 x4 skipped missed', '23T05:00 started'])
  expect(t.firings()[1]!.late_ms).toBe(20 * MINUTE + 30_000)
  await t.later(3 * HOUR)
  // Its own rule is `none` again.
  expect(t.rows().slice(2)).toEqual(['23T06:00..23T08:00 x3 skipped missed'])
})

test('what is caught up after a pause is skipped while another run holds it', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', inputs: { hold: true } })
  await t.later(HOUR)
  await t.asked()
  t.triggers.pause(NIGHTLY, null, ADA)
  await t.later(2 * HOUR)
  t.triggers.resume(NIGHTLY, 'last', ADA)
  await t.look()
  expect(t.rows()).toEqual(['23T01:00 started', '23T02:00 skipped missed', '23T03:00 skipped overlap'])
})

test('a resume with `all` needs an overlap for it, and starts one after the other in a queue', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', inputs: { hold: true }, overlap: 'queue', max: 2 })
  await t.add({ name: 'other', overlap: 'skip' })
  t.triggers.pause(NIGHTLY, null, ADA)
  t.triggers.pause({ name: 'other' }, null, ADA)
  await t.later(4 * HOUR)
  expect(await refusal(() => t.triggers.resume({ name: 'other' }, 'all', ADA))).toBe('invalid_request')
  t.triggers.resume(NIGHTLY, 'all', ADA)
  for (let n = 0; n < 2; n++) {
    await t.look()
    await t.look()
    expect(t.running()).toBe(1)
    await t.answer()
  }
  expect(t.rows()).toEqual(['23T01:00..23T02:00 x2 skipped missed', '23T03:00 started', '23T04:00 started'])
})

test('a new rule is looked at from now on, and nothing that was due by it before starts', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ cron: '0 6 * * *', catch_up: 'last' })
  t.clock.now += 10 * HOUR
  const changed = await t.triggers.update({ trigger_id: id }, { cron: '0 9 * * *' }, 1, ADA)
  expect(changed).toMatchObject({ revision: 2, cron: '0 9 * * *', tz: 'UTC', catch_up: 'last' })
  await t.look()
  expect(t.rows()).toEqual([])
  await t.later(DAY)
  expect(t.rows()).toEqual(['24T09:00 started'])
  expect(t.firings()[0]!.revision).toBe(2)
})

test('other changes keep what is due', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ cron: '0 6 * * *' })
  t.clock.now += 10 * HOUR
  await t.triggers.update({ trigger_id: id }, { inputs: { day: 'x' }, name: 'morning' }, undefined, ADA)
  await t.triggers.update({ trigger_id: id }, { catch_up: 'last', late_after: '10m', window: '20h' }, 2, ADA)
  await t.look()
  expect(t.rows('morning')).toEqual(['23T06:00 started'])
})

test('a rule of one kind becomes one of another', async () => {
  await using t = await triggerHome()
  const which = { trigger_id: (await t.add({ tz: 'Europe/Berlin', late_after: '7m' })).id }
  const every = await t.triggers.update(which, { every: '90m' }, undefined, ADA)
  expect(every).toMatchObject({ every: '90m', from: '2026-11-23T00:00Z', late_after: '7m' })
  expect([every.cron, every.tz]).toEqual([undefined, undefined])
  const at = await t.triggers.update(which, { at: '2026-12-01T09:00', tz: 'Europe/Berlin' }, undefined, ADA)
  expect(at).toMatchObject({ at: '2026-12-01T09:00', tz: 'Europe/Berlin' })
  expect([at.every, at.from]).toEqual([undefined, undefined])
  const cron = await t.triggers.update(which, { cron: '@daily' }, undefined, ADA)
  expect(cron).toMatchObject({ cron: '0 0 * * *', tz: 'Europe/Berlin' })
  expect(cron.at).toBeUndefined()
})

test('a change of another revision than the current one is refused', async () => {
  await using t = await triggerHome()
  const which = { trigger_id: (await t.add()).id }
  await t.triggers.update(which, { inputs: { day: '1' } }, 1, ADA)
  expect(await refusal(() => t.triggers.update(which, { inputs: { day: '2' } }, 1, ADA))).toBe('conflict')
  expect(t.triggers.get(which)).toMatchObject({ revision: 2, inputs: { day: '1' } })
  await t.add({ name: 'other' })
  expect(await refusal(() => t.triggers.update(which, { name: 'other' }, undefined, ADA))).toBe('conflict')
})

test('a change while a slot is judged makes it judged anew', async () => {
  await using t = await triggerHome()
  const which = { trigger_id: (await t.add()).id }
  t.clock.now += 5 * MINUTE
  const look = t.look()
  t.triggers.pause(which, null, ADA)
  await look
  expect(t.rows()).toEqual([])
  expect(t.runs()).toEqual([])
})

test('a trigger that is switched off and on again does not look at what was due meanwhile', async () => {
  await using t = await triggerHome()
  await t.add({ catch_up: 'last' })
  expect(t.triggers.disable(NIGHTLY, ADA)).toMatchObject({ state: 'disabled', enabled: false, next: [] })
  for (let n = 0; n < 3; n++) await t.later(HOUR)
  expect(await t.triggers.enable(NIGHTLY, ADA)).toMatchObject({ state: 'active', enabled: true, revision: 3 })
  await t.look()
  expect(t.rows()).toEqual([])
  for (let n = 0; n < 4; n++) {
    t.triggers.disable(NIGHTLY, ADA)
    await t.triggers.enable(NIGHTLY, ADA)
    await t.look()
  }
  expect(t.rows()).toEqual([])
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T03:05 started'])
})

test('what waits for a removed trigger is skipped, and its name is free', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ inputs: { hold: true }, overlap: 'queue', queue_max: 2 })
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  expect(await refusal(() => t.add())).toBe('conflict')
  t.triggers.remove(NIGHTLY, ADA)
  const rows = t.daemon.db.query('SELECT state, reason FROM firings WHERE trigger_id = ? ORDER BY seq').all(id)
  const removed = { state: 'skipped', reason: 'removed' }
  expect(rows).toEqual([{ state: 'started', reason: null }, removed, removed])
  expect(await refusal(() => t.triggers.get(NIGHTLY))).toBe('not_found')
  // Its firings are still told by its id.
  const told = t.triggers.firings({ trigger_id: id }, { reason: 'removed' }, { limit: 10, offset: 0 })
  expect(told.map(({ name, occasion }) => `${name} ${occasion}`)).toEqual([
    'nightly 2026-11-23T00:15Z',
    'nightly 2026-11-23T00:10Z',
  ])
  expect(await refusal(() => t.triggers.refire(told[0]!.id, { again: false, by: ADA }))).toBe('not_found')
  await t.answer()
  await t.later(5 * MINUTE)
  expect(t.runs()).toHaveLength(1)
  const again = await t.add()
  expect(again.id).not.toBe(id)
  expect(again.last).toEqual([])
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:25 started'])
})

test('`when` decides, and a slot for which it is false is skipped', async () => {
  await using t = await triggerHome()
  await t.add({ when: 'slot.endsWith("00:10Z")' })
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 skipped when', '23T00:10 started', '23T00:15 skipped when'])
})

test('inputs that do not fit and expressions that fail are refused, and not tried again', async () => {
  await using t = await triggerHome()
  expect(await refusal(() => t.add({ inputs: { day: 1 } }))).toBe('invalid_request')
  await t.add({ inputs: { hold: '{{ slot }}' } })
  await t.add({ name: 'failing', when: '[1, 2][int(size(slot))] == 1' })
  await t.later(5 * MINUTE)
  await t.look()
  expect(t.rows()).toEqual(['23T00:05 refused inputs'])
  expect(t.firings()[0]!.detail).toContain('hold')
  expect(t.rows('failing')).toEqual(['23T00:05 refused expression'])
  expect(t.runs()).toEqual([])
})

test('a team that has a mistake or is gone is refused, and goes on when it is back', async () => {
  await using t = await triggerHome()
  await t.add()
  t.write('name: [')
  await t.later(5 * MINUTE)
  t.write(WATCHED)
  await t.later(5 * MINUTE)
  await t.ended()
  t.removeTeam()
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 refused team', '23T00:10 started', '23T00:15 refused team'])
  for (const { state, detail } of t.firings()) if (state === 'refused') expect(detail).toContain(t.team)
})

test('what was admitted and cannot begin is a run that has failed', async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'asks.ts'), ASKS)
  await using t = await triggerHome(home)
  await t.add()
  t.write('name: "@local/watched"\nversion: 1.0.0\nphases: [{ name: ask, agent: asks, sources: [{ name: x }] }]\n')
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 started'])
  const { run_id, id } = t.firings()[0]!
  expect(t.daemon.engine.record(run_id!)).toMatchObject({
    ...{ state: 'failed', reason: 'not_started', started_by: { kind: 'schedule', name: 'nightly', firing: id } },
  })
  // It holds nothing.
  t.write(WATCHED)
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:10 started')
})

test('an occasion that started nothing is fired again as another firing', async () => {
  await using t = await triggerHome()
  await t.add({ inputs: { day: '{{ slot }}' } })
  t.write('name: [')
  await t.later(5 * MINUTE)
  t.write(WATCHED)
  const [refused] = t.firings()
  t.clock.now += MINUTE
  const asked = { again: false, by: ADA }
  const second = await t.triggers.refire(refused!.id, asked)
  expect(second).toMatchObject({ occasion: '2026-11-23T00:05Z#2', state: 'started', manual: { by: ADA } })
  expect(second.late_ms).toBe(90_000)
  expect(t.daemon.engine.record(second.run_id!).inputs).toMatchObject({ day: '2026-11-23T00:05Z' })
  await t.ended()
  expect(await refusal(() => t.triggers.refire(second.id, asked))).toBe('conflict')
  const third = await t.triggers.refire(second.id, { again: true, by: ADA })
  expect(third).toMatchObject({ occasion: '2026-11-23T00:05Z#3', state: 'started' })
  expect(t.rows()).toEqual(['23T00:05 refused team', '23T00:05#2 started', '23T00:05#3 started'])
  await t.ended()
  await t.later(4 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:10 started')
})

test('a row of several slots is fired again as its first one', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', inputs: { day: '{{ slot }} at {{ now }}' } })
  await t.later(10 * HOUR + 30 * MINUTE)
  const second = await t.triggers.refire(t.firings()[0]!.id, { again: false, by: ADA })
  expect(second).toMatchObject({ occasion: '2026-11-23T01:00Z#2', count: 1, until: null, late_ms: 9.5 * HOUR + 30_000 })
  const { inputs } = t.daemon.engine.record(second.run_id!)
  expect(inputs?.day).toBe('2026-11-23T01:00Z at 2026-11-23T10:30:30.000Z')
})

test('a home has at most 200 schedules', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ name: 's-0' })
  t.daemon.db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 199)
     INSERT INTO triggers SELECT 's' || n, 's-' || n, kind, spec, revision, source, enabled, paused, problem, cursor,
       next_at, created_at, created_by, removed_at FROM triggers, n WHERE id = ?`,
    [id],
  )
  expect(await refusal(() => t.add({ name: 'one-more' }))).toBe('conflict')
  t.triggers.remove({ name: 's-7' }, ADA)
  expect(await refusal(() => t.add({ name: 'one-more' }))).toBe('none')
  // All of them are due at once.
  await t.later(5 * MINUTE)
  await t.look()
  const { n } = t.daemon.db.query<{ n: number }, []>("SELECT count(*) AS n FROM firings WHERE state = 'started'").get()!
  expect(n).toBe(200)
})
