// The end of a phase and its consequences for the phases that depend on it: they become ready, or end without having
// started.

import { CadreError } from '../../../error.ts'
import type { Phase } from '../../../team/team.ts'
import { blocks, type LiveRun, type RunError } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { EngineState } from '../state/state.ts'
import { askPerson } from './question.ts'
import { type PhaseEnd, type PhaseEndChange, recordPhaseEnd } from './transition.ts'

/** Ends a phase, and makes its dependants ready or ends them. */
export function endPhase(
  engine: EngineState,
  live: LiveRun,
  position: number,
  state: PhaseEnd,
  change: PhaseEndChange,
): void {
  recordPhaseEnd(engine, live, position, state, change)
  updateDependants(engine, live, position)
}

/** Fails a phase, or asks a person first when its `on_failure` is `escalate`. */
export function failPhase(
  engine: EngineState,
  live: LiveRun,
  position: number,
  error: RunError,
  change: PhaseChange = {},
): void {
  if (escalates(live, position)) return escalate(engine, live, position, error, change)
  endPhase(engine, live, position, 'failed', { ...change, error })
}

/** Decides whether a phase whose dependencies have all ended may start. Its `when` is left to a step. */
export function considerPhase(engine: EngineState, live: LiveRun, position: number): void {
  if (decideStart(engine, live, position)) updateDependants(engine, live, position)
}

/**
 * Evaluates the `when` of the phases that wait for it, as many as fit into one unit. False when some are left to the
 * next one.
 */
export function decideWhens(engine: EngineState, live: LiveRun): boolean {
  for (const position of live.undecided) {
    if (!engine.agenda.hasTime()) {
      engine.agenda.add(live)
      return false
    }
    live.undecided.delete(position)
    if (live.phases[position]!.state === 'pending') decideWhen(engine, live, position)
  }
  return true
}

function decideWhen(engine: EngineState, live: LiveRun, position: number): void {
  let mayStart: boolean
  try {
    mayStart = booleanOf(engine, live, live.phase(position).when!)
  } catch (thrown) {
    return failPhase(engine, live, position, failureOf(thrown))
  }
  if (mayStart) live.makeReady(position)
  else endPhase(engine, live, position, 'skipped', { reason: 'when' })
}

function booleanOf(engine: EngineState, live: LiveRun, when: NonNullable<Phase['when']>): boolean {
  const value = when.evaluate(scopeOf(engine, live))
  if (typeof value === 'boolean') return value
  throw new CadreError('invalid_request', `${when.place}: when must give a bool, got ${JSON.stringify(value)}`)
}

const escalates = (live: LiveRun, position: number): boolean =>
  live.phase(position).onFailure === 'escalate' && !live.nearestEnding

function escalate(engine: EngineState, live: LiveRun, position: number, error: RunError, change: PhaseChange): void {
  askPerson(engine, live, position, {
    kind: 'escalation',
    reason: 'failed',
    entries: [],
    prompt: error.message,
    error,
    change,
  })
}

/** Makes the dependants of an ended phase ready, or ends them. Uses a queue, because a chain of skips may be long. */
function updateDependants(engine: EngineState, live: LiveRun, position: number): void {
  // A phase that was cancelled before its turn is settled only when the phases before it are.
  const queue = live.isSettled(position) ? [position] : []
  for (const ended of queue) {
    const { state, reason } = live.phases[ended]!
    const blocked = blocks(state, reason, live.phase(ended).onFailure)
    for (const dependant of live.phase(ended).dependants) {
      const phase = live.phases[dependant]!
      phase.open--
      phase.blocked ||= blocked
      if (phase.open > 0) continue
      if (phase.state === 'pending') decideStart(engine, live, dependant)
      if (live.isSettled(dependant)) queue.push(dependant)
    }
  }
  engine.agenda.add(live)
}

/** Makes a phase ready whose dependencies have ended, or skips or cancels it. True when it ended at once. */
function decideStart(engine: EngineState, live: LiveRun, position: number): boolean {
  const phase = live.phase(position)
  const ending = live.cancelRequest(position)
  if (ending) {
    recordPhaseEnd(engine, live, position, 'cancelled', { reason: ending.reason })
    return true
  }
  if (live.phases[position]!.blocked && !phase.always) {
    recordPhaseEnd(engine, live, position, 'skipped', { reason: 'upstream' })
    return true
  }
  if (phase.when) {
    live.dropReady(position)
    live.undecided.add(position)
  } else live.makeReady(position)
  engine.agenda.add(live)
  return false
}
