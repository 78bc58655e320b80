// Limits the guessing of passwords. An attempt is counted before the password is checked, so that guesses sent together
// get no further than guesses sent one after the other. After ten failures in ten minutes for a pair of account and
// address, or fifty for an address, the next attempt is refused without a check. Failures of an account from any
// address delay its next answer. The counts are stored in the database, so that all hubs count together and a restart
// forgets nothing. A correct password clears its counts. A name without an account is counted in the same way.

import { and, count, desc, eq, gt, inArray, lte, or } from 'drizzle-orm'
import ipaddr from 'ipaddr.js'
import type { Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { endTurn } from '../../turns.ts'
import type { SignInLimit } from '../core/hub.ts'

const WINDOW_MS = 600_000
const MOST_OF_PAIR = 10
const MOST_OF_ADDRESS = 50
/** The number of failures of one account that are counted. It is enough for the longest delay. */
const MOST_OF_ACCOUNT = 20
const LONGEST_DELAY_MS = 4_000
/** The number of rows that are kept when the table is trimmed. A hub trims it at most this often. */
const MOST_KEPT = 50_000
const TRIM_MS = 60_000

export interface SignInLimitOptions {
  sleep?: (ms: number) => Promise<void>
  mostKept?: number
}

interface Keys {
  account: string
  pair: string
  address: string
}

export function createSignInLimit(store: Store, now: () => number, options: SignInLimitOptions = {}): SignInLimit {
  const { sleep = Bun.sleep, mostKept = MOST_KEPT } = options
  const { db, signInFailures: failures } = store
  /**
   * The number of attempts that this hub is checking, by key. Their rows count as failures only once they have failed.
   */
  const checking = new Map<string, number>()
  /** The last attempt of each address in the line of those that wait. */
  const turns = new Map<string, Promise<void>>()
  let settled = Promise.withResolvers<void>()
  let trimmed = Number.NEGATIVE_INFINITY

  /** The attempts under `key` within the window, newest first: those that are being checked, then `most` failures. */
  async function recentAttempts(key: string, most: number) {
    const open = checking.get(key) ?? 0
    const rows = await db
      .select({ at: failures.at })
      .from(failures)
      .where(and(eq(failures.key, key), gt(failures.at, now() - WINDOW_MS)))
      .orderBy(desc(failures.at))
      .limit(most + open)
    return { open, failed: rows.slice(open), full: rows.length >= most }
  }

  /**
   * Throws when attempts that other hubs have counted meanwhile use up a limit. The last attempt to be counted sees all
   * others, so that no more than the limit get past. Of two that see each other, both are refused.
   */
  async function refuseSurplus({ pair, address }: Keys): Promise<void> {
    for (const [key, most] of [
      [pair, MOST_OF_PAIR],
      [address, MOST_OF_ADDRESS],
    ] as const) {
      const counted = and(eq(failures.key, key), gt(failures.at, now() - WINDOW_MS))
      const [row] = await db.select({ count: count() }).from(failures).where(counted)
      if (Number(row!.count) > most) throw tooManyFailures(WINDOW_MS / 1_000)
    }
  }

  /**
   * Counts one more attempt. Returns null while attempts that are being checked decide. Throws when too many have
   * failed.
   */
  async function countAttempt(keys: Keys): Promise<{ id: string; failedBefore: number } | null> {
    const [pair, address, account] = await Promise.all([
      recentAttempts(keys.pair, MOST_OF_PAIR),
      recentAttempts(keys.address, MOST_OF_ADDRESS),
      recentAttempts(keys.account, MOST_OF_ACCOUNT),
    ])
    const last = pair.failed[MOST_OF_PAIR - 1] ?? address.failed[MOST_OF_ADDRESS - 1]
    if (last) throw tooManyFailures((last.at + WINDOW_MS - now()) / 1_000)
    if (pair.full || address.full) return null
    const id = Bun.randomUUIDv7()
    const at = now()
    const rows = Object.values(keys).map(key => ({ key, at, attempt: id }))
    await store.write(tx => tx.insert(failures).values(rows))
    await refuseSurplus(keys)
    for (const key of Object.values(keys)) checking.set(key, (checking.get(key) ?? 0) + 1)
    return { id, failedBefore: account.failed.length }
  }

  /** Calls `countAttempt` for one attempt of an address after the other, in the order of their arrival. */
  async function countInTurn(keys: Keys) {
    const before = turns.get(keys.address)
    const { promise: turn, resolve: pass } = Promise.withResolvers<void>()
    turns.set(keys.address, turn)
    try {
      await before
      for (;;) {
        // Refusals follow each other without any other wait.
        await endTurn()
        const next = settled.promise
        const entered = await countAttempt(keys)
        if (entered) return entered
        await next
      }
    } finally {
      if (turns.get(keys.address) === turn) turns.delete(keys.address)
      pass()
    }
  }

  function endCheck(keys: Keys): void {
    for (const key of Object.values(keys)) {
      const left = checking.get(key)! - 1
      if (left > 0) checking.set(key, left)
      else checking.delete(key)
    }
    settled.resolve()
    settled = Promise.withResolvers<void>()
  }

  /**
   * Clears the failures of the pair and of the account after a right password. Those of the address stay, because it
   * may have tried other accounts.
   */
  async function clearFailures({ account, pair }: Keys, id: string): Promise<void> {
    const forgiven = and(inArray(failures.key, [account, pair]), lte(failures.attempt, id))
    await store.write(tx => tx.delete(failures).where(or(forgiven, eq(failures.attempt, id))))
  }

  /**
   * Deletes rows that have expired. If somebody tries to fill the table, it also deletes the oldest rows beyond
   * `mostKept`.
   */
  async function trimFailures(): Promise<void> {
    const at = now()
    if (at < trimmed + TRIM_MS) return
    trimmed = at
    const [surplus] = await db
      .select({ at: failures.at })
      .from(failures)
      .orderBy(desc(failures.at))
      .limit(1)
      .offset(mostKept)
    const past = Math.max(at - WINDOW_MS, surplus?.at ?? 0)
    await store.write(tx => tx.delete(failures).where(lte(failures.at, past)))
  }

  return {
    async attempt(account, address, check) {
      const keys = keysOf(account, address)
      const { id, failedBefore } = await countInTurn(keys)
      try {
        if (failedBefore > 2) await sleep(Math.min(LONGEST_DELAY_MS, 5 * 2 ** (failedBefore - 2)))
        const right = await check()
        if (right) await clearFailures(keys, id)
        else await trimFailures()
        return right
      } finally {
        endCheck(keys)
      }
    },
  }
}

/** The keys are digests, because people sometimes type a password into the field for the name. */
function keysOf(account: string, address: string): Keys {
  const network = networkOf(address)
  return { account: digest(account), pair: digest(`${account}\n${network}`), address: digest(`\n${network}`) }
}

/** The network that counts as one address: an IPv4 address, without the port that some proxies add, or an IPv6 /64. */
export function networkOf(address: string): string {
  const bare = address.replace(/^\[(.*)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  if (!ipaddr.isValid(bare)) return address
  const parsed = ipaddr.process(bare)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${parsed.toByteArray().slice(0, 8).join('.')}/64`
}

function digest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('base64url')
}

const tooManyFailures = (retryAfter: number) =>
  new CadreError('rate_limited', 'too many failed sign-ins; try again later', { retryAfter })
