// The end of a phase and its consequences for the phases that depend on it: they become ready, or end without having
// started.

import { CadreError } from '../../../error.ts'
import type { Phase } from '../../../team/team.ts'
import { blocks, type LiveRun, type RunError } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { Work } from '../state/state.ts'
import { end, type PhaseEnd } from '../state/transition.ts'
import { ask } from './question.ts'

/** Ends a phase, and starts or ends its dependants as follows from that. */
export function endPhase(work: Work, live: LiveRun, position: number, state: PhaseEnd, change: PhaseChange): void {
  end(work, live, position, state, change)
  settle(work, live, position)
}

/** Fails a phase, or asks a person first when its `on_failure` is `escalate`. */
export function failPhase(
  work: Work,
  live: LiveRun,
  position: number,
  error: RunError,
  change: PhaseChange = {},
): void {
  if (escalates(live, position)) return escalate(work, live, position, error, change)
  endPhase(work, live, position, 'failed', { ...change, error })
}

/** Decides whether a phase whose dependencies have all ended may start. Its `when` is left to a step. */
export function consider(work: Work, live: LiveRun, position: number): void {
  if (decide(work, live, position)) settle(work, live, position)
}

/**
 * Evaluates the `when` of the phases that wait for it, as many as fit into one unit. False when some are left to the
 * next one.
 */
export function decideWhens(work: Work, live: LiveRun): boolean {
  for (const position of live.undecided) {
    if (!work.agenda.mayBegin()) {
      work.agenda.add(live)
      return false
    }
    live.undecided.delete(position)
    if (live.phases[position]!.state === 'pending') decideWhen(work, live, position)
  }
  return true
}

function decideWhen(work: Work, live: LiveRun, position: number): void {
  let mayStart: boolean
  try {
    mayStart = booleanOf(work, live, live.phase(position).when!)
  } catch (thrown) {
    return failPhase(work, live, position, failureOf(thrown))
  }
  if (mayStart) live.makeReady(position)
  else endPhase(work, live, position, 'skipped', { reason: 'when' })
}

function booleanOf(work: Work, live: LiveRun, when: NonNullable<Phase['when']>): boolean {
  const value = when.evaluate(scopeOf(work, live))
  if (typeof value === 'boolean') return value
  throw new CadreError('invalid_request', `${when.place}: when must give a bool, got ${JSON.stringify(value)}`)
}

const escalates = (live: LiveRun, position: number): boolean =>
  live.phase(position).onFailure === 'escalate' && !live.calledOff

function escalate(work: Work, live: LiveRun, position: number, error: RunError, change: PhaseChange): void {
  ask(work, live, position, {
    kind: 'escalation',
    reason: 'failed',
    entries: [],
    prompt: error.message,
    error,
    change,
  })
}

/** Starts or ends the dependants of an ended phase. Uses a queue, because a chain of skips may be long. */
function settle(work: Work, live: LiveRun, position: number): void {
  // A phase that was called off before its turn is settled with those that it depends on.
  const queue = live.isSettled(position) ? [position] : []
  for (const ended of queue) {
    const { state, reason } = live.phases[ended]!
    const blocked = blocks(state, reason, live.phase(ended).onFailure)
    for (const dependant of live.phase(ended).dependants) {
      const phase = live.phases[dependant]!
      phase.open--
      phase.blocked ||= blocked
      if (phase.open > 0) continue
      if (phase.state === 'pending') decide(work, live, dependant)
      if (live.isSettled(dependant)) queue.push(dependant)
    }
  }
  work.agenda.add(live)
}

/** Makes a phase ready whose dependencies have ended, or skips or cancels it. True when it ended at once. */
function decide(work: Work, live: LiveRun, position: number): boolean {
  const phase = live.phase(position)
  const ending = live.callsOff(position)
  if (ending) {
    end(work, live, position, 'cancelled', { reason: ending.reason })
    return true
  }
  if (live.phases[position]!.blocked && !phase.always) {
    end(work, live, position, 'skipped', { reason: 'upstream' })
    return true
  }
  if (phase.when) {
    live.unready(position)
    live.undecided.add(position)
  } else live.makeReady(position)
  work.agenda.add(live)
  return false
}
