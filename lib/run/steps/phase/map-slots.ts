// The slots of a map, as many as its `concurrency`. A sub-run in which everything waits for a person gives its slot to
// another one (it is `parked`), and needs a free slot to continue.

import { hasSubRuns, type PhaseWithSubRuns } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import type { EngineState } from '../state/state.ts'

export function park(run: LiveRun): void {
  run.parked = true
  run.siblings!.parked++
}

/** Gives a parked run a slot again, and a step to all runs that waited for that. False when no slot is free. */
export function unpark({ agenda }: EngineState, run: LiveRun): boolean {
  const above = run.siblings!
  const phase = run.parent!.phase(run.row.parent_position!)
  if (hasSubRuns(phase) && above.runs.size - above.parked >= phase.concurrency) return false
  run.parked = false
  above.parked--
  for (const waiting of above.wanting.get(run) ?? []) agenda.add(waiting)
  above.wanting.delete(run)
  return true
}

/**
 * Whether a run may start phases: the run and every run above it has a slot, or gets one now. Otherwise the run gets
 * another step when a slot is free. A run that was asked to end cleans up without a slot.
 */
export function hasMapSlot(engine: EngineState, live: LiveRun): boolean {
  for (let run: LiveRun | null = live; run; run = run.parent) {
    if (run.ending) return true
    if (!run.parked || unpark(engine, run)) continue
    const { wanting } = run.siblings!
    wanting.set(run, (wanting.get(run) ?? new Set()).add(live))
    return false
  }
  return true
}

/** Sub-runs beyond the concurrency of their map were waiting for a slot when the process ended: they wait again. */
export function parkExcess(live: LiveRun, { index, concurrency }: PhaseWithSubRuns): void {
  const { runs } = live.below(index)
  const placed = [...runs].filter(({ parked }) => !parked)
  if (placed.length <= concurrency) return
  // A tree may be read again while this process executes phases of it. The runs of these phases have slots.
  const { executing = [], waiting = [] } = Object.groupBy(placed, run => (executes(run) ? 'executing' : 'waiting'))
  for (const run of [...executing, ...waiting].slice(concurrency)) park(run)
}

function executes(live: LiveRun): boolean {
  const isExecuted = live.phases.some(({ state }, position) => state === 'running' && live.phase(position).isLeaf)
  return isExecuted || [...live.children()].some(executes)
}
