// Which hub does which chore: a row for each, with a lease of a minute by the clock of the database. A hub takes what is
// free, renews all that it has with one statement, and gives it back when it stops. Of a hub that was killed the leases
// lapse, and another hub takes them.

import { and, eq, gt, inArray, lte, or, type SQL, sql } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import type { ChoreOutcome } from '../core/chore.ts'
import type { HubClock } from '../core/hub-clock.ts'

export const LEASE_MS = 60_000
const RENEW_MS = 20_000
/** How often a hub looks for chores that nobody does. */
const LOOK_MS = 5_000

export interface LeaseParts {
  store: Store
  clock: Pick<HubClock, 'inStatement'>
  log: Log
  /** The id of this hub. */
  holder: string
  /** The chores of which one hub at a time does each. */
  names: readonly string[]
  /** Is told which chores this hub has begun to do. */
  taken: (names: string[]) => void
}

export class Leases {
  readonly #parts: LeaseParts
  #held = new Set<string>()
  /** When the last renewal was asked for, by the monotonic clock. The leases of this hub last for a minute from then. */
  #renewedAt = Number.NEGATIVE_INFINITY
  readonly #outcomes = new Map<string, ChoreOutcome>()
  #timer: Timer | null = null
  #looking: Promise<void> | null = null
  #hasFailed = false

  constructor(parts: LeaseParts) {
    this.#parts = parts
  }

  /** Takes what is free, and goes on looking until `stop`. */
  start(): void {
    this.#look()
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
    this.#timer.unref()
  }

  /** Gives back what this hub holds. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer)
    await this.#looking
    this.#held.clear()
    const { store, holder } = this.#parts
    const { chores } = store
    const free = { holder: null, lease_until: 0 }
    try {
      await this.#write(tx => tx.update(chores).set(free).where(eq(chores.holder, holder)))
    } catch {
      // They lapse.
    }
  }

  /** Whether this hub does the chore. A hub that stood still for a minute does none until it has asked again. */
  holds(name: string): boolean {
    return this.#held.has(name) && performance.now() - this.#renewedAt < LEASE_MS
  }

  /** Notes what came of a run. It is written with the next renewal. */
  note(name: string, outcome: ChoreOutcome): void {
    this.#outcomes.set(name, outcome)
  }

  #look(): void {
    this.#looking ??= this.#lookNow()
      .then(
        () => {
          this.#hasFailed = false
        },
        error => {
          if (!this.#hasFailed) {
            const why = { error: messageOf(error).split('\n', 1)[0] }
            this.#parts.log.warn('the leases of chores could not be renewed', why)
          }
          this.#hasFailed = true
        },
      )
      .finally(() => {
        this.#looking = null
      })
  }

  async #lookNow(): Promise<void> {
    const { store, holder, names, taken } = this.#parts
    const { chores, dialect } = store
    const began = performance.now()
    const isFirst = this.#renewedAt === Number.NEGATIVE_INFINITY
    if (began - this.#renewedAt < RENEW_MS && !(await this.#hasFree())) return
    const lease = { holder, lease_until: this.#in(LEASE_MS) }
    // One hub at a time serves a SQLite database, so the leases that it finds there are of one that has ended.
    const mine = isFirst && dialect === 'sqlite' ? undefined : or(eq(chores.holder, holder), this.#isFree)
    const rows = await this.#write(async tx => {
      const fresh = names.map(name => ({ name }))
      if (isFirst) await tx.insert(chores).values(fresh).onConflictDoNothing()
      const ours = inArray(chores.name, [...names])
      return tx.update(chores).set(lease).where(and(ours, mine)).returning({ name: chores.name })
    })
    const before = new Set(names.filter(name => this.holds(name)))
    this.#held = new Set(rows.map(({ name }) => name))
    this.#renewedAt = began
    taken([...this.#held].filter(name => !before.has(name)))
  }

  get #now(): SQL<number> {
    return this.#parts.clock.inStatement()
  }

  get #isFree(): SQL {
    const { lease_until } = this.#parts.store.chores
    // A lease that lasts longer than any is one of before the clock was set back.
    return or(lte(lease_until, this.#now), gt(lease_until, this.#in(LEASE_MS + LOOK_MS)))!
  }

  #in = (ms: number): SQL<number> => sql<number>`${this.#now} + ${sql.raw(String(ms))}`

  async #hasFree(): Promise<boolean> {
    const { store, names } = this.#parts
    const { chores, db } = store
    const free = and(inArray(chores.name, [...names]), this.#isFree)
    return (await db.select({ name: chores.name }).from(chores).where(free).limit(1)).length > 0
  }

  /** Writes what came of runs, too. */
  async #write<T>(work: (tx: Db) => PromiseLike<T>): Promise<T> {
    const { store, holder } = this.#parts
    const { chores } = store
    const outcomes = [...this.#outcomes]
    const result = await store.write(async tx => {
      for (const [name, outcome] of outcomes) {
        await tx
          .update(chores)
          .set(outcome)
          .where(and(eq(chores.name, name), eq(chores.holder, holder)))
      }
      return work(tx)
    })
    for (const [name, outcome] of outcomes) {
      if (this.#outcomes.get(name) === outcome) this.#outcomes.delete(name)
    }
    return result
  }
}
