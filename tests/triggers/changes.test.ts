// Slots and notes around the changes of zones, against an enumeration that shares no code with cadre: random patterns by
// a printed seed. CADRE_SLOW_TESTS=1 looks at all changes of 2024 to 2035, with 200 patterns each.

import { expect, test } from 'bun:test'
import { notesOf } from '../../lib/triggers/schedule/notes.ts'
import { countSlots, slotsOf } from '../../lib/triggers/schedule/slots.ts'
import { checkSchedule } from '../../lib/triggers/schedule/spec.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { AROUND } from './spec-of.ts'
import { changesOf, expectedOf, randomPattern, windowAround } from './wall-clock.ts'

const SLOW = process.env.CADRE_SLOW_TESTS === '1'
const PATTERNS = SLOW ? 200 : 12
const HOUR = 3_600_000
const DAY = 24 * HOUR

const ZONES = [
  ['Europe/Berlin', 24],
  ['America/New_York', 24],
  ['Australia/Lord_Howe', 24],
  ['Africa/Casablanca', 26],
  ['Asia/Beirut', 24],
  ['America/Santiago', 24],
  ['Africa/Cairo', 24],
  ['America/Asuncion', 2],
  ['Pacific/Apia', 0],
  ['Europe/Dublin', 24],
  ['Asia/Kathmandu', 0],
  ['Antarctica/Troll', 24],
  ['America/Havana', 24],
  ['Asia/Gaza', 30],
  // Their gaps end at midnight.
  ['America/Nuuk', 24],
  ['America/Scoresbysund', 24],
  // Offsets of a quarter of an hour.
  ['Pacific/Chatham', 24],
] as const

const seed = seedOf('changes of zones')

test.each(ZONES)(
  'the slots around the changes of %s',
  (tz, least) => {
    const random = randomFrom(seed)
    const changes = changesOf(tz, Date.UTC(2024, 0, 1), Date.UTC(2036, 0, 1))
    // Tables of zones change, but not to less than half.
    expect(changes.length).toBeGreaterThanOrEqual(least / 2)
    if (changes.length === 0) changes.push(Date.UTC(2027, 2, 31, 12))
    const looked = SLOW ? changes : Array.from({ length: 3 }, () => random.of(changes))
    let [slots, notes, skipped] = [0, 0, 0]
    for (const change of looked) {
      const window = windowAround(tz, change)
      for (let count = 0; count < PATTERNS; count++) {
        const made = randomPattern(random, window)
        const { spec, problems } = checkSchedule({ cron: made.text, tz }, AROUND)
        if (spec === undefined) {
          expect([made.text, problems[0]!.message]).toEqual([
            made.text,
            expect.stringContaining('there is no such day'),
          ])
          skipped++
          continue
        }
        const expected = expectedOf(made, window)
        const [from, until] = [window.from + DAY / 2, window.until - DAY / 2]
        const about = `${made.text} in ${tz} around ${new Date(change).toISOString()}, seed ${seed}`
        const found = slotsOf(spec, from, until, Infinity)
        expect([about, found]).toEqual([about, expected.slots])
        const moment = change + random.of([-1, 0, 1, random.below(3 * HOUR), -random.below(3 * HOUR)])
        const parts = [slotsOf(spec, from, moment, Infinity), slotsOf(spec, moment, until, Infinity)]
        expect([about, moment, parts.flat()]).toEqual([about, moment, found])
        expect([about, moment, parts[0]!.filter(slot => slot > moment)]).toEqual([about, moment, []])
        const newest = found.slice(-3)
        expect(countSlots(spec, from, until, 3)).toEqual({ count: found.length, first: found[0] ?? null, newest })
        const noted = notesOf(spec, from).filter(({ kind, day }) => kind !== 'rare' && Date.parse(day) <= until)
        expect([about, noted.map(({ day, kind }) => `${day} ${kind}`)]).toEqual([about, expected.notes])
        slots += found.length
        notes += noted.length
      }
    }
    console.log(`${tz}: ${looked.length} changes, ${slots} slots, ${notes} notes, ${skipped} patterns without a day`)
    expect(slots).toBeGreaterThan(0)
    // A few random patterns may all miss the changes.
    if (SLOW && least > 0) expect(notes).toBeGreaterThan(0)
  },
  SLOW ? 600_000 : 20_000,
)
