// Clocks are stopped while everything in progress in a run or in a phase waits for a person.

import { type LiveRun, NO_CLOCK, pause, phaseEnded, resume } from '../core/core.ts'
import { park } from './places.ts'
import { setClock } from './transition.ts'
import type { Work } from './work.ts'

/**
 * Stops the clocks of a run and of its team and map phases while everything in progress in them waits for a person.
 */
export function keepTime(work: Work, live: LiveRun): void {
  if (live.awaiting === 0 && !live.idle) return
  const now = work.world.now()
  for (const [position, phase] of live.phases.entries()) {
    if (phase.clock === NO_CLOCK || phaseEnded(phase.state)) continue
    setClock(work, live, position, live.phaseWaits(position) ? pause(phase.clock, now) : resume(phase.clock, now))
  }
  setIdle(work, live, live.ended < live.phases.length && live.allWaits())
}

/** Stops the clock of a run while the run is idle, and starts it again afterwards. */
export function keepRunTime({ store, world }: Work, { id, idle, row }: LiveRun): void {
  const before = { deadline: row.deadline, left: row.time_left }
  const clock = idle ? pause(before, world.now()) : resume(before, world.now())
  if (clock === before) return
  row.deadline = clock.deadline
  row.time_left = clock.left
  store.runs.setClock(id, clock.deadline, clock.left)
  if (clock.deadline !== null) world.wakeAt(clock.deadline)
}

function setIdle(work: Work, live: LiveRun, idle: boolean): void {
  if (live.idle === idle) return
  live.idle = idle
  keepRunTime(work, live)
  const { row, parent } = live
  const above = live.siblings
  if (!parent || !above) return
  above.idle += idle ? 1 : -1
  if (idle && !live.parked) {
    park(live)
    parent.proceeding.add(row.parent_position!)
  }
  work.agenda.add(parent)
}
