// A run is idle while everything in progress in it waits for a person or for another system to settle: its clock is
// stopped. In a map it gives its place to another run, unless something in it waits for a system to settle.

import { type LiveRun, pause, resume } from '../../core/core.ts'
import { park } from './map-slots.ts'
import type { Work } from './state.ts'

export function setIdle(work: Work, live: LiveRun, idle: boolean): void {
  if (live.idle === idle && !live.keepsPlace) return
  const { row, parent } = live
  const above = live.siblings
  if (live.idle !== idle) {
    live.idle = idle
    keepRunTime(work, live)
    if (above) above.idle += idle ? 1 : -1
  }
  if (!parent || !above) return
  live.keepsPlace = idle && live.settles()
  if (idle && !live.parked && !live.keepsPlace) {
    park(live)
    parent.proceeding.add(row.parent_position!)
  }
  work.agenda.add(parent)
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
