// The slots of schedules around changes of the clock: the vectors of the contract, absolute distances, single times.

import { expect, test } from 'bun:test'
import { countSlots, slotsOf } from '../../lib/triggers/schedule/slots.ts'
import { localText } from '../../lib/triggers/schedule/zone.ts'
import { specOf } from './spec-of.ts'

/** Windows begin at their first instant and end before their last one. */
function locals(tz: string, cron: string, from: string, to: string): string[] {
  const slots = slotsOf(specOf({ cron, tz }), Date.parse(`${from}Z`) - 1, Date.parse(`${to}Z`) - 1, 1_000)
  return slots.map(slot => localText(slot, tz))
}

const BERLIN = 'Europe/Berlin'
const SUMMER = '2026-10-25T02:00+02:00 2026-10-25T02:20+02:00 2026-10-25T02:40+02:00'

const VECTORS: [tz: string, cron: string, from: string, to: string, slots: string][] = [
  [BERLIN, '30 2 * * *', '2026-03-28T12:00', '2026-03-30T12:00', '2026-03-29T03:00+02:00 2026-03-30T02:30+02:00'],
  [BERLIN, '30 2 * * *', '2026-10-24T12:00', '2026-10-26T12:00', '2026-10-25T02:30+02:00 2026-10-26T02:30+01:00'],
  [
    BERLIN,
    '*/30 * * * *',
    '2026-03-29T00:00',
    '2026-03-29T02:00',
    '2026-03-29T01:00+01:00 2026-03-29T01:30+01:00 2026-03-29T03:00+02:00 2026-03-29T03:30+02:00',
  ],
  [
    BERLIN,
    '*/30 * * * *',
    '2026-10-25T00:00',
    '2026-10-25T02:00',
    '2026-10-25T02:00+02:00 2026-10-25T02:30+02:00 2026-10-25T02:00+01:00 2026-10-25T02:30+01:00',
  ],
  [BERLIN, '0,30 2,3 * * *', '2026-03-29T00:00', '2026-03-29T06:00', '2026-03-29T03:00+02:00 2026-03-29T03:30+02:00'],
  [
    BERLIN,
    '30 */2 * * *',
    '2026-10-24T22:00',
    '2026-10-25T04:00',
    '2026-10-25T00:30+02:00 2026-10-25T02:30+02:00 2026-10-25T02:30+01:00 2026-10-25T04:30+01:00',
  ],
  [BERLIN, '*/20 2 * * *', '2026-10-24T22:00', '2026-10-25T04:00', `${SUMMER} ${SUMMER.replaceAll('+02', '+01')}`],
  [BERLIN, '*/20 2 * * *', '2026-03-28T22:00', '2026-03-29T06:00', ''],
  [
    'America/New_York',
    '30 2 * * *',
    '2026-03-07T12:00',
    '2026-03-09T12:00',
    '2026-03-08T03:00-04:00 2026-03-09T02:30-04:00',
  ],
  [
    'America/New_York',
    '30 1 * * *',
    '2026-10-31T12:00',
    '2026-11-02T12:00',
    '2026-11-01T01:30-04:00 2026-11-02T01:30-05:00',
  ],
  [
    'Australia/Lord_Howe',
    '15 2 * * *',
    '2026-10-03T00:00',
    '2026-10-05T00:00',
    '2026-10-04T02:30+11:00 2026-10-05T02:15+11:00',
  ],
  [
    'Australia/Lord_Howe',
    '45 1 * * *',
    '2026-04-03T20:00',
    '2026-04-06T00:00',
    '2026-04-05T01:45+11:00 2026-04-06T01:45+10:30',
  ],
  [
    'Africa/Casablanca',
    '30 2 * * *',
    '2026-02-14T00:00',
    '2026-02-16T00:00',
    '2026-02-14T02:30+01:00 2026-02-15T02:30+01:00',
  ],
  [
    'Africa/Casablanca',
    '30 2 * * *',
    '2026-03-21T00:00',
    '2026-03-23T00:00',
    '2026-03-21T02:30+00:00 2026-03-22T03:00+01:00',
  ],
  [
    'Asia/Beirut',
    '30 0 * * *',
    '2026-03-28T00:00',
    '2026-03-30T00:00',
    '2026-03-29T01:00+03:00 2026-03-30T00:30+03:00',
  ],
  [
    'Asia/Beirut',
    '30 23 * * *',
    '2026-10-23T22:00',
    '2026-10-25T23:00',
    '2026-10-24T23:30+03:00 2026-10-25T23:30+02:00',
  ],
  [
    'Africa/Cairo',
    '0 0 * * *',
    '2026-04-23T00:00',
    '2026-04-25T00:00',
    '2026-04-24T01:00+03:00 2026-04-25T00:00+03:00',
  ],
  [
    'America/Santiago',
    '0 0 * * *',
    '2026-09-05T06:00',
    '2026-09-07T06:00',
    '2026-09-06T01:00-03:00 2026-09-07T00:00-03:00',
  ],
  [
    'Antarctica/Troll',
    '30 1 * * *',
    '2026-03-28T12:00',
    '2026-03-30T12:00',
    '2026-03-29T03:00+02:00 2026-03-30T01:30+02:00',
  ],
  ['UTC', '0 0 29 2 *', '2026-01-01T00:00', '2029-01-01T00:00', '2028-02-29T00:00+00:00'],
  [
    BERLIN,
    '0 6 13 * 5',
    '2026-02-01T00:00',
    '2026-03-01T00:00',
    '2026-02-06T06:00+01:00 2026-02-13T06:00+01:00 2026-02-20T06:00+01:00 2026-02-27T06:00+01:00',
  ],
  // Gaps that end at midnight: the slot is the first instant of the next day, once with what is due there anyway.
  [
    'America/Nuuk',
    '30 23 * * *',
    '2026-03-27T12:00',
    '2026-03-30T12:00',
    '2026-03-27T23:30-02:00 2026-03-29T00:00-01:00 2026-03-29T23:30-01:00',
  ],
  ['America/Scoresbysund', '0 0,23 * * *', '2026-03-28T12:00', '2026-03-29T12:00', '2026-03-29T00:00-01:00'],
  // A whole day that did not exist.
  [
    'Pacific/Apia',
    '0 6 * * *',
    '2011-12-29T00:00',
    '2011-12-31T00:00',
    '2011-12-29T06:00-10:00 2011-12-31T00:00+14:00 2011-12-31T06:00+14:00',
  ],
  // A range with a step is a list, and so is fixed.
  [BERLIN, '0-59/30 2 * * *', '2026-10-24T22:00', '2026-10-25T04:00', '2026-10-25T02:00+02:00 2026-10-25T02:30+02:00'],
  ['UTC', '0 0 L 2 *', '2027-01-01T00:00', '2029-01-01T00:00', '2027-02-28T00:00+00:00 2028-02-29T00:00+00:00'],
  ['UTC', '0 0 * 1 FRI#2,1L', '2027-01-01T00:00', '2027-02-01T00:00', '2027-01-08T00:00+00:00 2027-01-25T00:00+00:00'],
]

test.each(VECTORS)('%s %s from %s', (tz, cron, from, to, slots) => {
  expect(locals(tz, cron, from, to).join(' ')).toBe(slots)
})

test('a slot at `after` is over, one at `until` is not, and `limit` takes the oldest', () => {
  const hourly = specOf({ cron: '0 * * * *', tz: 'UTC' })
  const at = (hour: number) => Date.UTC(2026, 0, 1, hour)
  expect(slotsOf(hourly, at(0), at(3), 10)).toEqual([at(1), at(2), at(3)])
  expect(slotsOf(hourly, at(0), at(3), 2)).toEqual([at(1), at(2)])
  expect(slotsOf(hourly, at(0) - 1, at(0), 2)).toEqual([at(0)])
  expect(slotsOf(hourly, at(3), at(3), 2)).toEqual([])
  expect(slotsOf(hourly, at(3), at(2), 2)).toEqual([])
})

test('a slot at the end of a gap is found from every moment before it, and from none after', () => {
  const change = Date.UTC(2026, 2, 29, 1)
  const next = Date.parse('2026-03-30T02:30+02:00')
  const fixed = specOf({ cron: '30 2 * * *', tz: BERLIN })
  for (const before of [1, 2, 999, 60_000, 3_600_000]) {
    expect(slotsOf(fixed, change - before, next, 5)).toEqual([change, next])
    expect(slotsOf(fixed, change - before, change - 1, 5)).toEqual([])
    expect(slotsOf(fixed, change - before, change, 5)).toEqual([change])
  }
  for (const after of [0, 1, 999, 60_000]) expect(slotsOf(fixed, change + after, next, 5)).toEqual([next])
})

test('going on from each slot gives the same slots as asking once, also in a repeated hour', () => {
  const repeating = specOf({ cron: '*/20 * * * *', tz: BERLIN })
  const fixed = specOf({ cron: '0,20,40 1,2,3 * * *', tz: BERLIN })
  for (const spec of [repeating, fixed]) {
    for (const day of ['2026-03-29', '2026-10-25']) {
      const [from, until] = [Date.parse(`${day}T00:00Z`) - 3_600_001, Date.parse(`${day}T06:00Z`)]
      const all = slotsOf(spec, from, until, 1_000)
      const stepped: number[] = []
      for (let after = from; ; after = stepped.at(-1)!) {
        const [slot] = slotsOf(spec, after, until, 1)
        if (slot === undefined) break
        stepped.push(slot)
      }
      expect(stepped).toEqual(all)
    }
  }
})

test('the rarest day is found without an end: a Monday that is 29 February', () => {
  const [slot] = slotsOf(specOf({ cron: '0 0 * 2 1#5', tz: 'UTC' }), Date.UTC(2072, 2, 1), Infinity, 1)
  expect(new Date(slot!).toISOString()).toBe('2112-02-29T00:00:00.000Z')
})

test('no slot is before 1970 or after 9999', () => {
  const year = (iso: number) => new Date(iso).getUTCFullYear()
  for (const spec of [specOf({ cron: '0 0 1 1 *', tz: 'UTC' }), specOf({ every: '365d', from: '1900-01-01T00:00Z' })]) {
    expect(slotsOf(spec, -8e15, 8.64e15, 1).map(year)).toEqual(['cron' in spec ? 1971 : 1970])
    expect(
      slotsOf(spec, Date.UTC(9998, 5, 1), Infinity, 5)
        .map(year)
        .at(-1),
    ).toBe(9999)
    expect(slotsOf(spec, 8.64e15, Infinity, 5)).toEqual([])
  }
})

test('slots are counted without being listed', () => {
  const minutely = specOf({ cron: '* * * * *', tz: BERLIN })
  const [from, until] = [Date.UTC(2026, 0, 1), Date.UTC(2076, 0, 1)]
  const started = process.cpuUsage()
  expect(countSlots(minutely, from, until, 2)).toEqual({
    count: (until - from) / 60_000,
    first: from + 60_000,
    newest: [until - 60_000, until],
  })
  const { user, system } = process.cpuUsage(started)
  expect((user + system) / 1_000).toBeLessThan(2_000)
})

test('`every` counts absolute time from its beginning', () => {
  const spec = specOf({ every: '90m', from: '2026-10-24T22:00:30Z' })
  const iso = (slot: number) => new Date(slot).toISOString().slice(5, 16)
  const slots = slotsOf(spec, Date.UTC(2026, 9, 20), Date.UTC(2026, 9, 25, 4), 10)
  expect(slots.map(iso)).toEqual(['10-24T22:00', '10-24T23:30', '10-25T01:00', '10-25T02:30', '10-25T04:00'])
  expect(slotsOf(spec, slots[1]!, slots[3]!, 10)).toEqual(slots.slice(2, 4))
  expect(countSlots(spec, slots[0]!, slots[4]!, 1)).toEqual({ count: 4, first: slots[1]!, newest: [slots[4]!] })
})

test('`at` is one slot, and then none', () => {
  const spec = specOf({ at: '2026-12-01T09:00', tz: BERLIN })
  const slot = Date.parse('2026-12-01T09:00+01:00')
  expect(slotsOf(spec, slot - 1, Infinity, 5)).toEqual([slot])
  expect(slotsOf(spec, slot, Infinity, 5)).toEqual([])
  const later = specOf({ at: '2026-10-25T02:30:00+01:00', tz: BERLIN })
  expect(slotsOf(later, 0, Infinity, 5)).toEqual([Date.parse('2026-10-25T01:30Z')])
})
