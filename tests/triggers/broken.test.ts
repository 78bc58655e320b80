// A trigger that cannot do what it says is broken: it says why, starts nothing, and goes on by itself from the moment at
// which the problem ends. A full disk breaks none.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { fillDatabase } from '../support/full-database.ts'
import { HOUR, MINUTE, type TriggerHome, triggerHome, WATCHED } from '../support/triggers.ts'

const NIGHTLY = { name: 'nightly' }

const audited = ({ daemon: { db } }: TriggerHome) =>
  db.query<{ n: number }, []>("SELECT count(*) AS n FROM audit WHERE action = 'triggers/broken'").get()!.n

test('a team that is gone makes it broken, which is said once, until the team is back', async () => {
  await using t = await triggerHome()
  await t.add()
  t.removeTeam()
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  const broken = t.triggers.get(NIGHTLY)
  expect(broken.state).toBe('broken')
  expect(broken.problem).toMatchObject({ reason: 'team', since: t.clock.now - 10 * MINUTE })
  expect(broken.problem!.text).toContain(t.team)
  expect(t.rows()).toEqual(['23T00:05 refused team', '23T00:10 refused team', '23T00:15 refused team'])
  expect([audited(t), broken.revision]).toEqual([1, 1])
  expect(t.said.filter(line => line.includes('broken'))).toHaveLength(1)
  t.restoreTeam(WATCHED)
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:20 started')
  expect(t.triggers.get(NIGHTLY)).toMatchObject({ state: 'active', problem: null })
})

test('a zone that is not known any more breaks that trigger and no other', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ tz: 'Europe/Berlin' })
  await t.add({ name: 'other' })
  const inZone = (zone: string) =>
    t.daemon.db.run("UPDATE triggers SET spec = json_set(spec, '$.own.tz', ?) WHERE id = ?", [zone, id])
  inZone('Europe/Nowhere')
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  const { triggers } = t.triggers.list({ limit: 10, offset: 0 })
  const brief = triggers.map(({ name, state, next }) => `${name} ${state} ${next.length}`)
  expect(brief).toEqual(['nightly broken 0', 'other active 5'])
  expect(triggers[0]!.problem).toMatchObject({ reason: 'internal', text: expect.stringContaining('Europe/Nowhere') })
  expect(t.rows()).toEqual([])
  expect(t.rows('other')).toHaveLength(3)
  expect(audited(t)).toBe(1)
  // It goes on from now: nothing of the time before starts.
  inZone('Europe/Berlin')
  await t.later(2 * HOUR)
  expect(t.triggers.get(NIGHTLY)).toMatchObject({ state: 'active', problem: null })
  expect(t.rows()).toEqual([])
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T02:20 started'])
})

test('a full disk loses no slot, and is not said of each trigger at each look', async () => {
  await using t = await triggerHome()
  const names = ['a', 'b', 'c', 'd', 'e']
  for (const name of names) await t.add({ name, cron: '0 * * * *', catch_up: 'last' })
  const { db, engine } = t.daemon
  const full = fillDatabase(db)
  // The last free places of pages are used up, too.
  let hours = 0
  for (; engine.load.stalled === null && hours < 200; hours++) await t.later(HOUR)
  expect(engine.load.stalled).toContain('full')
  for (let n = 0; n < 20; n++) await t.look()
  expect(t.said.filter(line => line.includes('could not be looked at')).length).toBeLessThanOrEqual(names.length)
  await t.later(2 * HOUR)
  full.free()
  await until(() => engine.load.stalled === null, 'the disk accepts writes again')
  await t.look()
  // Each slot has one row.
  for (const name of names) {
    expect(t.firings(name).reduce((sum, { count }) => sum + count, 0)).toBe(hours + 2)
    expect(t.firings(name).at(-1)!.state).toBe('started')
  }
})
