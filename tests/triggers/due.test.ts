// What becomes of due slots, in the rows of the contract's table: downtimes, clocks that jump, jitter, long absences.

import { expect, test } from 'bun:test'
import { due, nextAt, partUntil, passedOver } from '../../lib/triggers/schedule/due.ts'
import { slotsOf } from '../../lib/triggers/schedule/slots.ts'
import type { ScheduleFields } from '../../lib/triggers/schedule/spec.ts'
import { specOf } from './spec-of.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const ID = '0191d0f6-2a55-7c31-9d5c-7a5d0c1f4b11'
const NOON = Date.UTC(2026, 10, 23, 12)

const hourly = (more: ScheduleFields = {}) => specOf({ cron: '0 * * * *', tz: 'UTC', ...more })
const dueIn = (more: ScheduleFields, cursor: number, now: number) => due(hourly(more), cursor, now, ID)

test('nothing is due before the next slot, and the cursor stays', () => {
  for (const now of [NOON, NOON + 59 * MINUTE]) {
    expect(dueIn({}, NOON, now)).toEqual({ cursor: NOON, clock_behind: false, missed: null, starts: [] })
  }
})

test('a slot that is due starts once', () => {
  const now = NOON + HOUR + 12_000
  const found = dueIn({}, NOON, now)
  expect(found).toEqual({
    cursor: NOON + HOUR,
    clock_behind: false,
    missed: null,
    starts: [{ slot: NOON + HOUR, late_ms: 12_000, catch_up: false }],
  })
  expect(dueIn({}, found.cursor, now)).toMatchObject({ cursor: found.cursor, missed: null, starts: [] })
})

test.each(['none', 'last', 'all'])('a slot in time starts without catching up with %s', catch_up => {
  const { starts } = dueIn({ catch_up }, NOON, NOON + HOUR + 5 * MINUTE)
  expect(starts).toEqual([{ slot: NOON + HOUR, late_ms: 5 * MINUTE, catch_up: false }])
})

// After 26 hours that end at 14:10 the slots from 13:00 of the day before are due.
const BACK = NOON + 26 * HOUR + 10 * MINUTE
const MISSED = (count: number) => ({ at: NOON + HOUR, until: NOON + count * HOUR, count })
const STARTS = (...hours: number[]) =>
  hours.map(hour => ({ slot: NOON + hour * HOUR, late_ms: BACK - NOON - hour * HOUR, catch_up: true }))

test.each<[ScheduleFields, number, number[]]>([
  [{}, 26, []],
  [{ late_after: '9m' }, 26, []],
  [{ catch_up: 'last' }, 25, [26]],
  [{ catch_up: 'last', window: '10m' }, 25, [26]],
  [{ catch_up: 'last', window: '9m' }, 26, []],
  [{ catch_up: 'all' }, 16, [17, 18, 19, 20, 21, 22, 23, 24, 25, 26]],
  [{ catch_up: 'all', max: 3 }, 23, [24, 25, 26]],
  [{ catch_up: 'all', window: '2h' }, 24, [25, 26]],
  [{ catch_up: 'all', window: '2h', max: 1 }, 25, [26]],
  [{ catch_up: 'all', window: '9m' }, 26, []],
])('after 26 hours, %j leaves %d missed and starts %j', (more, missed, starts) => {
  expect(dueIn(more, NOON, BACK)).toEqual({
    cursor: NOON + 26 * HOUR,
    clock_behind: false,
    missed: MISSED(missed),
    starts: STARTS(...starts),
  })
})

test('`none` starts the newest slot of a downtime when it is in time, which is no catching up', () => {
  expect(dueIn({ late_after: '10m' }, NOON, BACK)).toMatchObject({
    missed: MISSED(25),
    starts: [{ slot: NOON + 26 * HOUR, late_ms: 10 * MINUTE, catch_up: false }],
  })
})

test('all slots within the window start when they are few', () => {
  const { missed, starts } = dueIn({ catch_up: 'all', max: 100, window: '30d' }, NOON, BACK)
  expect(missed).toBeNull()
  expect(starts.map(({ slot }) => slot)).toEqual(Array.from({ length: 26 }, (_, index) => NOON + (index + 1) * HOUR))
})

test('a clock that goes three days ahead and back starts nothing twice, and later slots at their time', () => {
  const ahead = dueIn({ late_after: '10m' }, NOON, NOON + 3 * DAY + 2 * MINUTE)
  expect(ahead).toMatchObject({ cursor: NOON + 3 * DAY, missed: MISSED(71), starts: [{ slot: NOON + 3 * DAY }] })
  const back = dueIn({}, ahead.cursor, NOON + 5 * MINUTE)
  expect(back).toEqual({ cursor: NOON + 5 * MINUTE, clock_behind: true, missed: null, starts: [] })
  // The row of what was missed on the way keeps what is over by now, and the rest comes due again.
  const part = (now: number) => partUntil(hourly(), ahead.missed!, now, ID)
  expect(part(NOON + 5 * MINUTE)).toBeNull()
  expect(part(NOON + HOUR)).toEqual(MISSED(1))
  expect(part(NOON + 5 * HOUR + 5 * MINUTE)).toEqual(MISSED(5))
  expect(part(NOON + 4 * DAY)).toEqual(ahead.missed)
  expect(dueIn({}, back.cursor, NOON + HOUR).starts).toEqual([{ slot: NOON + HOUR, late_ms: 0, catch_up: false }])
})

test('ten years without a look are one row with the right count, and the newest slots are judged as ever', () => {
  const spec = specOf({ cron: '*/5 * * * *', tz: 'Europe/Berlin', catch_up: 'all', max: 3 })
  const now = NOON + 3_653 * DAY + 30_000
  const { cursor, missed, starts } = due(spec, NOON, now, ID)
  const newest = now - 30_000
  expect(cursor).toBe(newest)
  expect(missed).toEqual({ at: NOON + 5 * MINUTE, until: newest - 15 * MINUTE, count: 3_653 * 288 - 3 })
  expect(starts.map(({ slot }) => slot)).toEqual([newest - 10 * MINUTE, newest - 5 * MINUTE, newest])
})

test('a pause or an older copy passes over all slots with one row, and goes on from now', () => {
  const now = NOON + 26 * HOUR + 10 * MINUTE
  expect(passedOver(hourly(), NOON, now, ID)).toEqual({ cursor: now, row: MISSED(26) })
  expect(passedOver(hourly(), NOON, NOON + MINUTE, ID)).toEqual({ cursor: NOON + MINUTE, row: null })
  expect(passedOver(hourly(), now, NOON, ID)).toEqual({ cursor: NOON, row: null })
})

test('the index has the time of the next slot, and none after the last one', () => {
  expect(nextAt(hourly(), NOON, ID)).toBe(NOON + HOUR)
  const once = specOf({ at: '2026-12-01T09:00', tz: 'UTC' })
  expect(nextAt(once, NOON, ID)).toBe(Date.UTC(2026, 11, 1, 9))
  expect(nextAt(once, Date.UTC(2026, 11, 1, 9), ID)).toBeNull()
})

const JITTER = 25 * MINUTE

/** How long after each slot it is due, from what `due` says of each moment. */
function delaysOf(triggerId: string, more: ScheduleFields = {}): number[] {
  const spec = hourly({ jitter: '25m', ...more })
  let cursor = NOON
  return Array.from({ length: 48 }, () => {
    const now = nextAt(spec, cursor, triggerId)!
    const { starts, missed, cursor: next } = due(spec, cursor, now, triggerId)
    expect([missed, starts.length, next]).toEqual([null, 1, now])
    expect(due(spec, cursor, now - 1, triggerId).starts).toEqual([])
    const row = { at: starts[0]!.slot, until: starts[0]!.slot, count: 1 }
    expect([now - 1, now].map(at => partUntil(spec, row, at, triggerId))).toEqual([null, row])
    expect(starts[0]).toMatchObject({ late_ms: 0, catch_up: false })
    cursor = next
    return now - starts[0]!.slot
  })
}

test('jitter moves the start and not the slot, always by the same', () => {
  const delays = delaysOf(ID)
  expect(delays).toEqual(delaysOf(ID))
  expect(delays).not.toEqual(delaysOf('0191d0f6-2a55-7c31-9d5c-7a5d0c1f4b12'))
  expect(new Set(delays).size).toBe(48)
  for (const delay of delays) {
    expect(delay).toBeGreaterThanOrEqual(0)
    expect(delay).toBeLessThan(JITTER)
  }
  // The first 48 bits of SHA-256 of `<trigger id> <slot>`: every hub and every later version must come to the same.
  expect(delays.slice(0, 3)).toEqual([1_366_806, 799_691, 1_104_318])
})

test('with jitter each slot is decided once, wherever the looks fall', () => {
  const spec = hourly({ jitter: '25m', catch_up: 'all', max: 100, window: '30d' })
  for (const minutes of [1, 7, 13, 59, 61, 400, 5_000]) {
    const seen: number[] = []
    let cursor = NOON - JITTER
    for (let now = NOON; now <= NOON + 4 * DAY; now += minutes * MINUTE) {
      const { starts, missed, cursor: next } = due(spec, cursor, now, ID)
      expect(missed).toBeNull()
      seen.push(...starts.map(({ slot }) => slot))
      cursor = next
    }
    expect(seen).toEqual(slotsOf(spec, seen[0]! - 1, seen.at(-1)!, 1_000))
  }
})
