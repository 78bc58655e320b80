// A phase moves from one state to another: in its row, whose fence may refuse, then in memory. A leaf phase holds a slot
// while it is `running`. The states of its run and of the phases above follow in the same unit: they are
// `awaiting_input` exactly while a person is asked below them. What the move means for other phases is decided elsewhere
// (settle.ts).

import { CadreError } from '../../../error.ts'
import {
  branchKey,
  type Clock,
  isLeaf,
  type LiveRun,
  NO_CLOCK,
  type PhaseState,
  phaseEnded,
  type RunError,
  resume,
  startClock,
} from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { setIdle } from './idle.ts'
import type { Work } from './state.ts'

/** How long an `always` phase without a timeout may take once its run was asked to end. */
export const CLEANUP_MS = 60_000

export type PhaseEnd = 'completed' | 'failed' | 'skipped' | 'cancelled'

/** Begins the next attempt of a phase. */
export function beginAttempt(work: Work, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const state = live.phases[position]!
  const attempt = state.attempt + 1
  const now = work.world.now()
  const isAbove = phase.type === 'team' || phase.type === 'map'
  const timeout = phase.timeout ?? (live.ending ? CLEANUP_MS : undefined)
  const clock = isAbove ? startClock(timeout, now) : NO_CLOCK
  if (attempt > 1) work.store.attempts.keepLost(live.id, position, attempt - 1)
  if (!work.store.phases.start(live.id, position, attempt, now, clock.deadline)) {
    throw impossible(live, position, 'running')
  }
  live.unready(position)
  state.attempt = attempt
  state.dueAt = null
  state.clock = clock
  if (clock.deadline !== null) work.world.wakeAt(clock.deadline)
  live.enter(position, 'running', null)
  if (isLeaf(phase)) work.slots.take()
  work.notes.changed(live, position)
  work.notes.event(live, 'on_phase_start', position)
}

/** Moves a phase that has not ended to `awaiting_input`, or back to `running`. */
export function enter(
  work: Work,
  live: LiveRun,
  position: number,
  state: 'running' | 'awaiting_input',
  reason: string | null,
): void {
  const { attempt } = live.phases[position]!
  if (!work.store.phases.setState(live.id, position, attempt, state, reason)) throw impossible(live, position, state)
  leaveSlot(work, live, position)
  live.enter(position, state, reason)
  tellAbove(work, live)
  work.notes.changed(live, position)
  work.agenda.add(live)
}

/**
 * Updates the state of a run, and of the phase above it, according to whether a person is asked in the run. Clocks that
 * were stopped go on as soon as nobody is asked.
 */
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
  if (!asked) setIdle(work, live, false)
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

/** Sets the clock of a team or map phase. */
export function setClock({ store, world }: Work, live: LiveRun, position: number, clock: Clock): void {
  const phase = live.phases[position]!
  if (clock === phase.clock) return
  phase.clock = clock
  store.phases.setClock(live.id, position, clock.deadline, clock.left)
  if (clock.deadline !== null) world.wakeAt(clock.deadline)
}

/** Sets a phase back to `pending` for another attempt, at `due` or at once. */
export function postpone(
  work: Work,
  live: LiveRun,
  position: number,
  due: number,
  failures: number,
  error: RunError | null,
): void {
  const phase = live.phases[position]!
  work.store.attempts.keepFailed(live.id, position, phase.attempt, work.world.now(), error)
  if (!work.store.phases.postpone(live.id, position, phase.attempt, due, failures, error)) {
    throw impossible(live, position, 'pending')
  }
  leaveSlot(work, live, position)
  live.enter(position, 'pending', 'retry')
  tellAbove(work, live)
  phase.failures = failures
  phase.dueAt = due
  phase.clock = NO_CLOCK
  if (due > work.world.now()) work.world.wakeAt(due)
  else live.makeReady(position)
  work.notes.changed(live, position)
  work.agenda.add(live)
}

/** Ends a phase. Its dependants are left as they are. */
export function end(work: Work, live: LiveRun, position: number, state: PhaseEnd, given: PhaseChange): void {
  const change = given.error ? { ...given, error: work.world.mask(live.root, given.error) } : given
  const { attempt } = live.phases[position]!
  const { type } = live.phase(position)
  // Sub-runs that are `queued` for a new attempt end with the phase, which will not start them any more.
  if (type === 'map' || type === 'team') cancelQueued(work, live, position)
  if (!work.store.phases.end(live.id, position, attempt, state, work.world.now(), change)) {
    throw impossible(live, position, state)
  }
  leaveSlot(work, live, position)
  live.tasks.delete(position)
  live.maps.delete(position)
  live.unready(position)
  live.enter(position, state, change.reason ?? null)
  tellAbove(work, live)
  work.notes.changed(live, position)
  if (state === 'completed') work.notes.event(live, 'on_phase_complete', position)
  if (state === 'failed') work.notes.event(live, 'on_phase_fail', position)
  work.agenda.add(live)
}

/** Cancels the sub-runs of a phase that wait for a new attempt, with everything that waits below them. */
export function cancelQueued({ store, notes, world }: Work, { row }: LiveRun, position: number): void {
  const place = branchKey(row.tree_key, position)
  const at = world.now()
  const phases = store.phases.cancelQueued(row.root_id, place, at)
  const runs = store.runs.cancelQueued(row.root_id, place, at)
  if (runs.length === 0) return
  notes.changedRows(runs, phases)
  for (const { id, root_id } of runs) notes.after({ kind: 'ended', runId: id, root: root_id, settled: false })
}

/** Gives the slot of a leaf phase back when it leaves `running`. */
function leaveSlot({ slots }: Work, live: LiveRun, position: number): void {
  if (live.holdsSlot(position)) slots.release()
}

function impossible(live: LiveRun, position: number, state: PhaseState): CadreError {
  const { attempt } = live.phases[position]!
  return new CadreError(
    'internal',
    `run ${live.id}, phase ${live.phase(position).name}: attempt ${attempt} cannot become ${state} now`,
  )
}
