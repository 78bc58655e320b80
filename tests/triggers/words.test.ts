// What people read of a schedule: its words, and the days on which a change of the clock touches it.

import { expect, test } from 'bun:test'
import { type Note, notesOf } from '../../lib/triggers/schedule/notes.ts'
import { previewOf } from '../../lib/triggers/schedule/preview.ts'
import { wordsOf } from '../../lib/triggers/schedule/words.ts'
import { specOf } from './spec-of.ts'

test.each([
  ['0 6 * * 1-5', 'at 06:00, Monday to Friday'],
  ['30 2 * * *', 'at 02:30, every day'],
  ['0,30 2,3 * * *', 'at 02:00, 02:30, 03:00 and 03:30, every day'],
  ['* * * * *', 'every minute, every day'],
  ['*/15 * * * *', 'every 15 minutes, every day'],
  ['*/7 * * * *', 'every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56, every day'],
  ['0 * * * *', 'every hour at minute 0, every day'],
  ['30 */2 * * *', 'every 2 hours at minute 30, every day'],
  ['*/15 9-17 * * 1-5', 'every 15 minutes from 09:00 to 17:45, Monday to Friday'],
  ['*/10 3,7 * * *', 'every 10 minutes of hours 3 and 7, every day'],
  ['5 4,9,13-18 * * *', 'at minute 5 of hours 4, 9 and 13 to 18, every day'],
  ['0 6 13 * 5', 'at 06:00, on day 13 of the month or Friday'],
  ['0 0 L,15 * 0,6', 'at 00:00, on day 15 and the last day of the month or Saturday and Sunday'],
  ['0 9 * * FRI#2,1L', 'at 09:00, the second Friday of the month and the last Monday of the month'],
  ['0 6 1,15 JAN,JUN-AUG *', 'at 06:00, on days 1 and 15 of the month, in January and June to August'],
])('%s is said as: %s', (cron, words) => {
  expect(wordsOf(specOf({ cron, tz: 'Europe/Berlin' }))).toBe(`${words}, Europe/Berlin`)
})

test('distances and single times have words', () => {
  expect(wordsOf(specOf({ every: '90m' }))).toBe('every 1h 30m from 2026-11-23T06:00Z')
  expect(wordsOf(specOf({ at: '2026-12-01T09:00', tz: 'Europe/Berlin' }))).toBe(
    'once at 2026-12-01T09:00, Europe/Berlin',
  )
})

const NOW = Date.UTC(2026, 0, 15)
const notes = (tz: string, cron: string, now = NOW): Note[] => notesOf(specOf({ cron, tz }), now)
const days = (tz: string, cron: string): string[] => notes(tz, cron).map(({ day, kind }) => `${day} ${kind}`)

test('a note says what happens', () => {
  expect(notes('Europe/Berlin', '30 2 * * *')).toEqual([
    {
      day: '2026-03-29',
      kind: 'moved',
      text: '02:30 does not exist on 2026-03-29 in Europe/Berlin: the start is at 2026-03-29T03:00+02:00.',
    },
  ])
  expect(notes('Europe/Berlin', '*/20 2 * * *')).toEqual([
    {
      day: '2026-03-29',
      kind: 'missing',
      text: '02:00, 02:20 and 02:40 do not exist on 2026-03-29 in Europe/Berlin: nothing starts then.',
    },
    {
      day: '2026-10-25',
      kind: 'twice',
      text: '02:00, 02:20 and 02:40 are twice on 2026-10-25 in Europe/Berlin, and so are the starts.',
    },
  ])
  expect(notes('Europe/Berlin', '* * * * *')[0]!.text).toStartWith(
    '02:00, 02:01, 02:02, 02:03 and 56 more do not exist',
  )
})

test('the day of a note is the local day on which the slot was due', () => {
  expect(days('America/Nuuk', '30 23 * * *')).toEqual(['2026-03-28 moved'])
  expect(days('Africa/Cairo', '0 0 * * *')).toEqual(['2026-04-24 moved'])
  expect(days('Asia/Beirut', '0 */1 * * *')).toEqual(['2026-03-29 missing', '2026-10-24 twice'])
  expect(days('Africa/Casablanca', '30 2 * * *')).toEqual(['2026-03-22 moved'])
  expect(days('Africa/Casablanca', '*/30 2 * * *')).toEqual([
    '2026-02-15 twice',
    '2026-03-22 missing',
    '2027-02-07 twice',
  ])
  expect(days('Europe/Dublin', '*/30 * * * 0')).toEqual(['2026-03-29 missing', '2026-10-25 twice'])
  expect(days('Australia/Lord_Howe', '15 2 4 10 *')).toEqual(['2026-10-04 moved'])
})

test('there is no note without a change, beside it, or after 400 days', () => {
  expect(days('Europe/Berlin', '0 6 * * *')).toEqual([])
  expect(days('Europe/Berlin', '*/20 2 * * 1')).toEqual([])
  expect(days('UTC', '*/20 * * * *')).toEqual([])
  expect(days('Asia/Kathmandu', '*/20 * * * *')).toEqual([])
  const change = Date.UTC(2026, 2, 29, 1)
  expect(notes('Europe/Berlin', '30 2 * 3 *', change)).toMatchObject([{ day: '2027-03-28' }])
  expect(notes('Europe/Berlin', '30 2 29 3 *', change - 400 * 86_400_000)).toMatchObject([{ day: '2026-03-29' }])
  expect(notes('Europe/Berlin', '30 2 29 3 *', change - 400 * 86_400_000 - 1)).toEqual([])
  expect(notesOf(specOf({ every: '1h' }), NOW)).toEqual([])
})

test('a day that most years do not have is told with the next one', () => {
  expect(notes('UTC', '0 0 29 2 *')).toEqual([
    { day: '2028-02-29', kind: 'rare', text: 'Such a day is rare: next 2028-02-29.' },
  ])
})

test('a preview has slots with local times, notes and words', () => {
  const change = Date.UTC(2026, 2, 29, 1)
  expect(previewOf(specOf({ cron: '30 2 * * *', tz: 'Europe/Berlin' }), change - 1, Infinity, 2)).toEqual({
    slots: [
      { at: change, local: '2026-03-29T03:00+02:00' },
      { at: change + 23.5 * 3_600_000, local: '2026-03-30T02:30+02:00' },
    ],
    notes: [
      expect.objectContaining({ day: '2026-03-29', kind: 'moved' }),
      expect.objectContaining({ day: '2027-03-28', kind: 'moved' }),
    ],
    words: 'at 02:30, every day, Europe/Berlin',
  })
  expect(previewOf(specOf({ every: '1h' }), NOW, Infinity, 1)).toEqual({
    slots: [{ at: Date.UTC(2026, 10, 23, 6), local: '2026-11-23T06:00+00:00' }],
    notes: [],
    words: 'every 1h from 2026-11-23T06:00Z',
  })
})
