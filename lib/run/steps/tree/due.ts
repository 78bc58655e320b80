// Finds what is due: deadlines of runs and of team and map phases, retries, and reviews that were not answered in time.
// The times are in the rows, and one timer reads them. Each unit checks its condition again, so reading the same row
// twice does no harm.

import { isDue, type LiveRun } from '../../core/core.ts'
import type { Due, Unit } from '../../store/store.ts'
import { failOverduePhase } from '../kinds/sub-runs.ts'
import type { EngineState } from '../state/state.ts'
import { reviewOverdue } from './review.ts'
import { takeSteps } from './step.ts'
import { stopRun } from './stop.ts'

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

/** The first time after `now` at which something is due; null when there is none. */
export function nextDue({ store }: EngineState, now: number): number | null {
  const times = [store.runs.nextDue(now), store.phases.nextDue(now), store.reviews.nextDue(now)]
  return times.reduce((least, at) => (at === null ? least : least === null ? at : Math.min(least, at)), null)
}

/** Units for everything that is due at `now` in the trees that this process has loaded, a page at a time. */
export function* dueUnits(engine: EngineState, now: number): Generator<Unit[]> {
  const { phases, reviews, runs } = engine.store
  yield* pages(engine, NO_ROW, after => runs.due(now, after, PAGE), runDue)
  yield* pages(engine, NO_PHASE, after => phases.due(now, after, PAGE), phaseDue)
  yield* pages(engine, NO_PHASE, after => phases.retriesDue(now, after, PAGE), retryDue)
  yield* pages(engine, NO_ROW, after => reviews.due(now, after, PAGE), reviewDue)
}

type Apply<Row> = (engine: EngineState, live: LiveRun, row: Row) => void

function* pages<Row extends DueRow | Due>(
  engine: EngineState,
  first: Row,
  read: (after: Row) => Row[],
  apply: Apply<Row>,
): Generator<Unit[]> {
  for (let after = first; ; ) {
    const rows = read(after)
    const units = rows.filter(({ root_id }) => engine.lives.has(root_id)).map(row => unitOf(engine, row, apply))
    if (units.length > 0) yield units
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

function unitOf<Row extends DueRow | Due>(engine: EngineState, row: Row, apply: Apply<Row>): Unit {
  return {
    root: row.root_id,
    apply() {
      const live = engine.lives.get(row.run_id)
      if (!live) return
      apply(engine, live, row)
      takeSteps(engine, row.root_id)
    },
  }
}

function runDue(engine: EngineState, live: LiveRun): void {
  if (!isDue({ deadline: live.row.deadline, left: null }, engine.world.lived())) return
  stopRun(engine, live, { state: 'failed', reason: 'timeout' })
}

function phaseDue(engine: EngineState, live: LiveRun, { position }: Due): void {
  if (isDue(live.phases[position]!.clock, engine.world.lived())) failOverduePhase(engine, live, position)
}

function retryDue(engine: EngineState, live: LiveRun, { position }: Due): void {
  const { state, dueAt } = live.phases[position]!
  if (state !== 'pending' || dueAt === null || dueAt > engine.world.lived()) return
  live.makeReady(position)
  engine.agenda.add(live)
}

function reviewDue(engine: EngineState, live: LiveRun, { id }: DueRow): void {
  const review = engine.store.reviews.get(id)
  if (review?.state !== 'pending' || review.deadline === null || review.deadline > engine.world.lived()) return
  reviewOverdue(engine, live, review)
}
