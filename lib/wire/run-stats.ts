// What `runs/stats` says of the runs of a team, and how daemon and hub count it alike.

import type { Static } from 'typebox'
import { nullable } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { Moment } from './parts.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
/** Older runs count too, but their days are not listed. */
const MOST_DAYS = 366

export const SINCE = Type.Optional(
  Type.Unsafe<number>({
    ...Moment,
    description: 'Only runs that were asked for then or later, in epoch milliseconds. The default is 30 days ago.',
  }),
)

const count = (description: string) => Type.Integer({ minimum: 0, description })
const duration = (share: number) =>
  nullable(Type.Integer({ minimum: 0 }), {
    description: `The milliseconds in which ${share} % of the completed runs were done, in lived time where the server knows it. Null without a completed run.`,
  })

export const RunStats = Type.Object({
  runs: count('All runs, in whichever state: also those that were cancelled, and those that have not ended.'),
  completed: count('Those of them that completed.'),
  failed: count('Those of them that failed.'),
  p50_ms: duration(50),
  p95_ms: duration(95),
  days: Type.Array(
    Type.Object({
      day: Type.String({ description: 'The day in UTC on which the runs were asked for, such as `2026-05-02`.' }),
      completed: count('How many of the runs of this day completed.'),
      failed: count('How many of the runs of this day failed.'),
    }),
    { description: 'Each day from `since` to today in order, also those without runs; at most the last 366.' },
  ),
})
export type RunStats = Static<typeof RunStats>

/** What is counted of a run. */
export interface CountedRun {
  state: string
  /** When it was asked for, in epoch milliseconds. */
  at: number
  /** How many milliseconds it took; null while it goes on, and for one that never began. */
  took: number | null
}

export const sinceOrDefault = (since: number | undefined, now: number): number => since ?? now - DEFAULT_DAYS * DAY_MS

/** Counts the runs since a moment, which are added a part at a time. */
export class RunTally {
  readonly #first: number
  readonly #today: number
  readonly #days = new Map<number, { completed: number; failed: number }>()
  readonly #took: number[] = []
  #runs = 0
  #completed = 0
  #failed = 0

  constructor(since: number, now: number) {
    this.#today = dayOf(now)
    this.#first = Math.max(dayOf(since), this.#today - MOST_DAYS + 1)
  }

  add(runs: Iterable<CountedRun>): void {
    for (const { state, at, took } of runs) {
      this.#runs++
      if (state !== 'completed' && state !== 'failed') continue
      if (state === 'completed') this.#completed++
      else this.#failed++
      if (state === 'completed' && took !== null) this.#took.push(took)
      // The clock of another machine may be ahead.
      const number = Math.min(dayOf(at), this.#today)
      const day = this.#days.get(number) ?? { completed: 0, failed: 0 }
      this.#days.set(number, day)
      day[state]++
    }
  }

  stats(): RunStats {
    const sorted = Float64Array.from(this.#took).sort()
    const numbers = Array.from({ length: Math.max(0, this.#today - this.#first + 1) }, (_, n) => this.#first + n)
    return {
      runs: this.#runs,
      completed: this.#completed,
      failed: this.#failed,
      p50_ms: percentile(sorted, 50),
      p95_ms: percentile(sorted, 95),
      days: numbers.map(number => ({
        day: new Date(number * DAY_MS).toISOString().slice(0, 10),
        ...(this.#days.get(number) ?? { completed: 0, failed: 0 }),
      })),
    }
  }
}

const dayOf = (at: number): number => Math.floor(at / DAY_MS)

/** The least of the values that this share of them does not exceed. */
const percentile = (sorted: Float64Array, share: number): number | null =>
  sorted[Math.max(0, Math.ceil((sorted.length * share) / 100) - 1)] ?? null
