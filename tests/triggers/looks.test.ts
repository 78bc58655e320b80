// What becomes of slots that are due: at their time, after a downtime, and when the clock is set.

import { expect, test } from 'bun:test'
import { BEGIN, DAY, HOUR, MINUTE, triggerHome } from '../support/triggers.ts'

test('a slot starts one run at its time, and none before', async () => {
  await using t = await triggerHome()
  await t.add({ inputs: { day: '{{ slot }}' } })
  await t.later(4 * MINUTE)
  expect(t.rows()).toEqual([])
  await t.later(MINUTE)
  await t.look()
  expect(t.rows()).toEqual(['23T00:05 started'])
  const [firing] = t.firings()
  expect(firing).toMatchObject({ occasion: '2026-11-23T00:05Z', late_ms: 30_000, count: 1, revision: 1, detail: null })
  expect(t.runs().map(({ id }) => id)).toEqual([firing!.run_id!])
  const run = t.daemon.engine.record(firing!.run_id!)
  expect(run.inputs).toEqual({ hold: false, day: '2026-11-23T00:05Z' })
})

test('after a downtime of 26 hours `none` starts only what is not late', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *' })
  // 02:00:30 of the next day.
  await t.later(26 * HOUR)
  await t.look()
  expect(t.rows()).toEqual(['23T01:00..24T01:00 x25 skipped missed', '24T02:00 started'])
  await t.later(40 * HOUR + 10 * MINUTE)
  expect(t.rows().slice(2)).toEqual(['24T03:00..25T18:00 x40 skipped missed'])
  expect(t.runs()).toHaveLength(1)
})

test('`late_after` is how late a slot may start', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', late_after: '20m' })
  await t.later(26 * HOUR + 19 * MINUTE + 30_000)
  expect(t.rows()).toEqual(['23T01:00..24T01:00 x25 skipped missed', '24T02:00 started'])
  expect(t.firings()[1]!.late_ms).toBe(20 * MINUTE)
  await t.later(HOUR + 1)
  expect(t.rows().slice(2)).toEqual(['24T03:00 skipped missed'])
})

test('`last` starts the newest slot within its window', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 3 * * *', catch_up: 'last', window: '12h' })
  await t.later(2 * DAY + 14 * HOUR)
  expect(t.rows()).toEqual(['23T03:00..24T03:00 x2 skipped missed', '25T03:00 started'])
  expect(t.firings()[1]!.late_ms).toBe(11 * HOUR + 30_000)
  await t.later(2 * DAY + 2 * HOUR)
  expect(t.rows().slice(2)).toEqual(['26T03:00..27T03:00 x2 skipped missed'])
})

test('`all` starts each within its window, the oldest first, at most `max`', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', catch_up: 'all', overlap: 'allow', window: '10h', max: 4 })
  await t.later(26 * HOUR)
  expect(t.rows()).toEqual([
    '23T01:00..23T22:00 x22 skipped missed',
    '23T23:00 started',
    '24T00:00 started',
    '24T01:00 started',
    '24T02:00 started',
  ])
  const runs = t.firings().flatMap(({ run_id }) => run_id ?? [])
  expect(runs).toEqual([...runs].sort())
})

test('`all` keeps to its window when that holds fewer than `max`', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', catch_up: 'all', overlap: 'allow', window: '2h' })
  await t.later(26 * HOUR)
  expect(t.rows()).toEqual(['23T01:00..24T00:00 x24 skipped missed', '24T01:00 started', '24T02:00 started'])
})

test('more slots than are listed are one row with the right count', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '* * * * *' })
  await t.later(10 * DAY)
  expect(t.rows()).toEqual([`23T00:01..02T23:59 x${10 * 1_440 - 1} skipped missed`, '03T00:00 started'])
})

test('what a stop in the middle of `all` leaves is started later, and every slot is in one row', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', catch_up: 'all', overlap: 'allow', window: '24h', max: 3 })
  // The disk is full after the first start.
  t.daemon.db.run(`CREATE TRIGGER full BEFORE INSERT ON firings WHEN new.occasion = '2026-11-23T04:00Z'
    BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END`)
  await t.later(5 * HOUR)
  expect(t.rows()).toEqual(['23T01:00..23T02:00 x2 skipped missed', '23T03:00 started'])
  t.daemon.db.run('DROP TRIGGER full')
  await t.later(5 * HOUR)
  expect(t.rows()).toEqual([
    '23T01:00..23T02:00 x2 skipped missed',
    '23T03:00 started',
    '23T04:00..23T07:00 x4 skipped missed',
    '23T08:00 started',
    '23T09:00 started',
    '23T10:00 started',
  ])
})

test('jitter delays each slot by its own time, and rows name the slot', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', jitter: '30m' })
  for (let minute = 0; minute < 600; minute++) await t.later(MINUTE)
  // The last one before the trigger was made may have been due after it.
  const firings = t.firings().filter(({ at }) => at > BEGIN)
  expect(firings.map(({ state }) => state)).toEqual(firings.map(() => 'started'))
  expect(firings.slice(0, 9).map(({ at }) => at)).toEqual(
    Array.from({ length: 9 }, (_, n) => Date.parse('2026-11-23T01:00Z') + n * HOUR),
  )
  const delays = firings.map(({ at, seen_at }) => seen_at - at)
  for (const delay of delays) expect(delay).toBeWithin(0, 31 * MINUTE)
  expect(new Set(delays).size).toBeGreaterThan(3)
  for (const { late_ms } of firings) expect(late_ms!).toBeWithin(0, MINUTE + 1)
})

test('a clock that was ahead: slots come due again, and what had started does not start twice', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', overlap: 'allow' })
  await t.later(2 * HOUR)
  await t.later(DAY)
  await t.later(2 * DAY)
  const kept = [
    '23T01:00 skipped missed',
    '23T02:00 started',
    '23T03:00..24T01:00 x23 skipped missed',
    '24T02:00 started',
  ]
  expect(t.rows()).toEqual([...kept, '24T03:00..26T01:00 x47 skipped missed', '26T02:00 started'])
  // Back to 02:10:30 of the second day.
  await t.later(-2 * DAY + 10 * MINUTE)
  expect(t.said.some(line => line.includes('the clock is behind'))).toBe(true)
  expect(t.daemon.db.query("SELECT count(*) AS n FROM audit WHERE action = 'triggers/clock'").get()).toEqual({ n: 1 })
  expect(t.rows()).toEqual([...kept, '26T02:00 started'])
  await t.later(50 * MINUTE)
  expect(t.rows().at(-1)).toBe('24T03:00 started')
  // All up to 04:00 of the fourth day, of which 02:00 has started.
  await t.later(2 * DAY + HOUR)
  expect(t.rows().slice(-2)).toEqual(['24T04:00..26T03:00 x47 skipped missed', '26T04:00 started'])
  expect(t.rows().filter(row => row.startsWith('26T02:00'))).toEqual(['26T02:00 started'])
  expect(t.runs()).toHaveLength(5)
})

test('the first missed slot may be one that had started', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', overlap: 'allow' })
  await t.later(3 * HOUR)
  await t.later(-3 * HOUR)
  await t.later(6 * HOUR)
  expect(t.rows()).toEqual(['23T03:00 started', '23T01:00..23T05:00 x4 skipped missed', '23T06:00 started'])
  await t.later(-6 * HOUR)
  // Only the second started one is left after the clock that went back again.
  expect(t.rows()).toEqual(['23T03:00 started', '23T06:00 started'])
  await t.later(150 * MINUTE)
  await t.later(90 * MINUTE)
  expect(t.rows().slice(2)).toEqual(['23T01:00..23T02:00 x2 skipped missed', '23T04:00 started'])
})

test('a row that stands for several slots keeps its part up to now', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *' })
  await t.later(10 * HOUR + 30 * MINUTE)
  expect(t.rows()).toEqual(['23T01:00..23T10:00 x10 skipped missed'])
  await t.later(-6 * HOUR)
  expect(t.rows()).toEqual(['23T01:00..23T04:00 x4 skipped missed'])
  await t.later(-3 * HOUR)
  expect(t.rows()).toEqual(['23T01:00 skipped missed'])
  await t.later(30 * MINUTE)
  expect(t.rows().slice(1)).toEqual(['23T02:00 started'])
})

test('a slot with jitter that is not due yet by the clock that went back comes again', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', jitter: '30m', inputs: { hold: true } })
  const skipped = () => t.firings().find(({ reason }) => reason === 'overlap')
  while (!skipped()) await t.later(MINUTE)
  const { at, seen_at, late_ms } = skipped()!
  const due = seen_at - late_ms!
  if (due === at) return
  t.clock.now = due - 1
  await t.look()
  expect(skipped()).toBeUndefined()
  await t.answer()
  await t.later(1)
  expect(t.firings().at(-1)).toMatchObject({ at, state: 'started', late_ms: 0 })
})

test('a firing that waits for a slot after now comes again at its time', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', overlap: 'queue', inputs: { hold: true } })
  await t.later(HOUR)
  await t.later(DAY)
  expect(t.rows().at(-1)).toBe('24T01:00 waiting overlap')
  await t.later(-DAY + 10 * MINUTE)
  await t.answer()
  await t.look()
  expect(t.rows()).toEqual(['23T01:00 started'])
  await t.later(50 * MINUTE)
  expect(t.rows().slice(1)).toEqual(['23T02:00 started'])
})

test('a clock that is put back while a trigger is paused leaves no row after now', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *' })
  await t.later(10 * HOUR + 30 * MINUTE)
  t.triggers.pause({ name: 'nightly' }, null, 'local:ada')
  await t.later(-6 * HOUR)
  t.triggers.resume({ name: 'nightly' }, 'none', 'local:ada')
  expect(t.rows()).toEqual(['23T01:00..23T04:00 x4 skipped missed'])
  await t.later(30 * MINUTE)
  expect(t.rows().slice(1)).toEqual(['23T05:00 started'])
  expect(t.clock.now).toBe(BEGIN + 5 * HOUR)
})
