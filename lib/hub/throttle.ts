// Failed sign-ins: after ten in ten minutes an (account, address) pair waits, and every failure of an account, from
// wherever, delays its next answer. In memory and bounded; a restart forgets.

import { CadreError } from '../error.ts'

const WINDOW_MS = 600_000
const MOST_FAILURES = 10
/** Failures of one account that are remembered, enough for the longest delay. */
const MOST_REMEMBERED = 20
const LONGEST_DELAY_MS = 4_000
const MOST_KEPT = 50_000

export interface Throttle {
  /** Throws `rate_limited` while the pair has to wait; else resolves after the account's delay. */
  admit(account: string, address: string): Promise<void>
  failed(account: string, address: string): void
  succeeded(account: string, address: string): void
}

export function createThrottle(now: () => number, sleep: (ms: number) => Promise<void> = Bun.sleep): Throttle {
  const failures = new Map<string, number[]>()

  function recent(key: string): number[] {
    const kept = (failures.get(key) ?? []).filter(at => at > now() - WINDOW_MS)
    if (kept.length > 0) failures.set(key, kept)
    else failures.delete(key)
    return kept
  }

  const pair = (account: string, address: string) => `${account}\n${address}`

  return {
    async admit(account, address) {
      const times = recent(pair(account, address))
      if (times.length >= MOST_FAILURES) {
        const retryAfter = (times.at(-MOST_FAILURES)! + WINDOW_MS - now()) / 1_000
        throw new CadreError('rate_limited', 'too many failed sign-ins; try again later', { retryAfter })
      }
      const count = recent(account).length
      if (count > 2) await sleep(Math.min(LONGEST_DELAY_MS, 5 * 2 ** (count - 2)))
    },
    failed(account, address) {
      if (failures.size > MOST_KEPT) failures.delete(failures.keys().next().value!)
      for (const key of [account, pair(account, address)]) {
        failures.set(key, [...recent(key), now()].slice(-MOST_REMEMBERED))
      }
    },
    succeeded(account, address) {
      failures.delete(pair(account, address))
      failures.delete(account)
    },
  }
}
