// How many entries may begin within a time: at most `count` in any `per`, whoever sends them. A pace belongs to a `limit`
// of a phase or of an account, and all below it share it. Entries that may not begin yet wait in one line, in the order in
// which they came, with one timer for all of them.
//
// Within a short time they begin one after the other and not all at once: a server counts what arrives, and of two bursts
// a second apart the first may arrive late and the second in time. Times are of the monotonic clock of the process, and
// nothing is kept over a restart: the next process begins to count anew.

import { formatDuration } from '../../duration.ts'

/** What limits an entry. */
export interface PaceLimit {
  /** Entries with the same key share the pace. */
  key: string
  /** Whose limit it is, for people. */
  name: string
  count: number
  /** Milliseconds. */
  per: number
}

/** `the limit of each (10 per 1s)`. */
export const limitText = ({ name, count, per }: PaceLimit): string =>
  `the limit of ${name} (${count} per ${formatDuration(per)})`

/** The clock of the paces, as a parameter so that a test can drive it. */
export interface PaceClock {
  /** Milliseconds that no step of a wall clock changes. */
  now(): number
  /** Calls `ring` after `ms`; the function that it returns stops that. */
  ringAfter(ms: number, ring: () => void): () => void
}

const MONOTONIC: PaceClock = {
  now: () => performance.now(),
  ringAfter(ms, ring) {
    const timer = setTimeout(ring, Math.ceil(ms))
    return () => clearTimeout(timer)
  },
}

/** What an entry gets that may begin. Until it has begun, nobody else gets its place. */
export interface Turn {
  /** The entry begins now. */
  begin(): void
  /** The entry does not begin. */
  drop(): void
}

/** An entry that waits. */
interface Waiting {
  limits: readonly PaceLimit[]
  grant(turn: Turn): void
}

/** Entries of a longer time begin at once: five of a hundred an hour should not wait for each other. */
const LONGEST_SPREAD_MS = 10_000

/** When the last entries of a pace began, and how many have the right to begin. */
class Pace {
  readonly per: number
  readonly #begun: number[] = []
  readonly #count: number
  /** On average from one beginning to the next. */
  readonly #distance: number
  /** So much earlier than that an entry may begin, so that one that begins late makes the next ones no later. */
  readonly #slack: number
  /** When the next one would begin if each kept the distance. */
  #due = Number.NEGATIVE_INFINITY
  reserved = 0

  constructor({ count, per }: PaceLimit) {
    this.#count = count
    this.per = per
    this.#distance = per > LONGEST_SPREAD_MS ? 0 : per / count
    this.#slack = per / 10
  }

  begin(now: number): void {
    this.#begun.push(now)
    this.#due = Math.max(this.#due, now) + this.#distance
  }

  /** Milliseconds until the next entry may begin; infinite while only what is reserved decides that. */
  waitAt(now: number): number {
    const past = this.#begun.findIndex(at => at > now - this.per)
    this.#begun.splice(0, past === -1 ? this.#begun.length : past)
    const over = this.#begun.length + this.reserved - this.#count
    if (over < 0) return Math.max(0, Math.max(this.#due, now) + this.reserved * this.#distance - this.#slack - now)
    const first = this.#begun[over]
    return first === undefined ? Number.POSITIVE_INFINITY : first + this.per - now
  }

  isIdleAt(now: number): boolean {
    return this.waitAt(now) === 0 && this.#begun.length === 0 && this.reserved === 0
  }
}

export class Paces {
  readonly #clock: PaceClock
  readonly #paces = new Map<string, Pace>()
  readonly #line = new Set<Waiting>()
  #stopTimer: (() => void) | null = null

  constructor(clock = MONOTONIC) {
    this.#clock = clock
  }

  /** Begins an entry at once if all of its limits let it. */
  begin(limits: readonly PaceLimit[]): boolean {
    if (limits.length === 0) return true
    const now = this.#clock.now()
    const keys = new Set(limits.map(({ key }) => key))
    const isOvertaking = [...this.#line].some(waiting => waiting.limits.some(({ key }) => keys.has(key)))
    if (isOvertaking || this.#waitOf(limits, now) > 0) return false
    for (const each of limits) this.#of(each).begin(now)
    return true
  }

  /** Waits in line until the entry may begin. Rejects with the reason of `signal` when that fires first. */
  wait(limits: readonly PaceLimit[], signal: AbortSignal): Promise<Turn> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const leave = () => {
        this.#line.delete(waiting)
        reject(signal.reason)
      }
      const waiting: Waiting = {
        limits,
        grant(turn) {
          signal.removeEventListener('abort', leave)
          resolve(turn)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#line.add(waiting)
      this.#look()
    })
  }

  /** Lets those begin that may, in their order, and sleeps until the next one may. */
  #look(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
    const now = this.#clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const waiting of this.#line) {
      const wait = this.#waitOf(waiting.limits, now)
      next = Math.min(next, wait === 0 ? next : wait)
      if (wait > 0) continue
      this.#line.delete(waiting)
      const paces = waiting.limits.map(each => this.#of(each))
      for (const pace of paces) pace.reserved++
      waiting.grant(this.#turnOf(paces))
    }
    if (this.#line.size > 0 && next < Number.POSITIVE_INFINITY) {
      this.#stopTimer = this.#clock.ringAfter(next, () => this.#look())
    }
    this.#forgetIdle(now)
  }

  #turnOf(paces: readonly Pace[]): Turn {
    let isOpen = true
    const close = (begun: boolean) => {
      if (!isOpen) return
      isOpen = false
      for (const pace of paces) {
        pace.reserved--
        if (begun) pace.begin(this.#clock.now())
      }
      if (this.#line.size > 0) this.#look()
    }
    return { begin: () => close(true), drop: () => close(false) }
  }

  #waitOf(limits: readonly PaceLimit[], now: number): number {
    return Math.max(...limits.map(each => this.#of(each).waitAt(now)))
  }

  #of(limit: PaceLimit): Pace {
    const known = this.#paces.get(limit.key)
    if (known) return known
    const made = new Pace(limit)
    this.#paces.set(limit.key, made)
    return made
  }

  /** Runs end, and their paces with them. */
  #forgetIdle(now: number): void {
    if (this.#paces.size < MANY) return
    for (const [key, pace] of this.#paces) if (pace.isIdleAt(now)) this.#paces.delete(key)
  }
}

/** With fewer paces than this, idle ones are kept. */
const MANY = 100
