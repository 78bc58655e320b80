// What is due: deadlines of runs and of team and map phases, retries, and reviews that nobody has answered. The rows
// say when, and one timer asks them. Each unit checks its row again, so asking twice does no harm.

import { isDue } from '../core/core.ts'
import type { Due, Unit } from '../store/store.ts'
import type { Machine } from './machine.ts'
import { reviewOverdue } from './review.ts'
import { overrun, stopRun } from './stop.ts'

/** Rows of one page. */
const PAGE = 100

/** The next time after `now` at which something is due; null when nothing is. */
export function nextDue({ store }: Machine, now: number): number | null {
  const times = [store.runs.nextDue(now), store.phases.nextDue(now), store.reviews.nextDue(now)]
  return times.reduce((least, at) => (at === null ? least : least === null ? at : Math.min(least, at)), null)
}

/** Units for everything that is due at `now` in the trees that this process has loaded, a page at a time. */
export function* dueUnits(machine: Machine, now: number): Generator<Unit[]> {
  const { phases, reviews, runs } = machine.store
  const held = ({ root_id }: { root_id: string }) => machine.lives.has(root_id)
  const id = { at: -1, id: '' } as { at: number; id: string; run_id: string; root_id: string }
  const place = { at: -1, run_id: '', position: -1, root_id: '' }
  yield* pages(
    id,
    after => runs.due(now, after, PAGE),
    held,
    run => runDue(machine, run.id, run.root_id),
  )
  yield* pages(
    place,
    after => phases.due(now, after, PAGE),
    held,
    due => phaseDue(machine, due),
  )
  yield* pages(
    place,
    after => phases.retriesDue(now, after, PAGE),
    held,
    due => retryDue(machine, due),
  )
  yield* pages(
    id,
    after => reviews.due(now, after, PAGE),
    held,
    review => reviewDue(machine, review),
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

function runDue(machine: Machine, runId: string, root: string): Unit {
  return {
    root,
    apply() {
      const live = machine.lives.get(runId)
      if (!live || !isDue({ deadline: live.row.deadline, left: null }, machine.world.now())) return
      stopRun(machine, live, { state: 'failed', reason: 'timeout' })
      machine.follow(root)
    },
  }
}

function phaseDue(machine: Machine, { run_id, position, root_id }: Due): Unit {
  return {
    root: root_id,
    apply() {
      const live = machine.lives.get(run_id)
      const phase = live?.phases[position]
      if (!live || !phase || !isDue(phase.clock, machine.world.now())) return
      overrun(machine, live, position)
      machine.follow(root_id)
    },
  }
}

function retryDue(machine: Machine, { run_id, position, root_id }: Due): Unit {
  return {
    root: root_id,
    apply() {
      const live = machine.lives.get(run_id)
      const phase = live?.phases[position]
      if (!live || phase?.state !== 'pending' || phase.dueAt === null || phase.dueAt > machine.world.now()) return
      live.makeReady(position)
      machine.step(live)
      machine.follow(root_id)
    },
  }
}

function reviewDue(machine: Machine, { id, run_id, root_id }: { id: string; run_id: string; root_id: string }): Unit {
  return {
    root: root_id,
    apply() {
      const live = machine.lives.get(run_id)
      const review = machine.store.reviews.get(id)
      if (!live || review?.state !== 'pending') return
      if (review.deadline === null || review.deadline > machine.world.now()) return
      reviewOverdue(machine, live, review)
      machine.follow(root_id)
    },
  }
}
