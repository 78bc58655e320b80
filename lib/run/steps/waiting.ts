// The consequences for a run and the phases above it when a person is asked somewhere in it: their states become
// `awaiting_input`, and clocks are stopped while everything in progress waits for a person.

import { CadreError } from '../../error.ts'
import { type Clock, type LiveRun, NO_CLOCK, pause, phaseEnded, resume } from '../core/core.ts'
import { park } from './places.ts'
import { enter } from './transition.ts'
import type { Work } from './work.ts'

/** Updates the state of a run, and of the phase above it, according to whether a person is asked in the run. */
export function tellAbove(work: Work, live: LiveRun): void {
  const { row, parent } = live
  const asked = live.awaiting > 0
  if (asked === (row.state === 'awaiting_input')) return
  const reason = asked ? (live.phases.find(phase => phase.state === 'awaiting_input')?.reason ?? null) : null
  const state = asked ? 'awaiting_input' : 'running'
  if (!work.store.runs.setState(live.id, state, reason)) {
    throw new CadreError('internal', `run ${live.id} may not become ${state} now`)
  }
  row.state = state
  row.reason = reason
  work.notes.changed(live)
  const above = live.siblings
  if (above) above.asked += asked ? 1 : -1
  if (parent) followBelow(work, parent, row.parent_position!, reason)
}

/** Makes a team or map phase wait for a person while a run below it does. */
export function followBelow(work: Work, live: LiveRun, position: number, reason: string | null): void {
  const { state } = live.phases[position]!
  const asked = live.below(position).asked > 0
  if (phaseEnded(state) || asked === (state === 'awaiting_input')) return
  if (asked) return enter(work, live, position, 'awaiting_input', reason)
  enter(work, live, position, 'running', null)
  setClock(work, live, position, resume(live.phases[position]!.clock, work.world.now()))
}

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

/** Sets the clock of a team or map phase. */
export function setClock({ store, world }: Work, live: LiveRun, position: number, clock: Clock): void {
  const phase = live.phases[position]!
  if (clock === phase.clock) return
  phase.clock = clock
  store.phases.setClock(live.id, position, clock.deadline, clock.left)
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
