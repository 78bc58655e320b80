// The triggers of a home that is a copy: nothing starts that the home may have started from which it was made.

import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { copyOf } from '../support/copied-home.ts'
import { command } from '../support/daemon.ts'
import { HOUR, MINUTE, type TriggerHome, triggerHome } from '../support/triggers.ts'
import { looks, told, watchHome } from '../support/watch-home.ts'

const ADA = 'local:ada'
const NIGHTLY = { name: 'nightly' }

/** A home with a schedule of each hour that was two hours old when it was copied, an hour ago. */
async function copied(fields: Parameters<TriggerHome['add']>[0] = {}) {
  // The copy is found at the time of the machine, which is within a minute after the third slot.
  const begin = Date.now() - 3 * HOUR
  const from = new Date(begin).toISOString()
  const first = await triggerHome(undefined, begin)
  const trigger = await first.triggers.add(
    { name: 'nightly', kind: 'schedule', team: first.team, every: '1h', from, ...fields },
    ADA,
  )
  for (let n = 0; n < 2; n++) await first.later(HOUR)
  await first.close()
  const copy = copyOf(first.home)
  return { copy, trigger, team: first.team }
}

const brief = (t: TriggerHome) => t.firings().map(({ state, reason, count }) => [state, reason, count].join(' '))

test('a copy starts with its triggers paused, and a resume goes on from now', async () => {
  const { copy, trigger } = await copied()
  await using t = await triggerHome(copy, Date.now())
  const paused = t.triggers.get(NIGHTLY)
  expect(paused).toMatchObject({ state: 'paused', revision: trigger.revision + 1, next: [] })
  expect(paused.paused).toEqual({ since: t.daemon.copied!.at, by: 'system', reason: 'home copied' })
  await t.later(2 * HOUR)
  expect(brief(t)).toEqual(['started  1', 'started  1'])
  t.triggers.resume(NIGHTLY, 'none', ADA)
  await t.look()
  const row = ['started  1', 'started  1', 'skipped copy 1', 'skipped paused 2']
  expect(brief(t)).toEqual(row)
  await t.later(HOUR)
  await t.ended()
  expect(brief(t)).toEqual([...row, 'started  1'])
})

test('a resume catches up nothing that was due before the copy was found', async () => {
  const { copy } = await copied({ late_after: '24h' })
  await using t = await triggerHome(copy, Date.now() + 2 * MINUTE)
  t.triggers.resume(NIGHTLY, 'last', ADA)
  await t.look()
  expect(brief(t)).toEqual(['started  1', 'started  1', 'skipped copy 1'])
  // It names what may have run, and asks for a word before it starts it.
  const last = t.firings().at(-1)!
  expect(last.detail).toContain('copy')
  expect(t.triggers.refire(last.id, { again: false, by: ADA })).rejects.toThrow('may have started')
  expect(await t.triggers.refire(last.id, { again: true, by: ADA })).toMatchObject({ state: 'started' })
})

test('what waited in a copy does not start', async () => {
  const { copy } = await copied({ overlap: 'queue', inputs: { hold: true } })
  await using t = await triggerHome(copy, Date.now() + 2 * MINUTE)
  const held = t.runs()[0]!.id
  expect(brief(t)).toEqual(['started  1', 'waiting overlap 1'])
  await t.daemon.engine.cancel(held)
  await t.look()
  t.triggers.resume(NIGHTLY, 'none', ADA)
  await t.look()
  expect(brief(t)).toEqual(['started  1', 'skipped copy 1', 'skipped copy 1'])
})

test('a pause of a person stays, and so does what people removed', async () => {
  const begin = Date.now() - HOUR
  const first = await triggerHome(undefined, begin)
  await first.add()
  await first.add({ name: 'gone' })
  first.triggers.remove({ name: 'gone' }, ADA)
  first.triggers.pause(NIGHTLY, 'holidays', ADA)
  await first.close()
  await using t = await triggerHome(copyOf(first.home), Date.now())
  expect(t.triggers.get(NIGHTLY).paused).toEqual({ since: begin, by: ADA, reason: 'holidays' })
  expect(t.daemon.db.query("SELECT paused FROM triggers WHERE name = 'gone'").get()).toEqual({ paused: null })
})

test('a home that was moved goes on as after a downtime', async () => {
  const { copy } = await copied({ catch_up: 'last' })
  const opened = await triggerHome(copy, Date.now())
  expect(opened.triggers.get(NIGHTLY).state).toBe('paused')
  await opened.close()
  const { code, stderr } = await command(['home', 'moved'], { home: copy })
  expect([code, stderr]).toEqual([0, ''])
  await using t = await triggerHome(copy, Date.now() + 2 * HOUR)
  expect(t.triggers.get(NIGHTLY)).toMatchObject({ state: 'active', paused: null })
  await t.look()
  expect(brief(t)).toEqual(['started  1', 'started  1', 'skipped missed 2', 'started  1'])
  expect(t.triggers.get(NIGHTLY).next).toHaveLength(5)
})

/** A home that watches a folder, of which one file was seen, with what came since it was copied. */
async function copiedWatch() {
  const { t, at, put } = await watchHome()
  put('seen')
  await looks(t)
  await t.ended()
  await t.close()
  const copy = copyOf(t.home)
  put('new')
  put('newer')
  rmSync(join(at, 'seen'))
  return { copy, put }
}

test('what a copy finds when its watch is resumed is one firing, which starts when a person says so', async () => {
  const { copy, put } = await copiedWatch()
  await using t = await triggerHome(copy, Date.now())
  await looks(t)
  expect(told(t)).toEqual(['seen started'])
  await t.triggers.resume({ name: 'in' }, 'none', ADA)
  put('later')
  await looks(t)
  expect(told(t)).toEqual(['seen started', 'new+newer skipped copy', 'later started'])
  const { id, count } = t.firings('in')[1]!
  expect(count).toBe(2)
  expect(t.triggers.refire(id, { again: false, by: ADA })).rejects.toThrow('may have started')
  expect(await t.triggers.refire(id, { again: true, by: ADA })).toMatchObject({
    ...{ state: 'started', count: 2, files: [{ name: 'new' }, { name: 'newer' }] },
  })
})

test('a home that was moved finds what came meanwhile, each file once', async () => {
  const { copy } = await copiedWatch()
  await (await triggerHome(copy, Date.now())).close()
  const { code, stderr } = await command(['home', 'moved'], { home: copy })
  expect([code, stderr]).toEqual([0, ''])
  await using t = await triggerHome(copy, Date.now())
  await looks(t)
  await t.look()
  expect(told(t).sort()).toEqual(['new started', 'newer started', 'seen started'])
  expect(t.triggers.get({ name: 'in' })).toMatchObject({ state: 'active', problem: null })
})

test('hooks and chains of a home that was moved are not taken for schedules', async () => {
  const first = await triggerHome(undefined, Date.now())
  await first.triggers.add({ name: 'next', kind: 'chain', team: first.team, after: 'build' }, ADA)
  await first.close()
  const copy = copyOf(first.home)
  await (await triggerHome(copy, Date.now())).close()
  await command(['home', 'moved'], { home: copy })
  await using t = await triggerHome(copy, Date.now())
  await t.look()
  expect(t.triggers.get({ name: 'next' })).toMatchObject({ state: 'active', problem: null })
})
