// Asking a run, and all below it, to end: what waits ends at once, what runs is aborted and ends when it has let go.

import { watchAbort } from './clocks.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { closeReview } from './reviews.ts'
import type { RunState } from './transitions.ts'

export interface Ending {
  state: RunState
  reason: string
}

export function stopRun(machine: Machine, live: LiveRun, ending: Ending): void {
  if (live.ending) return
  live.ending = ending
  live.ready.length = 0
  machine.store.setEnding(live.id, ending)
  for (const position of live.phases.keys()) stopPhase(machine, live, position, ending.reason)
  machine.step(live)
}

function stopPhase(machine: Machine, live: LiveRun, position: number, reason: string): void {
  const { state, attempt } = live.phases[position]!
  const children = live.children.get(position)
  if (children && children.size > 0) {
    for (const child of [...children]) stopRun(machine, child, { state: 'cancelled', reason: 'parent' })
  } else if (state === 'awaiting_input') {
    closeReview(machine, live, position)
    machine.endRow(live, position, 'cancelled', { reason })
  } else if (state === 'pending') {
    machine.endRow(live, position, 'cancelled', { reason })
  } else if (state === 'running') {
    machine.after(() => machine.host.abort(live, position, attempt))
    watchAbort(machine, live, position, attempt)
  }
}
