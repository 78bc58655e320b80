// The clock of a run or phase against a stopwatch: it counts the time between its stops, is the same however often it is
// told what it knows, and a step of the time delays it by no more than that step.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type BootClock, elapsedSince } from '../../../lib/run/core/boot-clock.ts'
import { type Clock, isDue, pause, resume } from '../../../lib/run/core/clock.ts'

const START = 1_700_000_000_000
const time = fc.integer({ min: 0, max: 1_000_000 })
const limit = fc.integer({ min: 0, max: 1_000_000 })
/** Milliseconds that pass, and whether the clock stands meanwhile. */
const spans = fc.array(fc.record({ ms: fc.nat(10_000), stands: fc.boolean() }), { maxLength: 20 })

const running = (ms: number): Clock => ({ deadline: START + ms, left: null })
const NONE: Clock = { deadline: null, left: null }

test('it is due when it has run for its time, however often it was stopped in between', () => {
  fc.assert(
    fc.property(limit, spans, (ms, passed) => {
      let clock = running(ms)
      let now = START
      let ran = 0
      for (const span of passed) {
        clock = span.stands ? pause(clock, now) : resume(clock, now)
        now += span.ms
        if (!span.stands) ran += span.ms
        // One that was over before it stood may say so while it stands, or once it goes on.
        if (ran < ms) expect(isDue(clock, now)).toBe(false)
        else if (!span.stands) expect(isDue(clock, now)).toBe(true)
      }
      clock = resume(clock, now)
      const left = Math.max(0, ms - ran)
      expect(isDue(clock, now + left)).toBe(true)
      if (left > 0) expect(isDue(clock, now + left - 1)).toBe(false)
    }),
  )
})

test('a stopped clock is not due before it is started again', () => {
  fc.assert(
    fc.property(
      limit.filter(ms => ms > 0),
      time,
      (ms, later) => {
        expect(isDue(pause(running(ms), START), START + ms + later)).toBe(false)
      },
    ),
  )
})

test('it either runs or is stopped, and repeated calls change nothing', () => {
  fc.assert(
    fc.property(limit, time, time, (ms, first, second) => {
      const stands = pause(running(ms), START + first)
      expect([stands.deadline, stands.left !== null]).toEqual([null, true])
      expect(stands.left).toBeGreaterThanOrEqual(0)
      expect(pause(stands, START + first + second)).toEqual(stands)
      const runs = resume(stands, START + first + second)
      expect([runs.left, runs.deadline !== null]).toEqual([null, true])
      expect(resume(runs, START + first + second + 1)).toEqual(runs)
    }),
  )
})

test('a clock without a time is never stopped and never due', () => {
  fc.assert(
    fc.property(time, now => {
      expect([pause(NONE, now), resume(NONE, now), isDue(NONE, now)]).toEqual([NONE, NONE, false])
    }),
  )
})

test('a clock is the same after it was stored in a row', () => {
  fc.assert(
    fc.property(limit, time, fc.boolean(), (ms, at, stands) => {
      const clock = stands ? pause(running(ms), START + at) : running(ms)
      const read = JSON.parse(JSON.stringify(clock)) as Clock
      expect(read).toEqual(clock)
      expect(isDue(resume(read, START + at), START + at + ms)).toBe(isDue(resume(clock, START + at), START + at + ms))
    }),
  )
})

test('a jump of the system clock changes it by no more than the jump', () => {
  fc.assert(
    fc.property(limit, time, fc.integer({ min: -86_400_000, max: 86_400_000 }), (ms, at, step) => {
      const stands = pause(running(ms), START + at)
      const runs = resume(stands, START + at + step)
      const left = Math.max(0, ms - at)
      expect(isDue(runs, START + at + step + left)).toBe(true)
      // A pause that the time stepped back into leaves no more than there was, and the step.
      expect(pause(running(ms), START + Math.min(0, step)).left!).toBeLessThanOrEqual(ms + Math.abs(Math.min(0, step)))
    }),
  )
})

test('the time since a moment is known within one boot only', () => {
  const bootClock: BootClock = { boot: 'second', now: () => 1_000, pause: async () => {} }
  expect(elapsedSince({ boot: 'second', at: 400 }, bootClock)).toBe(600)
  expect(elapsedSince({ boot: 'first', at: 400 }, bootClock)).toBeNull()
  expect(elapsedSince({ boot: null, at: null }, bootClock)).toBeNull()
  // In a container the clock may have started again.
  expect(elapsedSince({ boot: 'second', at: 1_001 }, bootClock)).toBeNull()
})
