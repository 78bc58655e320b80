// The clocks of a hub. `now` is the time as it stands: the clock of the database, which on SQLite is that of this machine.
// People are shown it, and sessions, tokens and invitations end by it. `lived` is what all limits of runs, jobs and daemons
// count. Both are asked for all the time, so they go on in memory between two looks at the row of lived-time.ts.

import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { firstRow, type LivedTime, movedBy } from './lived-time.ts'

export interface HubClock {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds that hubs have lived on the database. It began as epoch milliseconds. */
  lived(): number
  /** The time that retention goes by: not ahead of `now`, and ahead of what it was only after an hour lived with that. */
  believed(): number
  /** From when a thing that ends now is kept: `now`, unless the clock fell behind a time that was believed, an hour ago at most. */
  keptSince(): number
  /** By how many milliseconds the clock of this machine is at least ahead of that of the database. Below 0: behind. */
  ahead(): number
  /** `now` as a statement reads it: on PostgreSQL from the database itself, so that several hubs have one clock. */
  inStatement(): SQL<number>
}

const OF_POSTGRES = sql<number>`(SELECT floor(extract(epoch from clock_timestamp()) * 1000)::bigint)`

/** A moment as an expression of a statement, on either database. */
export const momentOf = (at: number): SQL<number> => sql<number>`CAST(${at} AS bigint)`

/** How often the time in memory moves, and by how much it moves at most: a pause of the process counts no more. */
const BEAT_MS = 1_000
const LONGEST_BEAT_MS = 2 * BEAT_MS
/** How often the row is looked at, and the time between two looks that counts at most, while the database is away. */
const LOOK_MS = 5_000
const LONGEST_LOOK_MS = 2 * LOOK_MS

/** By how much the clock may be ahead of the time that is believed, and still confirm another one. */
const CONFIRMS_MS = 60_000

/** What a look has found and left: the row, the database's clock, when that was, and what had been lived by then. */
interface Seen {
  row: LivedTime
  clock: number
  ahead: number
  at: number
  own: number
}

interface ClockParts {
  store: Store
  log: Log
  /** The clock of this machine, in epoch milliseconds. */
  wall?: () => number
  /** In milliseconds from any start. A step of the clock does not change it. */
  monotonic?: () => number
}

export class DatabaseClock implements HubClock {
  readonly #store: Store
  readonly #log: Log
  readonly #wall: () => number
  readonly #monotonic: () => number
  #timer: Timer | null = null
  /** The row as it was after the last look, the database's clock then, and when that was. Null before the first look. */
  #row: LivedTime | null = null
  #clock = 0
  #ahead = 0
  #lookedAt = 0
  /** How long this process has lived since that look, and until when that is counted. */
  #own = 0
  #beatAt = 0
  #looking: Promise<void> | null = null
  /** Whether the last look did not succeed: the log says once that it does not. */
  #failed = false

  constructor({ store, log, wall = Date.now, monotonic = () => performance.now() }: ClockParts) {
    this.#store = store
    this.#log = log
    this.#wall = wall
    this.#monotonic = monotonic
  }

  now(): number {
    if (this.#store.dialect === 'sqlite' || !this.#row) return this.#wall()
    return Math.round(this.#clock + this.#monotonic() - this.#lookedAt)
  }

  lived(): number {
    if (!this.#row) return this.#wall()
    return this.#row.lived + Math.floor(this.#ownBy(this.#monotonic()))
  }

  believed(): number {
    if (!this.#row) return 0
    return Math.min(this.now(), this.#row.believed)
  }

  keptSince(): number {
    return Math.max(this.now(), this.#row?.latest ?? 0)
  }

  ahead(): number {
    return this.#ahead
  }

  inStatement(): SQL<number> {
    return this.#store.dialect === 'postgres' ? OF_POSTGRES : momentOf(this.#wall())
  }

  /** Looks at the row, and goes on doing so until `close`. */
  async open(): Promise<void> {
    await this.look()
    let beats = 0
    this.#timer = setInterval(() => {
      this.beat()
      if (++beats % (LOOK_MS / BEAT_MS) === 0) void this.#lookQuietly()
    }, BEAT_MS)
    this.#timer.unref()
  }

  async close(): Promise<void> {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.beat()
    await this.#lookQuietly()
  }

  /** Counts the time since the last beat as lived. */
  beat(): void {
    const at = this.#monotonic()
    this.#own = this.#ownBy(at)
    this.#beatAt = at
  }

  /** Moves the row by what has been lived since the last look. */
  look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #lookQuietly(): Promise<void> {
    try {
      await this.look()
      this.#failed = false
    } catch (error) {
      if (!this.#failed) {
        this.#log.warn('the lived time could not be moved, and limits wait for the database', {
          error: messageOf(error).split('\n', 1)[0],
        })
      }
      this.#failed = true
    }
  }

  #ownBy(at: number): number {
    return Math.min(LONGEST_LOOK_MS, this.#own + Math.min(at - this.#beatAt, LONGEST_BEAT_MS))
  }

  async #lookNow(): Promise<void> {
    const seen = (await this.#begin()) ?? (await this.#store.writeUnchecked(tx => this.#move(tx)))
    this.#own = Math.max(0, this.#own - seen.own)
    this.#row = seen.row
    this.#clock = seen.clock
    this.#ahead = seen.ahead
    this.#lookedAt = seen.at
  }

  /** The first look only reads: a process that has just begun has lived nothing, and takes nothing away from the others. */
  async #begin(): Promise<Seen | null> {
    if (this.#row) return null
    const { row, ...clocks } = await this.#read(this.#store.db)
    this.beat()
    this.#own = 0
    return row ? { row, ...clocks, at: this.#beatAt, own: 0 } : null
  }

  async #move(tx: Db): Promise<Seen> {
    // A transaction may be done again. What counts is what had been lived when it read the row.
    for (;;) {
      const { row: before, ...clocks } = await this.#read(tx)
      this.beat()
      const { clock } = clocks
      const seen = { ...clocks, at: this.#beatAt, own: this.#own }
      const row = before ? movedBy(before, clock, seen.own) : firstRow(clock, await this.#lastBeat(tx))
      if (await this.#put(tx, before, row)) return { ...seen, row }
    }
  }

  /** The row, the clock of the database at that moment, and by how much the clock of this machine is ahead of it. */
  async #read(db: Db): Promise<{ row: LivedTime | undefined; clock: number; ahead: number }> {
    const { livedTime, dialect } = this.#store
    if (dialect === 'sqlite') {
      const [row] = await db.select().from(livedTime)
      return { row, clock: this.#wall(), ahead: 0 }
    }
    const clock = OF_POSTGRES.mapWith(Number)
    const sentAt = this.#wall()
    const [found] = await db
      .select({ clock, row: livedTime })
      .from(sql`(SELECT 1) AS one`)
      .leftJoin(livedTime, eq(livedTime.id, 1))
    const { row, clock: theirs } = found!
    // The database looked at its clock at some time between the two of this machine.
    const ahead = Math.max(0, sentAt - theirs) + Math.min(0, this.#wall() - theirs)
    return { row: row ?? undefined, clock: theirs, ahead }
  }

  /** Fails when another hub has moved the row since it was read: the same span would count twice. */
  async #put(tx: Db, before: LivedTime | undefined, row: LivedTime): Promise<boolean> {
    const { livedTime } = this.#store
    if (!before) {
      return (
        (
          await tx
            .insert(livedTime)
            .values({ id: 1, ...row })
            .onConflictDoNothing()
            .returning()
        ).length > 0
      )
    }
    const unmoved = and(eq(livedTime.id, 1), eq(livedTime.at, before.at), eq(livedTime.lived, before.lived))
    return (await tx.update(livedTime).set(row).where(unmoved).returning()).length > 0
  }

  /** When a hub of an earlier version last said that it runs. */
  async #lastBeat(tx: Db): Promise<number | null> {
    const { hubProcesses } = this.#store
    const [row] = await tx.select({ at: sql<number | null>`max(${hubProcesses.beat_at})` }).from(hubProcesses)
    return row?.at == null ? null : Number(row.at)
  }
}

/** Whether the clock as it stands may confirm another one: a daemon on the same machine has the same clock. */
export const isBelieved = (clock: Pick<HubClock, 'now' | 'believed'>): boolean =>
  clock.now() - clock.believed() <= CONFIRMS_MS

/** A time in lived time by the clock as it stands, for people and for daemons. */
export function timeOf<T extends number | null>({ now, lived }: Pick<HubClock, 'now' | 'lived'>, at: T): T | number {
  return at === null ? at : now() + (at - lived())
}
