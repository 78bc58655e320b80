// Sign-ins that fail: counted in the database, by the account's name and the caller's address.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Store } from '../../db/hub/store.ts'
import { createSignInLimit, networkOf } from '../../lib/hub/access/sign-in-limit.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

/** Of the accounts that `hub.account` adds. */
const PASSWORD = 'password of a test'

const signIn = (username: string, password: string) => hub.call(null, 'session/create', { username, password })

/** Two throttles on the database, as two hubs have them, that share a clock. */
function two(options: { mostKept?: number } = {}) {
  const clock = { now: Date.now() }
  const slept: number[] = []
  const sleep = async (ms: number) => void slept.push(ms)
  const create = () => createSignInLimit(hub.store, () => clock.now, { sleep, ...options })
  return { clock, slept, one: create(), other: create() }
}

// Every test calls from the same address, which has fifty failures in all.
beforeEach(() => hub.store.write(tx => tx.delete(hub.store.signInFailures)))

const rows = () => hub.store.db.select().from(hub.store.signInFailures)
const wrong = async () => false
const right = async () => true
const refused = { code: 'rate_limited' }
/** An address of this test alone, for all of them share the database. */
const somewhere = () => `place ${crypto.randomUUID()}`

describe('a pair', () => {
  test('waits after ten failures, whichever hub had them, until ten minutes have passed', async () => {
    const { clock, one, other } = two()
    const [here, elsewhere] = [somewhere(), somewhere()]
    for (let n = 0; n < 10; n++) {
      expect(await (n % 2 ? one : other).attempt('ann', here, wrong)).toBe(false)
      clock.now += 1_000
    }
    for (const hub of [one, other]) {
      await expect(hub.attempt('ann', here, right)).rejects.toMatchObject({ ...refused, retryAfter: 590 })
      expect(await hub.attempt('ann', elsewhere, wrong)).toBe(false)
      expect(await hub.attempt('bob', here, wrong)).toBe(false)
    }
    clock.now += 590_000
    expect(await other.attempt('ann', here, right)).toBe(true)
  })
  test('has at most ten guesses checked, however many come at once', async () => {
    const { one } = two()
    const here = somewhere()
    let checked = 0
    const guess = async (password: number) => {
      checked++
      await Bun.sleep(1)
      return password === 75
    }
    const told = await Promise.allSettled(
      Array.from({ length: 150 }, (_, n) => one.attempt('cleo', here, () => guess(n))),
    )
    expect(checked).toBe(10)
    expect(told.filter(({ status }) => status === 'fulfilled')).toEqual(
      Array.from({ length: 10 }, () => ({ status: 'fulfilled', value: false })),
    )
    expect(told[75]).toMatchObject({ reason: refused })
  })
  test('has at most ten guesses checked at all hubs together, however long one of them takes to count', async () => {
    for (const answer of [right, wrong]) {
      const { one } = two()
      const here = somewhere()
      const [asked, counted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const busy: Store = {
        ...hub.store,
        async write(work) {
          asked.resolve()
          await counted.promise
          return hub.store.write(work)
        },
      }
      const slow = createSignInLimit(busy, Date.now, { sleep: async () => {} })
      for (let n = 0; n < 9; n++) await one.attempt('gina', here, wrong)
      const late = slow.attempt('gina', here, answer).catch(error => error)
      await asked.promise
      expect(await one.attempt('gina', here, wrong)).toBe(false)
      counted.resolve()
      expect(await late).toMatchObject(refused)
    }
  })
  test('waits for what is being checked: any number of right passwords pass', async () => {
    const { one } = two()
    const here = somewhere()
    const before = await rows()
    // Ten are being checked when the next one comes.
    let begun = 0
    const checked = Promise.withResolvers<void>()
    const slow = async () => {
      if (++begun === 10) setTimeout(checked.resolve, 20)
      await checked.promise
      return true
    }
    const told = await Promise.all(Array.from({ length: 100 }, () => one.attempt('hugo', here, slow)))
    expect(told).toEqual(Array.from({ length: 100 }, () => true))
    expect(await rows()).toEqual(before)
  })
  test('is forgotten by a success, and only that pair', async () => {
    const { slept, one, other } = two()
    const [here, elsewhere] = [somewhere(), somewhere()]
    for (const place of [here, elsewhere]) for (let n = 0; n < 9; n++) await one.attempt('dora', place, wrong)
    await other.attempt('dora', here, right)
    slept.length = 0
    await one.attempt('dora', here, right)
    expect(slept).toEqual([])
    await one.attempt('dora', elsewhere, wrong)
    await expect(other.attempt('dora', elsewhere, right)).rejects.toMatchObject(refused)
  })
  test('counts a check that itself fails, and holds nobody up', async () => {
    const { one } = two()
    const broken = async () => {
      throw new Error('no hash')
    }
    const here = somewhere()
    for (let n = 0; n < 10; n++) await expect(one.attempt('ivan', here, broken)).rejects.toThrow('no hash')
    await expect(one.attempt('ivan', here, right)).rejects.toMatchObject(refused)
  })
})

test('an address waits after fifty failures, of whatever accounts, and no success forgives them', async () => {
  const { clock, one, other } = two()
  const here = somewhere()
  for (let n = 0; n < 50; n++)
    expect(await (n % 2 ? one : other).attempt(`account ${n % 10} of many`, here, wrong)).toBe(false)
  await expect(one.attempt('joan', here, right)).rejects.toMatchObject(refused)
  expect(await one.attempt('joan', somewhere(), right)).toBe(true)
  await expect(other.attempt('kate', here, right)).rejects.toMatchObject(refused)
  clock.now += 600_000
  expect(await one.attempt('joan', here, right)).toBe(true)
  for (let n = 0; n < 49; n++) await one.attempt(`another ${n}`, here, wrong)
  expect(await one.attempt('joan', here, right)).toBe(true)
  await one.attempt('another 50', here, wrong)
  await expect(one.attempt('joan', here, right)).rejects.toMatchObject(refused)
})

test.each([
  ['192.0.2.1', '::ffff:192.0.2.1', true],
  ['192.0.2.1', '192.0.2.1:4711', true],
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
  ['2001:db8:1:2::1', '[2001:db8:1:2::8]:4711', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['unknown', 'other', false],
])('%s and %s are one address: %p', (one, other, same) => {
  expect(networkOf(one) === networkOf(other)).toBe(same)
})

test('an account is delayed from everywhere, longer with each failure and never past four seconds', async () => {
  const { slept, one, other } = two()
  for (let n = 0; n < 15; n++) await (n % 2 ? one : other).attempt('emma', somewhere(), wrong)
  // The first three mistakes wait for nothing.
  expect(slept).toHaveLength(12)
  expect(slept).toEqual([...slept].sort((a, b) => a - b))
  expect(slept.at(-1)).toBe(4_000)
})

test('what is past goes, and so do the oldest when someone tries to fill the table', async () => {
  const { clock, one } = two({ mostKept: 20 })
  clock.now += 3_600_000
  await one.attempt('finn', 'here', wrong)
  expect(await rows()).toHaveLength(3)
  for (let n = 0; n < 50; n++) {
    clock.now += 1
    await one.attempt(`nobody ${n}`, `there ${n}`, wrong)
  }
  clock.now += 60_000
  await one.attempt('last', 'here', wrong)
  expect((await rows()).length).toBeLessThanOrEqual(21)
  expect(await one.attempt('last', 'here', right)).toBe(true)
})

test.each(['sign-in', 'change_password'])(
  '%s: of 150 guesses at once ten at most are checked, and the right one answers as all others',
  async kind => {
    const guesses = Array.from({ length: 150 }, (_, n) => (n === 100 ? PASSWORD : `guess ${n}`))
    let guess: (password: string) => ReturnType<typeof signIn>
    let replies: Awaited<ReturnType<typeof signIn>>[]
    let name = `guessed-${kind}`
    do {
      // The right one is checked where it happens to arrive among the first ten: then somebody else is guessed.
      name += 'x'
      const account = name
      const { token } = await hub.account(account)
      guess = password =>
        kind === 'sign-in'
          ? signIn(account, password)
          : hub.call(token, 'users/change_password', { password, new_password: 'long enough' })
      replies = await Promise.all(guesses.map(guess))
    } while (replies[100]!.status === 200)
    // Whichever ten arrive first: they are guesses that could as well have been sent one by one. Two hubs that check at
    // the same time may count more than ten between them, and then refuse some of the ten, too.
    // A call that PostgreSQL has put off too often is told to come again (503), which says nothing of the password.
    const unchecked = replies.filter(({ status }) => status === 429)
    const busy = replies.filter(({ status }) => status === 503)
    expect(unchecked.length + busy.length).toBeGreaterThanOrEqual(140)
    expect(unchecked.length).toBeGreaterThan(100)
    expect(new Set(unchecked.map(({ error }) => error.message)).size).toBe(1)
    for (const { headers } of unchecked) expect(Number(headers.get('retry-after'))).toBeGreaterThan(500)
    expect((await guess(PASSWORD)).status).toBe(429)
  },
  60_000,
)

test('sign-in: after ten failures not even the right password, also after a restart; no account answers alike', async () => {
  await hub.account('tried')
  for (const name of ['tried', 'nobody']) {
    for (let n = 0; n < 10; n++) expect((await signIn(name, 'x')).status).toBe(401)
    const refused = await signIn(name, PASSWORD)
    expect(refused).toMatchObject({ status: 429, error: { code: 'rate_limited' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(500)
  }
  await hub.restart()
  expect((await signIn('tried', PASSWORD)).status).toBe(429)
  expect((await signIn('admin', ADMIN_PASSWORD)).status).toBe(200)
  await hub.skew(601_000)
  expect((await signIn('tried', PASSWORD)).status).toBe(200)
  await hub.skew(0)
}, 60_000)

test('success leaves nothing there, and no name is kept as it was typed', async () => {
  const before = await rows()
  await signIn('admin', ADMIN_PASSWORD)
  expect(await rows()).toEqual(before)
  await signIn('hunter2 in the wrong field', 'x')
  const text = JSON.stringify(await rows())
  expect(text.length).toBeGreaterThan(JSON.stringify(before).length)
  expect(text).not.toContain('hunter2')
})

describe('an address, over HTTP', () => {
  const signInBehind = async (forwarded: string, username: string, password: string) => {
    const reply = await fetch(`${hub.url}/v1/session/create`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': forwarded },
      body: JSON.stringify({ username, password }),
    })
    await reply.arrayBuffer()
    return reply.status
  }
  /** 120 guesses at once, three at each of 40 names, each with an address in front that the caller made up. */
  const guessFrom = async (place: (n: number) => string) => {
    const guesses = Array.from({ length: 120 }, (_, n) => signInBehind(place(n), `name ${n % 40}`, `guess ${n}`))
    const statuses = await Promise.all(guesses)
    const checked = statuses.filter(status => status === 401).length
    // Two hubs that check at the same time may refuse some of the fifty, too.
    expect([checked <= 50, checked >= 10, checked]).toEqual([true, true, checked])
    // PostgreSQL may put a call off too often (503), which says nothing of the password.
    expect(statuses.filter(status => status === 429 || status === 503)).toHaveLength(120 - checked)
  }

  test('has fifty of 120 guesses at forty names checked, whatever X-Forwarded-For says', async () => {
    await guessFrom(n => `192.0.2.${n}`)
    expect(await signInBehind('198.51.100.1', 'admin', ADMIN_PASSWORD)).toBe(429)
  }, 60_000)

  test('is the last one of X-Forwarded-For with CADRE_TRUST_PROXY', async () => {
    await hub.restart({ env: { CADRE_TRUST_PROXY: '1' } })
    await guessFrom(n => `192.0.2.${n}, 198.51.100.1`)
    expect(await signInBehind('192.0.2.200, 198.51.100.1', 'admin', ADMIN_PASSWORD)).toBe(429)
    expect(await signInBehind('198.51.100.1, 198.51.100.2', 'admin', ADMIN_PASSWORD)).toBe(200)
    await hub.restart({ env: {} })
  }, 60_000)
})
