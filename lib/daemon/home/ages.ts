// How old the records of this home are, whatever the wall clock shows. Their own times are those of a wall clock that may
// have been behind, so a record is old only if it was there when the believed time was as long ago as it has to be:
// marks say which records were there when. All of this is one fact of the home.

import type { Database } from 'bun:sqlite'
import type { Commit, Store } from '../../run/engine.ts'
import { type Belief, believedAt, confirmed, looked } from './believed-time.ts'

const FACT = 'ages'
const HOUR_MS = 3_600_000
/** How much longer than its limit a record may be kept, because marks stand this far apart: a thirtieth of the limit. */
const PARTS = 30
const MOST_MARKS = 1_000

/** The last records that were there at a believed time: the row of the last run, the id of the last audit entry. */
interface Mark {
  at: number
  run: number
  audit: number
  /** The number of the last firing; absent in marks of versions without triggers. */
  firing?: number
}

interface Kept extends Belief {
  /** The lived time at which old records are next deleted. */
  sweep: number
  /** The oldest first. The first one stands for records from before there were marks, of which the times are believed. */
  marks: Mark[]
}

interface Parts {
  db: Database
  facts: Store['facts']
  commit: Commit
  lived(): number
}

export class Ages {
  readonly #parts: Parts
  #kept: Kept

  constructor(parts: Parts) {
    this.#parts = parts
    const text = parts.facts.get(FACT)
    this.#kept = text === null ? this.#first() : JSON.parse(text)
  }

  get believed(): number {
    return believedAt(this.#kept, this.#parts.lived())
  }

  /** Whether an hour was lived since old records were last deleted, or since there are marks. */
  get isSweepDue(): boolean {
    return this.#parts.lived() >= this.#kept.sweep
  }

  /** Looks at the wall clock. */
  async look(): Promise<void> {
    const next = looked(this.#kept, Date.now(), this.#parts.lived())
    if (next !== this.#kept) await this.#keep(next)
    else if (this.#parts.facts.get(FACT) === null) await this.#keep({})
  }

  /** Another machine has confirmed what the wall clock shows. */
  async confirm(): Promise<void> {
    const next = confirmed(this.#kept, Date.now(), this.#parts.lived())
    if (next !== this.#kept) await this.#keep(next)
  }

  /**
   * Which records are older than `ms`: those whose own time is before `at`, and that are not younger than the last ones
   * that were there then.
   */
  olderThan(ms: number): Required<Mark> {
    const at = this.believed - ms
    const { run, audit, firing = 0 } = this.#kept.marks.findLast(mark => mark.at <= at) ?? this.#kept.marks[0]!
    return { at, run, audit, firing }
  }

  /** Notes that records that are older than one of `limits` were deleted, and which records there are now. */
  async swept(limits: readonly number[]): Promise<void> {
    const longest = Math.max(...limits)
    const { marks } = this.#kept
    const at = this.believed
    // Ids of rows are given again when the last rows were deleted, but those of firings are not.
    const last = this.#last()
    const known = marks.map(mark => ({
      ...mark,
      run: Math.min(mark.run, last.run),
      audit: Math.min(mark.audit, last.audit),
    }))
    const needed = known.findLastIndex(mark => mark.at <= at - longest)
    const kept = known.slice(Math.max(0, needed))
    const distance = Math.max(HOUR_MS, Math.min(...limits) / PARTS, longest / MOST_MARKS)
    if (at - kept.at(-1)!.at >= distance) kept.push({ at, ...last })
    await this.#keep({ sweep: this.#parts.lived() + HOUR_MS, marks: kept })
  }

  /**
   * When a run ended, by the row that it has: not before the last mark that does not know it. An end in the future was
   * recorded while the clock was ahead. Such a run counts as ended when the next one was created.
   */
  endOf(row: number, completedAt: number): number {
    const least = this.#kept.marks.findLast(mark => mark.run < row)?.at ?? 0
    const { believed } = this
    if (completedAt <= believed) return Math.max(completedAt, least)
    const next = this.#parts.db
      .query<{ at: number }, [number, number]>(
        'SELECT created_at AS at FROM runs WHERE rowid > ? AND created_at <= ? ORDER BY rowid LIMIT 1',
      )
      .get(row, believed)
    return Math.max(next?.at ?? believed, least)
  }

  #keep(change: Partial<Kept>): Promise<void> {
    this.#kept = { ...this.#kept, ...change }
    return this.#parts.commit(() => this.#parts.facts.set(FACT, JSON.stringify(this.#kept)))
  }

  /**
   * The newest record has the latest time of which this home knows, unless it was made while the clock was ahead. A
   * home without records believes the clock.
   */
  #first(): Kept {
    const lived = this.#parts.lived()
    const newest = this.#parts.db
      .query<{ at: number | null }, []>(
        `SELECT max(at) AS at FROM (
           SELECT * FROM (SELECT max(created_at, coalesce(completed_at, 0)) AS at FROM runs ORDER BY id DESC LIMIT 1)
           UNION ALL SELECT * FROM (SELECT at FROM audit ORDER BY id DESC LIMIT 1))`,
      )
      .get()!
    const at = Math.min(newest.at ?? Number.POSITIVE_INFINITY, Date.now())
    return { offset: at - lived, trial: null, sweep: lived + HOUR_MS, marks: [{ at: 0, ...this.#last() }] }
  }

  #last(): Omit<Mark, 'at'> {
    const last = (sql: string) => this.#parts.db.query<{ last: number | null }, []>(sql).get()!.last ?? 0
    return {
      run: last('SELECT max(rowid) AS last FROM runs'),
      audit: last('SELECT max(id) AS last FROM audit'),
      firing: last('SELECT max(seq) AS last FROM firings'),
    }
  }
}
