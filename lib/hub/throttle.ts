// Failed sign-ins: after ten in ten minutes an (account, address) pair waits, and every failure of an account, from
// wherever, delays its next answer. Kept in the database, so that all hubs on it count together and a restart forgets
// nothing; written on failures only, each of which has cost the caller a hash. A name without an account counts alike.

import { and, desc, eq, gt, inArray, lte } from 'drizzle-orm'
import type { Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'

const WINDOW_MS = 600_000
const MOST_FAILURES = 10
/** Failures of one account that are counted, enough for the longest delay. */
const MOST_COUNTED = 20
const LONGEST_DELAY_MS = 4_000
/** Rows that stay when the table is trimmed, which a hub does at most this often. */
const MOST_KEPT = 50_000
const TRIM_MS = 60_000

export interface Throttle {
  /** Throws `rate_limited` while the pair has to wait; else resolves after the account's delay. */
  admit(account: string, address: string): Promise<void>
  failed(account: string, address: string): Promise<void>
  /** Throws like `admit` if the pair has to wait by now: of guesses that were sent together only the first ten count. */
  succeeded(account: string, address: string): Promise<void>
}

export interface ThrottleOptions {
  sleep?: (ms: number) => Promise<void>
  mostKept?: number
}

export function createThrottle(store: Store, now: () => number, options: ThrottleOptions = {}): Throttle {
  const { sleep = Bun.sleep, mostKept = MOST_KEPT } = options
  const { db, signInFailures: failures } = store
  let trimmed = Number.NEGATIVE_INFINITY

  /** When `key` failed within the window, the last first. */
  async function recent(key: string): Promise<number[]> {
    const rows = await db
      .select({ at: failures.at })
      .from(failures)
      .where(and(eq(failures.key, key), gt(failures.at, now() - WINDOW_MS)))
      .orderBy(desc(failures.at))
      .limit(MOST_COUNTED)
    return rows.map(({ at }) => at)
  }

  /** The failures of the account. Throws when the pair has had its ten. */
  async function count(account: string, address: string): Promise<number> {
    const { all, pair } = keysOf(account, address)
    const [ofAccount, ofPair] = await Promise.all([recent(all), recent(pair)])
    const tenth = ofPair[MOST_FAILURES - 1]
    if (tenth === undefined) return ofAccount.length
    const retryAfter = (tenth + WINDOW_MS - now()) / 1_000
    throw new CadreError('rate_limited', 'too many failed sign-ins; try again later', { retryAfter })
  }

  /** Deletes what is past and, should someone try to fill the table, the oldest beyond `mostKept`. */
  async function trim(at: number): Promise<void> {
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
    async admit(account, address) {
      const failed = await count(account, address)
      if (failed > 2) await sleep(Math.min(LONGEST_DELAY_MS, 5 * 2 ** (failed - 2)))
    },
    async failed(account, address) {
      const at = now()
      const rows = Object.values(keysOf(account, address)).map(key => ({ key, at }))
      await store.write(tx => tx.insert(failures).values(rows))
      if (at < trimmed + TRIM_MS) return
      trimmed = at
      await trim(at)
    },
    async succeeded(account, address) {
      if ((await count(account, address)) === 0) return
      const keys = Object.values(keysOf(account, address))
      await store.write(tx => tx.delete(failures).where(inArray(failures.key, keys)))
    },
  }
}

/** Digests, because people type passwords where names belong. */
function keysOf(account: string, address: string): { all: string; pair: string } {
  return { all: digest(account), pair: digest(`${account}\n${address}`) }
}

function digest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('base64url')
}
