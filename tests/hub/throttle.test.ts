// Sign-ins that fail: counted in the database, by the account's name and the caller's address.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createThrottle } from '../../lib/hub/throttle.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const signIn = (username: string, password: string) => hub.call(null, 'session/create', { username, password })

/** Two throttles on the database, as two hubs have them, that share a clock. */
function two(options: { mostKept?: number } = {}) {
  const clock = { now: Date.now() }
  const slept: number[] = []
  const sleep = async (ms: number) => void slept.push(ms)
  const create = () => createThrottle(hub.store, () => clock.now, { sleep, ...options })
  return { clock, slept, one: create(), other: create() }
}

const rows = () => hub.store.db.select().from(hub.store.signInFailures)

describe('a pair', () => {
  test('waits after ten failures, whichever hub had them, until ten minutes have passed', async () => {
    const { clock, one, other } = two()
    for (let n = 0; n < 10; n++) {
      const hub = n % 2 ? one : other
      await hub.admit('ann', 'here')
      await hub.failed('ann', 'here')
      clock.now += 1_000
    }
    for (const hub of [one, other]) {
      await expect(hub.admit('ann', 'here')).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 590 })
      await hub.admit('ann', 'elsewhere')
      await hub.admit('bob', 'here')
    }
    clock.now += 590_000
    await other.admit('ann', 'here')
  })
  test('is let in by none of the guesses that were sent together with ten wrong ones', async () => {
    const { one, other } = two()
    await one.admit('cleo', 'here')
    for (let n = 0; n < 10; n++) await other.failed('cleo', 'here')
    await expect(one.succeeded('cleo', 'here')).rejects.toMatchObject({ code: 'rate_limited' })
  })
  test('is forgotten by a success, and only that pair', async () => {
    const { slept, one, other } = two()
    for (const place of ['here', 'elsewhere']) for (let n = 0; n < 9; n++) await one.failed('dora', place)
    await other.succeeded('dora', 'here')
    slept.length = 0
    await one.admit('dora', 'here')
    expect(slept).toEqual([])
    await one.failed('dora', 'elsewhere')
    await expect(other.admit('dora', 'elsewhere')).rejects.toMatchObject({ code: 'rate_limited' })
  })
})

test('an account is delayed from everywhere, longer with each failure and never past four seconds', async () => {
  const { slept, one, other } = two()
  for (let n = 0; n < 15; n++) {
    await other.admit('emma', `place ${n}`)
    await one.failed('emma', `place ${n}`)
  }
  expect(slept.length).toBeGreaterThan(10)
  expect(slept).toEqual([...slept].sort((a, b) => a - b))
  expect(slept.at(-1)).toBe(4_000)
})

test('what is past goes, and so do the oldest when someone tries to fill the table', async () => {
  const { clock, one } = two({ mostKept: 20 })
  clock.now += 3_600_000
  await one.failed('finn', 'here')
  expect(await rows()).toHaveLength(2)
  for (let n = 0; n < 50; n++) {
    clock.now += 1
    await one.failed(`nobody ${n}`, 'here')
  }
  clock.now += 60_000
  await one.failed('last', 'here')
  expect((await rows()).length).toBeLessThanOrEqual(20)
  await expect(one.admit('last', 'here')).resolves.toBeUndefined()
})

test('sign-in: after ten failures not even the right password, also after a restart; no account answers alike', async () => {
  await hub.account('tried')
  for (const name of ['tried', 'nobody']) {
    for (let n = 0; n < 10; n++) expect((await signIn(name, 'x')).status).toBe(401)
    const refused = await signIn(name, 'password of a test')
    expect(refused).toMatchObject({ status: 429, error: { code: 'rate_limited' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(500)
  }
  await hub.restart()
  expect((await signIn('tried', 'password of a test')).status).toBe(429)
  expect((await signIn('admin', ADMIN_PASSWORD)).status).toBe(200)
  await hub.skew(601_000)
  expect((await signIn('tried', 'password of a test')).status).toBe(200)
  await hub.skew(0)
}, 60_000)

test('success writes nothing there, and no name is kept as it was typed', async () => {
  const before = await rows()
  await signIn('admin', ADMIN_PASSWORD)
  expect(await rows()).toEqual(before)
  await signIn('hunter2 in the wrong field', 'x')
  const text = JSON.stringify(await rows())
  expect(text.length).toBeGreaterThan(JSON.stringify(before).length)
  expect(text).not.toContain('hunter2')
})
