// Waits between attempts: they double, end at five minutes, and no two runs that failed together come back together.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { backoff as backoffOf } from '../lib/backoff.ts'

const MOST_MS = 5 * 60_000
const base = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 7 * 24 * 3_600_000 }))
const failures = fc.integer({ min: 0, max: 10_000 })
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

const retryDelay = (firstMs: number, failed: number, random: () => number) =>
  backoffOf(failed, { firstMs, mostMs: MOST_MS, random })

const whole = (backoff: number, failed: number) => (backoff === 0 ? 0 : Math.min(backoff * 2 ** failed, MOST_MS))

test('a wait is between the half and the whole of the doubled time, and never above five minutes', () => {
  fc.assert(
    fc.property(base, failures, chance, (backoff, failed, random) => {
      const delay = retryDelay(backoff, failed, () => random)
      // Rounding to whole milliseconds is free.
      expect(delay).toBeGreaterThanOrEqual(Math.floor(whole(backoff, failed) / 2))
      expect(delay).toBeLessThanOrEqual(Math.ceil(whole(backoff, failed)))
    }),
  )
})

test('a wait is a valid number of milliseconds', () => {
  fc.assert(
    fc.property(base, failures, chance, (backoff, failed, random) => {
      expect(Number.isFinite(retryDelay(backoff, failed, () => random))).toBe(true)
    }),
  )
})

test('a wait grows with the failures and with the random number', () => {
  fc.assert(
    fc.property(base, failures, chance, chance, (backoff, failed, one, other) => {
      expect(retryDelay(backoff, failed + 1, () => one)).toBeGreaterThanOrEqual(retryDelay(backoff, failed, () => one))
      const [least, most] = [Math.min(one, other), Math.max(one, other)]
      expect(retryDelay(backoff, failed, () => most)).toBeGreaterThanOrEqual(retryDelay(backoff, failed, () => least))
    }),
  )
})

test('the random part reaches one half, and nearly the whole', () => {
  expect(retryDelay(1_000, 3, () => 0)).toBe(4_000)
  expect(retryDelay(1_000, 3, () => 1 - Number.EPSILON)).toBeGreaterThan(7_900)
  expect(retryDelay(1_000, 60, () => 0)).toBe(MOST_MS / 2)
  expect(retryDelay(0, 5, () => 0.5)).toBe(0)
})
