// The rows of a list of runs. As long as nobody touches the list, it shows what the server has. Then its rows stay where
// they are: the runs in them change, and runs that came since wait until somebody asks for them. Whoever comes back to an
// entry of the history finds the list as they left it.

import { type Signal, signal } from '@preact/signals'
import type { Static } from 'typebox'
import { GetRun, ListRuns } from '../../wire/calls/runs.ts'
import type { RunView } from '../../wire/records/run-records.ts'
import { call } from '../kit/api.ts'
import { entry } from '../kit/route.ts'

export type Run = Static<typeof RunView>
export type Filter = Readonly<Record<string, string>>

export const PAGE = 100
/** So many lists are remembered. */
const MOST_KEPT = 20
const kept = new Map<string, HeldRuns>()

/** The list of this entry of the history with these filters. */
export function heldRuns(filter: Filter): HeldRuns {
  const key = `${entry()} ${JSON.stringify(filter)}`
  const found = kept.get(key) ?? new HeldRuns(filter)
  kept.delete(key)
  kept.set(key, found)
  for (const old of [...kept.keys()].slice(0, -MOST_KEPT)) kept.delete(old)
  return found
}

interface Part {
  runs: Run[]
  total: number
  isMore: boolean
}

export class HeldRuns {
  readonly pages = signal<Readonly<Record<number, readonly Run[]>>>({})
  /** Null until it is known. */
  readonly total: Signal<number | null> = signal(null)
  /** There are more runs than were counted. */
  readonly isMore = signal(false)
  /** A search may miss what runs changed after this, in epoch milliseconds. */
  readonly indexedUntil: Signal<number | null> = signal(null)
  readonly error = signal<unknown>(null)
  /** The index of the row that the keys have chosen, or that was opened last. */
  readonly chosen = signal(-1)
  /** How many runs wait to be shown. */
  readonly waiting = signal(0)
  /** How far the list is scrolled, in pixels. */
  top = 0
  /** The pointer is over the list. */
  isPointed = false
  /** A row has the focus. */
  isFocused = false
  readonly #filter: Filter
  #range: readonly [number, number] = [0, 1]
  /** Replies of before somebody asked for the newest runs are too late. */
  #turn = 0

  constructor(filter: Filter) {
    this.#filter = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  }

  at(index: number): Run | undefined {
    return this.pages.value[Math.floor(index / PAGE)]?.[index % PAGE]
  }

  /** Reads what is in sight. */
  async look(): Promise<void> {
    try {
      if (this.#isHeld()) await this.#lookAtHeld()
      else await this.#takeAll()
      this.error.value = null
    } catch (thrown) {
      this.error.value = thrown
    }
  }

  /** The rows that are drawn. */
  async see(first: number, last: number): Promise<void> {
    this.#range = [first, last]
    if (this.total.value !== null && this.#pagesInSight().some(page => !(page in this.pages.value))) await this.look()
  }

  /** Shows the newest runs, whatever is held. */
  async showNew(): Promise<void> {
    this.chosen.value = -1
    this.top = 0
    this.#range = [0, 1]
    try {
      this.#take(await this.#read(0))
    } catch (thrown) {
      this.error.value = thrown
    }
  }

  #isHeld(): boolean {
    if (!this.at(0)) return false
    return this.top > 0 || this.isPointed || this.isFocused || this.chosen.value >= 0
  }

  #pagesInSight(): number[] {
    const [first, last] = this.#range
    const from = Math.floor(first / PAGE)
    return Array.from({ length: Math.floor(Math.max(first, last - 1) / PAGE) - from + 1 }, (_, n) => from + n)
  }

  async #takeAll(): Promise<void> {
    const found = await this.#read(0)
    // Somebody may have touched the list in between.
    if (!this.#isHeld()) this.#take(found)
  }

  #take({ runs, total, isMore }: Part): void {
    this.#turn++
    this.waiting.value = 0
    this.total.value = total
    this.isMore.value = isMore
    this.#put({ 0: runs })
  }

  async #lookAtHeld(): Promise<void> {
    const turn = this.#turn
    const newest = this.at(0)!.run_id
    const { total } = await call(ListRuns, { ...this.#filter, root_only: true, newer_than: newest, limit: 1 })
    let others = 0
    for (const page of this.#pagesInSight()) {
      const { runs } = await this.#read(page, newest)
      const held = this.pages.value[page]
      const rows = held ? await this.#refreshed(page, held, runs) : runs
      if (turn !== this.#turn) return
      this.#put({ ...this.pages.value, [page]: rows })
      if (held) others += strangers(held, runs)
    }
    this.waiting.value = total + others
  }

  /** The rows of a page with what is known of their runs. A run that no longer fits the filters keeps its row. */
  #refreshed(page: number, held: readonly Run[], found: readonly Run[]): Promise<Run[]> {
    const byId = new Map(found.map(run => [run.run_id, run]))
    const [first, last] = this.#range
    const isSeen = (index: number) => index >= first && index < last
    return Promise.all(held.map((run, at) => byId.get(run.run_id) ?? (isSeen(page * PAGE + at) ? asItIs(run) : run)))
  }

  /** An equal reply must not draw the list again. */
  #put(pages: Readonly<Record<number, readonly Run[]>>): void {
    if (JSON.stringify(pages) !== JSON.stringify(this.pages.value)) this.pages.value = pages
  }

  async #read(page: number, upto?: string): Promise<Part> {
    const runs: Run[] = []
    const asked = { ...this.#filter, root_only: true, ...(upto !== undefined && { upto }) }
    // When runs are large, a reply has fewer of them than the limit.
    for (;;) {
      const limit = PAGE - runs.length
      const found = await call(ListRuns, { ...asked, limit, offset: page * PAGE + runs.length })
      runs.push(...found.runs)
      this.indexedUntil.value = found.indexed_until ?? null
      const isAll = runs.length >= Math.min(PAGE, found.total - page * PAGE)
      if (found.runs.length === 0 || isAll) return { runs, total: found.total, isMore: found.total_more === true }
    }
  }
}

/** How many runs that were found among those of a page have no row there, such as one that failed since. */
function strangers(held: readonly Run[], found: readonly Run[]): number {
  const ids = new Set(held.map(run => run.run_id))
  const oldest = held.at(-1)?.run_id ?? ''
  return found.filter(run => !ids.has(run.run_id) && run.run_id > oldest).length
}

/** A run that may have been deleted. */
async function asItIs(run: Run): Promise<Run> {
  try {
    return await call(GetRun, { run_id: run.run_id })
  } catch {
    return run
  }
}
