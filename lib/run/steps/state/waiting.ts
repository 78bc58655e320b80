// Clocks are stopped while everything in progress in a run or in a phase waits for a person, or for another system to
// settle.

import { type LiveRun, NO_CLOCK, pause, phaseEnded, resume } from '../../core/core.ts'
import { setIdle } from './idle.ts'
import type { Work } from './state.ts'
import { setClock } from './transition.ts'

/**
 * Stops the clocks of a run and of its team and map phases while everything in progress in them waits. The phases of a
 * run that was asked to end have no more time than that.
 */
export function keepTime(work: Work, live: LiveRun): void {
  if (!live.idle && !live.mayWait) return
  const now = work.world.now()
  for (const [position, phase] of live.phases.entries()) {
    if (phase.clock === NO_CLOCK || phaseEnded(phase.state)) continue
    const waits = !live.ending && live.phaseWaits(position)
    setClock(work, live, position, waits ? pause(phase.clock, now) : resume(phase.clock, now))
  }
  setIdle(work, live, live.ended < live.phases.length && live.allWaits())
}
