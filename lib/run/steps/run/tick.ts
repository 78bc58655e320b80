// Finds what is due: deadlines of runs and of team and map phases, retries, and reviews that were not answered in time.
// The times are in the rows, and one timer reads them. Each unit checks its condition again, so reading the same row
// twice does no harm.

import { isDue, type LiveRun } from '../../core/core.ts'
import type { Due, Unit } from '../../store/store.ts'
import { overrun, stopRun } from '../kinds/stop.ts'
import type { Work } from '../state/state.ts'
import { reviewOverdue } from './review.ts'
import { follow } from './step.ts'

/** Number of rows in a page. */
const PAGE = 100

/** A row with something due at `at`: of a run, or of a review. */
interface DueRow {
  at: number
  id: string
  run_id: string
  root_id: string
}

/** A position before the first row of each kind. */
const NO_ROW: DueRow = { at: -1, id: '', run_id: '', root_id: '' }
const NO_PHASE: Due = { at: -1, run_id: '', position: -1, root_id: '' }

/** The next time after `now` at which something is due; null when nothing is. */
export function nextDue({ store }: Work, now: number): number | null {
  const times = [store.runs.nextDue(now), store.phases.nextDue(now), store.reviews.nextDue(now)]
  return times.reduce((least, at) => (at === null ? least : least === null ? at : Math.min(least, at)), null)
}

/** Units for everything that is due at `now` in the trees that this process has loaded, a page at a time. */
export function* dueUnits(work: Work, now: number): Generator<Unit[]> {
  const { phases, reviews, runs } = work.store
  yield* pages(work, NO_ROW, after => runs.due(now, after, PAGE), runDue)
  yield* pages(work, NO_PHASE, after => phases.due(now, after, PAGE), phaseDue)
  yield* pages(work, NO_PHASE, after => phases.retriesDue(now, after, PAGE), retryDue)
  yield* pages(work, NO_ROW, after => reviews.due(now, after, PAGE), reviewDue)
}

type Apply<Row> = (work: Work, live: LiveRun, row: Row) => void

function* pages<Row extends DueRow | Due>(
  work: Work,
  first: Row,
  read: (after: Row) => Row[],
  apply: Apply<Row>,
): Generator<Unit[]> {
  for (let after = first; ; ) {
    const rows = read(after)
    const units = rows.filter(({ root_id }) => work.lives.has(root_id)).map(row => unitOf(work, row, apply))
    if (units.length > 0) yield units
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

function unitOf<Row extends DueRow | Due>(work: Work, row: Row, apply: Apply<Row>): Unit {
  return {
    root: row.root_id,
    apply() {
      const live = work.lives.get(row.run_id)
      if (!live) return
      apply(work, live, row)
      follow(work, row.root_id)
    },
  }
}

function runDue(work: Work, live: LiveRun): void {
  if (!isDue({ deadline: live.row.deadline, left: null }, work.world.now())) return
  stopRun(work, live, { state: 'failed', reason: 'timeout' })
}

function phaseDue(work: Work, live: LiveRun, { position }: Due): void {
  if (isDue(live.phases[position]!.clock, work.world.now())) overrun(work, live, position)
}

function retryDue(work: Work, live: LiveRun, { position }: Due): void {
  const { state, dueAt } = live.phases[position]!
  if (state !== 'pending' || dueAt === null || dueAt > work.world.now()) return
  live.makeReady(position)
  work.agenda.add(live)
}

function reviewDue(work: Work, live: LiveRun, { id }: DueRow): void {
  const review = work.store.reviews.get(id)
  if (review?.state !== 'pending' || review.deadline === null || review.deadline > work.world.now()) return
  reviewOverdue(work, live, review)
}
