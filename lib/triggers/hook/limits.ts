// How often a hook and an address may be heard. Requests beyond that are counted and cost nothing more.

import { CadreError } from '../../error.ts'

interface Most {
  /** Requests of one hook a second. */
  perSecond: number
  /** So many may come at once. */
  burst: number
  /** Requests of one address to one hook in a minute whose signature does not fit. */
  failures: number
}

/** Who sends. */
export interface Sender {
  address: string
  /** Others may send from there too, as through a tunnel. */
  isShared: boolean
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
  /** By hook and address, when the latest failures were, the oldest first. */
  readonly #failures = new Map<string, number[]>()
  /** The bytes that have arrived of bodies that are being read. */
  readonly #reading = new Map<string, number>()
  readonly #now: () => number

  /** `now`: a clock in milliseconds that nobody sets. */
  constructor(most: Partial<Most> = {}, now = () => performance.now()) {
    this.#most = { ...USUAL, ...most }
    this.#now = now
  }

  /**
   * Throws `rate_limited` when the hook or the address was heard too often. A shared address is heard: only its signature
   * tells who sends.
   */
  admit(hook: string, sender: Sender): void {
    if (!sender.isShared) this.#mustBeTrusted(hook, sender)
    const { perSecond, burst } = this.#most
    const now = this.#now()
    const { left, at } = this.#hooks.get(hook) ?? { left: burst, at: now }
    const there = Math.min(burst, left + ((now - at) / 1_000) * perSecond)
    if (there < 1) this.#refuse(((1 - there) / perSecond) * 1_000)
    keep(this.#hooks, hook, { left: there - 1, at: now })
  }

  /** The signature of a request did not fit. Throws `rate_limited` when that happened too often. */
  failed(hook: string, sender: Sender): void {
    const failures = this.#mustBeTrusted(hook, sender)
    keep(this.#failures, keyOf(hook, sender), [...failures, this.#now()])
  }

  /** Of the failures in the last minute. */
  #mustBeTrusted(hook: string, sender: Sender): number[] {
    const now = this.#now()
    const failures = (this.#failures.get(keyOf(hook, sender)) ?? []).filter(at => at > now - FAILURES_MS)
    if (failures.length >= this.#most.failures) this.#refuse(failures[0]! + FAILURES_MS - now)
    return failures
  }

  /**
   * Room for a body that is being read: `take` is told what arrives, and `end` gives the room back. A sender that holds bodies
   * back fills the room of its own hook. `take` throws `unavailable` when there is none.
   */
  reading(hook: string): { take(bytes: number): void; end(): void } {
    let own = 0
    const add = (bytes: number) => {
      own += bytes
      const all = (this.#reading.get(hook) ?? 0) + bytes
      if (all > 0) this.#reading.set(hook, all)
      else this.#reading.delete(hook)
      return all
    }
    return {
      take(bytes) {
        const all = add(bytes)
        // One body always has room, however large the hook lets it be.
        if (all <= MOST_READING || all === own) return
        throw new CadreError('unavailable', 'too many deliveries arrive at once: send it again later', {
          retryAfter: 5,
        })
      },
      end: () => void add(-own),
    }
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

const keyOf = (hook: string, { address }: Sender): string => `${hook} ${address}`
