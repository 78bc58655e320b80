// How often a hook and an address may be heard. Requests beyond that are counted and cost nothing more.

import { CadreError } from '../../error.ts'

interface Most {
  /** Requests of one hook a second. */
  perSecond: number
  /** So many may come at once. */
  burst: number
  /** Requests of one address in a minute whose signature does not fit. */
  failures: number
}

const USUAL: Most = { perSecond: 50, burst: 500, failures: 20 }
const FAILURES_MS = 60_000
/** Bytes of bodies of one hook that are being read. */
const MOST_READING = 64 * 1024 * 1024
/** How many hooks and addresses are remembered. Those that were not heard of for longest are forgotten first. */
const MOST_KEPT = 10_000

interface Bucket {
  left: number
  at: number
}

export class HookLimits {
  readonly #most: Most
  readonly #hooks = new Map<string, Bucket>()
  /** When the latest failures were, the oldest first. */
  readonly #failures = new Map<string, number[]>()
  /** The bytes of bodies that are being read, as announced. */
  readonly #reading = new Map<string, number>()

  constructor(most: Partial<Most> = {}) {
    this.#most = { ...USUAL, ...most }
  }

  /** Throws `rate_limited` when the hook or the address was heard too often. `now`: any clock, in milliseconds. */
  admit(hook: string, address: string, now: number): void {
    const { perSecond, burst, failures: most } = this.#most
    const failures = this.#recent(address, now)
    if (failures.length >= most) this.#refuse(failures[0]! + FAILURES_MS - now)
    const { left, at } = this.#hooks.get(hook) ?? { left: burst, at: now }
    const there = Math.min(burst, left + (Math.max(0, now - at) / 1_000) * perSecond)
    if (there < 1) this.#refuse(((1 - there) / perSecond) * 1_000)
    keep(this.#hooks, hook, { left: there - 1, at: now })
  }

  /** The signature of a request did not fit. */
  failed(address: string, now: number): void {
    keep(this.#failures, address, [...this.#recent(address, now), now].slice(-this.#most.failures))
  }

  /**
   * Makes room for a body that is being read, and returns what gives the room back. A sender that holds bodies back fills the
   * room of its own hook. Throws `unavailable` when there is none.
   */
  reserve(hook: string, bytes: number): () => void {
    const taken = this.#reading.get(hook) ?? 0
    // One body always has room, however large the hook lets it be.
    if (taken > 0 && taken + bytes > MOST_READING) {
      throw new CadreError('unavailable', 'too many deliveries arrive at once: send it again later', { retryAfter: 5 })
    }
    this.#reading.set(hook, taken + bytes)
    return () => {
      const left = this.#reading.get(hook)! - bytes
      if (left > 0) this.#reading.set(hook, left)
      else this.#reading.delete(hook)
    }
  }

  #recent(address: string, now: number): number[] {
    return (this.#failures.get(address) ?? []).filter(at => at > now - FAILURES_MS)
  }

  #refuse(ms: number): never {
    const retryAfter = Math.max(1, Math.ceil(ms / 1_000))
    throw new CadreError('rate_limited', `too many requests: try again in ${retryAfter} s`, { retryAfter })
  }
}

function keep<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MOST_KEPT) map.delete(map.keys().next().value!)
}
