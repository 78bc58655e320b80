// The clocks of runs, and of team and map phases. They are stopped while everything in progress in the run or phase waits
// for a person or for another system to settle: it is idle. An idle run in a map gives its slot of the map to another
// run, unless something in it waits for a system to settle.

import { type Clock, type LiveRun, NO_CLOCK, pause, phaseEnded, resume } from '../../core/core.ts'
import type { EngineState } from '../state/state.ts'
import { park } from './map-slots.ts'

/**
 * Stops or starts the clocks of a run and of its team and map phases, as what is in progress in them waits or not. The
 * clocks of phases go on once their run was asked to end.
 */
export function syncClocks(engine: EngineState, live: LiveRun): void {
  if (!live.idle && !live.mayWait) return
  const now = engine.world.lived()
  for (const [position, phase] of live.phases.entries()) {
    if (phase.clock === NO_CLOCK || phaseEnded(phase.state)) continue
    const waits = !live.ending && live.phaseWaits(position)
    setPhaseClock(engine, live, position, waits ? pause(phase.clock, now) : resume(phase.clock, now))
  }
  setIdle(engine, live, live.ended < live.phases.length && live.allWaits())
}

export function setIdle(engine: EngineState, live: LiveRun, idle: boolean): void {
  if (live.idle === idle && !live.keepsMapSlot) return
  const { row, parent } = live
  const above = live.siblings
  if (live.idle !== idle) {
    live.idle = idle
    syncRunClock(engine, live)
    if (above) above.idle += idle ? 1 : -1
  }
  if (!parent || !above) return
  live.keepsMapSlot = idle && live.settles()
  if (idle && !live.parked && !live.keepsMapSlot) {
    park(live)
    parent.proceeding.add(row.parent_position!)
  }
  engine.agenda.add(parent)
}

/** Stops the clock of a run while the run is idle, and starts it again afterwards. */
export function syncRunClock({ store, world }: EngineState, { id, idle, row }: LiveRun): void {
  const before = { deadline: row.deadline, left: row.time_left }
  const clock = idle ? pause(before, world.lived()) : resume(before, world.lived())
  if (clock === before) return
  row.deadline = clock.deadline
  row.time_left = clock.left
  store.runs.setClock(id, clock.deadline, clock.left)
  if (clock.deadline !== null) world.wakeAt(clock.deadline)
}

/** Sets the clock of a team or map phase. */
export function setPhaseClock({ store, world }: EngineState, live: LiveRun, position: number, clock: Clock): void {
  const phase = live.phases[position]!
  if (clock === phase.clock) return
  phase.clock = clock
  store.phases.setClock(live.id, position, clock.deadline, clock.left)
  if (clock.deadline !== null) world.wakeAt(clock.deadline)
}
