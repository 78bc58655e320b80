// What a schedule may say: each refusal names its part and what to write instead, and what is left out is filled in.

import { expect, test } from 'bun:test'
import { checkSchedule, type ScheduleFields } from '../../lib/triggers/schedule/spec.ts'
import { AROUND, specOf } from './spec-of.ts'

const BERLIN = 'Europe/Berlin'

/** `<path> <message>` of each problem. */
function refusals(fields: ScheduleFields, overlap = 'allow'): string[] {
  const { problems = [] } = checkSchedule(fields, { ...AROUND, overlap })
  return problems.map(({ path, message }) => `${path} ${message}`)
}

const PATTERNS: [cron: string, ...says: (string | RegExp)[]][] = [
  ['*/15 * * * * *', 'seconds are not supported; the shortest distance is a minute'],
  ['0 6 ? * 1', 'day `?`: write `*`'],
  ['H H * * *', 'minute `H`: write a number', 'hour `H`: write a number'],
  ['H/15 * * * *', 'minute `H/15`: write a number'],
  ['H(0-29) * * * *', 'minute `H(0-29)`: write a number'],
  ['0 6 15W * *', 'day `15W`: the nearest working day is not supported'],
  ['0 6 LW * *', 'day `LW`: the nearest working day is not supported'],
  ['0 6 L-3 * *', 'day `L-3`: write 1 to 31'],
  ['0 6 13 * +5', 'weekday `+5`: write `5`'],
  ['0 6 * * L', 'weekday `L`: write `5L` for the last Friday'],
  ['0 6 * * 5#6', 'weekday `5#6`: write `#1` to `#5`'],
  ['0 6 * * 8L', 'weekday `8L`: write one weekday'],
  ['0 6 * * 1-5#2', 'weekday `1-5#2`: write one weekday'],
  ['@reboot', '`@reboot` is not a time: write @hourly'],
  ['2027-01-01T00:00:00', '`2027-01-01T00:00:00` is one point in time: write it as `at`'],
  ['0 6 * * 6-1', 'weekday `6-1`: a range does not go backwards: write `6-6,0-1`'],
  ['22-2 * * * *', 'minute `22-2`: a range does not go backwards: write `22-59,0-2`'],
  ['5/15 * * * *', 'minute `5/15`: write `5-59/15`'],
  ['*/0 * * * *', 'minute `*/0`: write a step of 1 to 60'],
  ['*/90 * * * *', 'minute `*/90`: write a step of 1 to 60'],
  ['*/0', 'has 1 field: write five fields'],
  ['60 * * * *', 'minute `60`: write 0 to 59'],
  ['0 24 * * *', 'hour `24`: write 0 to 23'],
  ['0 0 0 * *', 'day `0`: write 1 to 31'],
  ['0 0 32 * *', 'day `32`: write 1 to 31'],
  ['0 0 * 13 *', 'month `13`: write 1 to 12 or JAN to DEC'],
  ['0 0 * * 8', 'weekday `8`: write 0 to 7 or SUN to SAT'],
  ['0 0 * * MONDAY', 'weekday `MONDAY`: write 0 to 7'],
  ['0 0 * MON *', 'month `MON`: write 1 to 12'],
  ['0 6 * *', 'has 4 fields: write five fields: minute, hour, day, month and weekday'],
  ['0 6 * * * * *', 'has 7 fields'],
  ['', 'is empty: write five fields'],
  [' \t', 'is empty: write five fields'],
  ['0 0 30 2 *', 'there is no such day: no month 2 has a day 30'],
  ['0 0 31 4,6,9,11 *', 'there is no such day'],
  ['1,,2 * * * *', 'minute ``: remove the comma'],
  ['1, * * * *', 'minute ``: remove the comma'],
  ['-1 * * * *', 'minute `-1`: write 0 to 59'],
  ['1-2-3 * * * *', 'minute `1-2-3`: write 0 to 59'],
  ['*-5 * * * *', 'minute `*-5`: write 0 to 59'],
  ['1.5 * * * *', 'minute `1.5`: write 0 to 59'],
  ['٣ * * * *', 'minute `٣`: write 0 to 59'],
  ['0\n6 * * *', 'has 4 fields'],
  ['0 6 * * 1\n', 'weekday `1\n`: write 0 to 7'],
  [`0 6 * * ${'1,'.repeat(100)}1`, 'must have at most 200 characters'],
]

test.each(PATTERNS)('the pattern %j is refused', (cron, ...says) => {
  const found = refusals({ cron, tz: BERLIN })
  expect(found).toHaveLength(says.length)
  for (const [index, text] of says.entries()) expect(found[index]).toStartWith(`/cron ${text}`)
})

test.each([
  ['0 6 * * 1-5', '0 6 * * 1-5'],
  ['\t0   6\t*  * 1-5 ', '0 6 * * 1-5'],
  ['0 6 29 2 *', '0 6 29 2 *'],
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['0,30 1-5/2,7 L JaN-mAr sun,FRI-SUN,7', '0,30 1-5/2,7 L JaN-mAr sun,FRI-SUN,7'],
  ['0 0 * * 5#5,fri#1,5L,0-7', '0 0 * * 5#5,fri#1,5L,0-7'],
  ['05 06 * * *', '05 06 * * *'],
])('the pattern %j is stored as %j', (cron, stored) => {
  expect(specOf({ cron, tz: BERLIN })).toMatchObject({ cron: stored, tz: BERLIN })
})

test.each([
  ['Europe/Nowhere', 'is not a zone: write the name of a place'],
  ['Europe/Berlim', 'is not a zone (did you mean `Europe/Berlin`?)'],
  ['', 'is empty: write the name of a place such as Europe/Berlin, or UTC'],
  ['local', 'is not a zone'],
  ['+02:00', 'is an offset'],
  ['GMT+2', 'is an offset'],
  ['UTC+2', 'is an offset'],
  ['EST', 'is not a zone (did you mean `America/New_York`?)'],
  ['CET', 'is not a zone (did you mean `Europe/Berlin`?)'],
  ['GMT', 'is not a zone (did you mean `UTC`?)'],
  ['utc', 'is not a zone (did you mean `UTC`?)'],
  ['2026-01-01T00:00[Europe/Berlin]', 'is not a zone'],
  ['../Berlin', 'is not a zone'],
  ['Europe/Berlin ', 'is not a zone'],
])('the zone %j is refused', (tz, says) => {
  const [found, ...more] = refusals({ cron: '0 6 * * *', tz })
  expect(more).toEqual([])
  expect(found).toStartWith('/tz ')
  expect(found).toContain(says)
  expect(refusals({ at: '2026-12-01T09:00', tz })).toEqual([found!])
})

test.each(['Europe/Berlin', 'Europe/Kiev', 'America/Argentina/Buenos_Aires', 'US/Eastern', 'Etc/GMT+2', 'UTC'])(
  'the zone %s is kept as it is written',
  tz => expect(specOf({ cron: '0 6 * * *', tz })).toMatchObject({ tz }),
)

test('what is left out is filled in', () => {
  const options = { catch_up: 'none', window: '24h', max: 10, late_after: '5m' } as const
  expect(specOf({ cron: '0 6 * * *' })).toEqual({ cron: '0 6 * * *', tz: 'UTC', ...options })
  expect(specOf({ every: '90m' })).toEqual({ every: '90m', from: '2026-11-23T06:00Z', ...options })
  expect(specOf({ at: '2026-12-01T09:00' })).toEqual({ at: '2026-12-01T09:00', tz: 'UTC', ...options })
  const written = { catch_up: 'all', window: '30d', max: 100, late_after: '24h', jitter: '5m' } as const
  expect(specOf({ cron: '0 6 * * *', ...written })).toMatchObject(written)
  // What is stored is checked again after each change, and stays the same.
  for (const fields of [{ cron: '@daily' }, { every: '1h' }, { at: '2026-12-01T09:00:30.5Z' }]) {
    expect(specOf(specOf(fields))).toEqual(specOf(fields))
  }
})

test('a schedule has one rule, and what belongs to another is refused', () => {
  expect(refusals({})).toEqual(['/cron is required, or `every`, or `at`: they say when the schedule is due'])
  expect(refusals({ cron: '* * * * *', every: '1h' })).toEqual(['/every stands beside `cron`: keep one of them'])
  expect(refusals({ every: '1h', at: '2026-12-01T09:00' })).toEqual(['/at stands beside `every`: keep one of them'])
  expect(refusals({ cron: '* * * * *', from: '2026-12-01T09:00Z' })).toEqual(['/from belongs to `every`: remove it'])
  expect(refusals({ every: '1h', tz: BERLIN })[0]).toStartWith('/tz does not belong to `every`')
})

test('all problems are told at once', () => {
  const all = {
    cron: '60 25 * * *',
    tz: 'EST',
    catch_up: 'some',
    window: '31d',
    max: 0,
    late_after: '30s',
    jitter: '5',
  }
  const paths = refusals(all).map(text => text.split(' ')[0]!)
  expect(paths).toEqual(['/tz', '/cron', '/cron', '/catch_up', '/window', '/late_after', '/max', '/jitter'])
})

test.each([
  ['30s', 'must be whole minutes, at least 1m'],
  ['90s', 'must be whole minutes, at least 1m'],
  ['0m', 'must be whole minutes, at least 1m'],
  ['5', 'must be a duration'],
  ['daily', 'must be a duration'],
])('`every: %s` is refused', (every, says) => {
  expect(refusals({ every })[0]).toStartWith(`/every ${says}`)
})

test('`from` is an instant, cut to the minute', () => {
  expect(specOf({ every: '1h', from: '2026-11-23T07:00:59.9+01:00' })).toMatchObject({ from: '2026-11-23T06:00Z' })
  for (const from of ['2026-11-23T06:00', '2026-02-30T06:00Z', 'now', '']) {
    expect(refusals({ every: '1h', from })).toEqual([
      '/from must be a time with an offset, such as 2026-11-23T06:00:00Z',
    ])
  }
})

test('a local time that is not there, or twice, names both times that could be meant', () => {
  const at = (time: string, tz = BERLIN) => refusals({ at: time, tz }).join()
  expect(at('2026-03-29T02:30')).toBe(
    '/at 2026-03-29T02:30 does not exist in Europe/Berlin: write 2026-03-29T01:59 or 2026-03-29T03:00',
  )
  expect(at('2026-10-04T02:15', 'Australia/Lord_Howe')).toEndWith('write 2026-10-04T01:59 or 2026-10-04T02:30')
  expect(at('2026-10-25T02:30')).toBe(
    '/at 2026-10-25T02:30 is twice in Europe/Berlin: write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00',
  )
  expect(at('2026-10-25T02:30+01:00')).toBe('')
  expect(at('2026-03-29T01:59')).toBe('')
  expect(at('2026-03-29T03:00')).toBe('')
  for (const time of [
    '2026-12-01',
    '2026-02-30T09:00',
    '2026-12-01T24:00',
    '2026-12-01 09:00',
    '2026-12-01T09:00+99:00',
  ]) {
    expect(at(time)).toStartWith('/at must be a time such as 2026-12-01T09:00')
  }
})

test('what becomes of late slots has bounds', () => {
  const of = (fields: ScheduleFields, overlap?: string) => refusals({ cron: '0 6 * * *', ...fields }, overlap)
  for (const late_after of ['59s', '25h', 'x']) expect(of({ late_after })).toHaveLength(1)
  for (const late_after of ['1m', '24h']) expect(of({ late_after })).toEqual([])
  for (const window of ['31d', '1s', '']) expect(of({ window })).toHaveLength(1)
  for (const window of ['30d', '1m']) expect(of({ window })).toEqual([])
  for (const max of [0, 101, 1.5, Number.NaN])
    expect(of({ max })).toEqual(['/max must be a whole number from 1 to 100'])
  for (const overlap of ['skip', 'cancel_running'])
    expect(of({ catch_up: 'all' }, overlap)[0]).toStartWith('/catch_up all needs')
  for (const overlap of ['queue', 'allow']) expect(of({ catch_up: 'all' }, overlap)).toEqual([])
  for (const catch_up of ['none', 'last']) expect(of({ catch_up }, 'skip')).toEqual([])
})

test.each([
  [{ cron: '0 6 * * *' }, '12h', '12h1m'],
  [{ cron: '0 6,9 * * *' }, '90m', '91m'],
  [{ cron: '0 0,23 * * *' }, '30m', '31m'],
  [{ cron: '0 0,23 * * 1' }, '11h30m', '11h31m'],
  [{ cron: '0 0 1,31 * *' }, '12h', '13h'],
  [{ cron: '*/15 * * * *' }, '7m30s', '8m'],
  [{ cron: '0 0 1 * *' }, '14d', '15d'],
  [{ every: '10m' }, '5m', '6m'],
])('the jitter of %j is at most %s', (rule, most, more) => {
  expect(refusals({ ...rule, jitter: most })).toEqual([])
  expect(refusals({ ...rule, jitter: more })[0]).toStartWith('/jitter must be at most')
  expect(refusals({ ...rule, jitter: '0s' })[0]).toStartWith('/jitter must be at least')
})
