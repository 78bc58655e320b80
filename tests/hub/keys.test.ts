// Private dispatch keys at rest, and the throttle of sign-ins with a clock of its own.

import { expect, test } from 'bun:test'
import { createSealer } from '../../lib/hub/keys.ts'
import { createThrottle } from '../../lib/hub/throttle.ts'

const PEM = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n'

test('sealed keys open under their own key only, and never twice alike', () => {
  const sealer = createSealer('one')
  const [first, second] = [sealer.seal(PEM), sealer.seal(PEM)]
  expect(first).not.toContain('PRIVATE')
  expect(first).not.toBe(second)
  expect(sealer.open(first)).toBe(PEM)
  expect(() => createSealer('two').open(first)).toThrow(/not the key/)
  expect(() => createSealer(undefined).open(first)).toThrow(/CADRE_HUB_KEY/)
  expect(() => sealer.open(`${first.slice(0, -6)}AAAA==`)).toThrow(/not the key/)
})

test('keys that were stored before there was a key still open', () => {
  expect(createSealer('one').open(createSealer(undefined).seal(PEM))).toBe(PEM)
})

test('ten failures in ten minutes make a pair wait; the account is delayed from everywhere', async () => {
  let now = 0
  const slept: number[] = []
  const throttle = createThrottle(
    () => now,
    async ms => void slept.push(ms),
  )
  for (let i = 0; i < 10; i++) {
    await throttle.admit('ann', 'here')
    throttle.failed('ann', 'here')
    now += 1_000
  }
  expect(throttle.admit('ann', 'here')).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 590 })
  slept.length = 0
  await throttle.admit('ann', 'elsewhere')
  expect(slept[0]).toBeGreaterThan(500)
  await throttle.admit('bob', 'here')
  expect(slept).toHaveLength(1)
  now = 601_000
  await throttle.admit('ann', 'here')
  throttle.succeeded('ann', 'here')
  slept.length = 0
  await throttle.admit('ann', 'here')
  expect(slept).toEqual([])
})
