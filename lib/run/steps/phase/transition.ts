// A phase moves from one state to another: in its row, whose fence may refuse, then in memory. A leaf phase holds a slot
// while it is `running`. The states of its run and of the phases above follow in the same unit: they are
// `awaiting_input` exactly while a person is asked below them. What the move means for other phases is decided elsewhere
// (phase-end.ts).

import { CadreError } from '../../../error.ts'
import { type Masked, maskedText } from '../../../secrets/masked.ts'
import { hasSubRuns, type Phase, type Repeating } from '../../../team/team.ts'
import {
  branchKey,
  type LiveRun,
  NO_CLOCK,
  type PhaseState,
  phaseEnded,
  type RunError,
  resume,
  startClock,
  turnOfBound,
} from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import type { EngineState } from '../state/state.ts'
import { setIdle, setPhaseClock } from './clocks.ts'

/** How long an `always` phase without a timeout may take once its run was asked to end. */
export const CLEANUP_MS = 60_000

export type PhaseEnd = 'completed' | 'failed' | 'skipped' | 'cancelled'
/** What a phase ends with. Its error is masked when it is recorded. */
export type PhaseEndChange = Omit<PhaseChange, 'error'> & { error?: RunError | null }

/** Begins the next attempt of a phase. */
export function startAttempt(engine: EngineState, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const state = live.phases[position]!
  const attempt = state.attempt + 1
  const now = engine.world.now()
  const timeout = phase.timeout ?? (live.ending ? CLEANUP_MS : undefined)
  const clock = hasSubRuns(phase) ? startClock(timeout, engine.world.lived()) : NO_CLOCK
  // A turn that has ended is no attempt that was lost.
  if (attempt > 1 && state.reason !== 'repeat') engine.store.attempts.keepLost(live.id, position, attempt - 1)
  const goesOn = state.reason !== null
  if (!engine.store.phases.start(live.id, position, attempt, now, clock.deadline)) {
    throw impossible(live, position, 'running')
  }
  live.dropReady(position)
  state.attempt = attempt
  state.dueAt = null
  state.clock = clock
  if (clock.deadline !== null) engine.world.wakeAt(clock.deadline)
  live.setState(position, 'running', null)
  if (phase.isLeaf) engine.slots.take()
  if (phase.repeat) beginTurn(engine, live, position, phase.repeat)
  engine.notes.changed(live, position)
  if (!goesOn || (state.turn?.number ?? 1) === 1) engine.notes.event(live, 'on_phase_start', position)
}

/** Begins the next turn of a phase, unless its last one goes on. */
function beginTurn(engine: EngineState, live: LiveRun, position: number, { most }: Repeating): void {
  const phase = live.phases[position]!
  if (phase.turn && !phase.turn.ended) return
  const number = (phase.turn?.number ?? 0) + 1
  engine.store.turns.begin(live.id, position, number, engine.world.now())
  phase.turn = { number, ended: false, since: phase.attempt }
  const text = maskedText`turn ${turnOfBound(number, most)} of ${most}`
  engine.notes.after({ kind: 'say', runId: live.id, phase: live.phase(position).name, text })
}

/** Moves a phase that has not ended to `awaiting_input`, or back to `running`. */
export function setPhaseState(
  engine: EngineState,
  live: LiveRun,
  position: number,
  state: 'running' | 'awaiting_input',
  reason: string | null,
): void {
  const { attempt } = live.phases[position]!
  if (!engine.store.phases.setState(live.id, position, attempt, state, reason)) throw impossible(live, position, state)
  leaveSlot(engine, live, position)
  live.setState(position, state, reason)
  raiseStateToParent(engine, live)
  engine.notes.changed(live, position)
  engine.agenda.add(live)
}

/**
 * Updates the state of a run, and of the phase above it, according to whether a person is asked in the run. Clocks that
 * were stopped go on as soon as nobody is asked.
 */
export function raiseStateToParent(engine: EngineState, live: LiveRun): void {
  const { row, parent } = live
  const asked = live.awaiting > 0
  if (asked === (row.state === 'awaiting_input')) return
  const isStart = live.asksStart ? 'review' : null
  const reason = asked ? (live.phases.find(phase => phase.state === 'awaiting_input')?.reason ?? isStart) : null
  const state = asked ? 'awaiting_input' : 'running'
  if (!engine.store.runs.setState(live.id, state, reason)) {
    throw new CadreError('internal', `run ${live.id} may not become ${state} now`)
  }
  row.state = state
  row.reason = reason
  engine.notes.changed(live)
  if (!asked) setIdle(engine, live, false)
  const above = live.siblings
  if (above) above.asked += asked ? 1 : -1
  if (parent) takeStateFromSubRuns(engine, parent, row.parent_position!, reason)
}

/** Makes a team or map phase wait for a person while a run below it does. */
export function takeStateFromSubRuns(
  engine: EngineState,
  live: LiveRun,
  position: number,
  reason: string | null,
): void {
  const { state } = live.phases[position]!
  const asked = live.below(position).asked > 0
  if (phaseEnded(state) || asked === (state === 'awaiting_input')) return
  if (asked) return setPhaseState(engine, live, position, 'awaiting_input', reason)
  setPhaseState(engine, live, position, 'running', null)
  setPhaseClock(engine, live, position, resume(live.phases[position]!.clock, engine.world.lived()))
}

/** Sets a phase back to `pending` for another attempt, at `due` or at once. */
export function postponePhase(
  engine: EngineState,
  live: LiveRun,
  position: number,
  due: number,
  failures: number,
  failure: RunError | null,
): void {
  const phase = live.phases[position]!
  const error = failure && engine.world.mask(live.root, failure)
  engine.store.attempts.keepFailed(live.id, position, phase.attempt, engine.world.now(), error)
  setBack(engine, live, position, { due, reason: 'retry', failures, error })
}

/** Sets a phase back to `pending` until its next turn begins at `due`. */
export function awaitTurn(engine: EngineState, live: LiveRun, position: number, due: number): void {
  setBack(engine, live, position, { due, reason: 'repeat', failures: 0, error: null })
}

function setBack(
  engine: EngineState,
  live: LiveRun,
  position: number,
  {
    due,
    reason,
    failures,
    error,
  }: { due: number; reason: 'retry' | 'repeat'; failures: number; error: Masked<RunError> | null },
): void {
  const phase = live.phases[position]!
  if (!engine.store.phases.postpone(live.id, position, phase.attempt, due, reason, failures, error)) {
    throw impossible(live, position, 'pending')
  }
  leaveSlot(engine, live, position)
  live.setState(position, 'pending', reason)
  raiseStateToParent(engine, live)
  phase.failures = failures
  phase.dueAt = due
  phase.clock = NO_CLOCK
  if (due > engine.world.lived()) engine.world.wakeAt(due)
  else live.makeReady(position)
  engine.notes.changed(live, position)
  engine.agenda.add(live)
}

/** Ends a phase. Its dependants are left as they are. */
export function recordPhaseEnd(
  engine: EngineState,
  live: LiveRun,
  position: number,
  state: PhaseEnd,
  { error, ...rest }: PhaseEndChange,
): void {
  const change = { ...rest, error: error ? engine.world.mask(live.root, error) : null }
  const { attempt } = live.phases[position]!
  // Sub-runs that are `queued` for a new attempt end with the phase, which will not start them any more.
  if (hasSubRuns(live.phase(position))) cancelQueuedSubRuns(engine, live, position)
  if (!engine.store.phases.end(live.id, position, attempt, state, engine.world.now(), change)) {
    throw impossible(live, position, state)
  }
  leaveSlot(engine, live, position)
  live.tasks.delete(position)
  live.maps.delete(position)
  live.dropReady(position)
  live.setState(position, state, change.reason ?? null)
  raiseStateToParent(engine, live)
  engine.notes.changed(live, position)
  if (state === 'completed') engine.notes.event(live, 'on_phase_complete', position)
  const agent = agentOf(live.phase(position))
  if (agent !== null) engine.notes.after({ kind: 'phase', agent, state, reason: change.reason ?? null })
  if (state === 'failed') {
    engine.notes.event(live, 'on_phase_fail', position)
    const { name } = live.phase(position)
    const text = change.error && maskedText`failed: ${change.error.message}`
    if (text) engine.notes.after({ kind: 'say', runId: live.id, phase: name, text })
  }
  engine.agenda.add(live)
}

/** The agent that a phase calls; null for a phase with sub-runs. A gate has commands. */
function agentOf(phase: Phase): string | null {
  if (phase.type === 'gate') return 'exec'
  return phase.type === 'standard' ? phase.agent : null
}

/** Cancels the sub-runs of a phase that wait for a new attempt, with everything that waits below them. */
export function cancelQueuedSubRuns({ store, notes, world }: EngineState, { row }: LiveRun, position: number): void {
  const branch = branchKey(row.tree_key, position)
  const at = world.now()
  const phases = store.phases.cancelQueued(row.root_id, branch, at)
  const runs = store.runs.cancelQueued(row.root_id, branch, at)
  if (runs.length === 0) return
  notes.changedRows(runs, phases)
  for (const { id, root_id } of runs) notes.after({ kind: 'ended', runId: id, root: root_id, settled: false })
}

/** Gives the slot of a leaf phase back when it leaves `running`. */
function leaveSlot({ slots }: EngineState, live: LiveRun, position: number): void {
  if (live.holdsSlot(position)) slots.release()
}

function impossible(live: LiveRun, position: number, state: PhaseState): CadreError {
  const { attempt } = live.phases[position]!
  return new CadreError(
    'internal',
    `run ${live.id}, phase ${live.phase(position).name}: attempt ${attempt} cannot become ${state} now`,
  )
}
