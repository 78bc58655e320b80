// A leaf phase that waits for another system to settle: it stays `running` and keeps its place in every concurrency, but
// gives its slot back, and its time and that of what is above it stands still.

import type { LiveRun } from '../../core/core.ts'
import { liveIn, type Work } from '../state/state.ts'
import { follow, useSlots } from './step.ts'

/** Gives the slot of an attempt back. Returns false, and changes nothing, when it is no longer the live attempt. */
export function beginSettling(work: Work, runId: string, position: number, attempt: number): boolean {
  const live = liveIn(work, runId, position, attempt)
  if (!live || live.phases[position]!.state !== 'running') return false
  if (!live.settling.has(position)) {
    live.settling.add(position)
    work.slots.release()
  }
  work.agenda.add(live)
  follow(work, live.root)
  useSlots(work, live.root)
  return true
}

/** An attempt goes on, with the slot that it was given again: the clocks above it go on, too. */
export function endSettling(work: Work, live: LiveRun): void {
  work.agenda.add(live)
  follow(work, live.root)
}
