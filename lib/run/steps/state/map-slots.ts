// Places in the concurrency of a map. A sub-run in which everything waits for a person gives its place to another one
// (it is `parked`), and needs a free place to continue.

import type { MapPhase } from '../../../team/team.ts'
import { isLeaf, type LiveRun } from '../../core/core.ts'
import type { Work } from './state.ts'

export function park(run: LiveRun): void {
  run.parked = true
  run.siblings!.parked++
}

/** Gives a parked run its place back, and a step to all that waited for that; false when no place is free. */
export function unpark({ agenda }: Work, run: LiveRun): boolean {
  const above = run.siblings!
  const phase = run.parent!.phase(run.row.parent_position!)
  if (phase.type === 'map' && above.runs.size - above.parked >= phase.concurrency) return false
  run.parked = false
  above.parked--
  for (const waiting of above.wanting.get(run) ?? []) agenda.add(waiting)
  above.wanting.delete(run)
  return true
}

/**
 * Whether a run may start phases: it and every run above it has its place, or gets it back now. Otherwise the run gets
 * another step when a place is free. A run that was asked to end cleans up without a place.
 */
export function hasPlace(work: Work, live: LiveRun): boolean {
  for (let run: LiveRun | null = live; run; run = run.parent) {
    if (run.ending) return true
    if (!run.parked || unpark(work, run)) continue
    const { wanting } = run.siblings!
    wanting.set(run, (wanting.get(run) ?? new Set()).add(live))
    return false
  }
  return true
}

/** Sub-runs beyond the concurrency of their map were waiting for a place when the process ended: they wait again. */
export function parkExcess(live: LiveRun, { index, concurrency }: MapPhase): void {
  const { runs } = live.below(index)
  const placed = [...runs].filter(({ parked }) => !parked)
  if (placed.length <= concurrency) return
  // A tree may be read again while this process executes phases of it. The runs of these phases have their places.
  const { executing = [], waiting = [] } = Object.groupBy(placed, run => (executes(run) ? 'executing' : 'waiting'))
  for (const run of [...executing, ...waiting].slice(concurrency)) park(run)
}

function executes(live: LiveRun): boolean {
  const isExecuted = live.phases.some(({ state }, position) => state === 'running' && isLeaf(live.phase(position)))
  return isExecuted || [...live.children()].some(executes)
}
