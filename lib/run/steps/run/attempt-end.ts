// The fact that an attempt of a leaf phase ended.

import { conclude } from '../kinds/conclude.ts'
import type { Outcome } from '../state/effects.ts'
import { liveIn, type Work } from '../state/state.ts'
import { follow, useSlots } from './step.ts'

/** Returns false, and changes nothing, when it is no longer the live attempt. */
export function attemptEnded(work: Work, runId: string, position: number, attempt: number, outcome: Outcome): boolean {
  const live = liveIn(work, runId, position, attempt)
  if (!live || live.phases[position]!.state !== 'running') return false
  conclude(work, live, position, outcome)
  follow(work, live.root)
  useSlots(work, live.root)
  return true
}
