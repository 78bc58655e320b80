// What is due: deadlines of runs and of team and map phases, retries, and reviews that nobody has answered. The rows
// say when, and one timer asks them. Each unit checks its row again, so asking twice does no harm.

import { isDue } from '../core/core.ts'
import type { Due, Unit } from '../store/store.ts'
import { reviewOverdue } from './review.ts'
import { follow } from './step.ts'
import { overrun, stopRun } from './stop.ts'
import type { Work } from './work.ts'

/** Rows of one page. */
const PAGE = 100

/** The next time after `now` at which something is due; null when nothing is. */
export function nextDue({ store }: Work, now: number): number | null {
  const times = [store.runs.nextDue(now), store.phases.nextDue(now), store.reviews.nextDue(now)]
  return times.reduce((least, at) => (at === null ? least : least === null ? at : Math.min(least, at)), null)
}

/** Units for everything that is due at `now` in the trees that this process has loaded, a page at a time. */
export function* dueUnits(work: Work, now: number): Generator<Unit[]> {
  const { phases, reviews, runs } = work.store
  const held = ({ root_id }: { root_id: string }) => work.lives.has(root_id)
  const id = { at: -1, id: '' } as { at: number; id: string; run_id: string; root_id: string }
  const place = { at: -1, run_id: '', position: -1, root_id: '' }
  yield* pages(
    id,
    after => runs.due(now, after, PAGE),
    held,
    run => runDue(work, run.id, run.root_id),
  )
  yield* pages(
    place,
    after => phases.due(now, after, PAGE),
    held,
    due => phaseDue(work, due),
  )
  yield* pages(
    place,
    after => phases.retriesDue(now, after, PAGE),
    held,
    due => retryDue(work, due),
  )
  yield* pages(
    id,
    after => reviews.due(now, after, PAGE),
    held,
    review => reviewDue(work, review),
  )
}

function* pages<Cursor, Row extends Cursor>(
  first: Cursor,
  read: (after: Cursor) => Row[],
  held: (row: Row) => boolean,
  unit: (row: Row) => Unit,
): Generator<Unit[]> {
  for (let after = first; ; ) {
    const rows = read(after)
    const units = rows.filter(held).map(unit)
    if (units.length > 0) yield units
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

function runDue(work: Work, runId: string, root: string): Unit {
  return {
    root,
    apply() {
      const live = work.lives.get(runId)
      if (!live || !isDue({ deadline: live.row.deadline, left: null }, work.world.now())) return
      stopRun(work, live, { state: 'failed', reason: 'timeout' })
      follow(work, root)
    },
  }
}

function phaseDue(work: Work, { run_id, position, root_id }: Due): Unit {
  return {
    root: root_id,
    apply() {
      const live = work.lives.get(run_id)
      const phase = live?.phases[position]
      if (!live || !phase || !isDue(phase.clock, work.world.now())) return
      overrun(work, live, position)
      follow(work, root_id)
    },
  }
}

function retryDue(work: Work, { run_id, position, root_id }: Due): Unit {
  return {
    root: root_id,
    apply() {
      const live = work.lives.get(run_id)
      const phase = live?.phases[position]
      if (!live || phase?.state !== 'pending' || phase.dueAt === null || phase.dueAt > work.world.now()) return
      live.makeReady(position)
      work.agenda.add(live)
      follow(work, root_id)
    },
  }
}

function reviewDue(work: Work, { id, run_id, root_id }: { id: string; run_id: string; root_id: string }): Unit {
  return {
    root: root_id,
    apply() {
      const live = work.lives.get(run_id)
      const review = work.store.reviews.get(id)
      if (!live || review?.state !== 'pending') return
      if (review.deadline === null || review.deadline > work.world.now()) return
      reviewOverdue(work, live, review)
      follow(work, root_id)
    },
  }
}
