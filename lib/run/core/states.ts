// The only table of transitions between the states of runs and phases. Pure; statements that write a state
// take their fence from it.

import { PHASE_STATES, type PhaseState, RUN_STATES, type RunState } from '../../wire/states.ts'

export { type PhaseState, RUN_STATES, type RunState }

/** Ended states have no way out: only `resume` opens them again, as a new attempt. */
const RUN_TRANSITIONS: Record<RunState, readonly RunState[]> = {
  queued: ['running', 'failed', 'cancelled'],
  running: ['awaiting_input', 'completed', 'failed', 'cancelled'],
  awaiting_input: ['running', 'completed', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
}

/**
 * From `running` to `pending`: a retry that waits for its time. From `running` to `running`: a new attempt after a
 * restart. From `pending` to `awaiting_input`: a phase whose `when` cannot be evaluated, and which escalates.
 */
const PHASE_TRANSITIONS: Record<PhaseState, readonly PhaseState[]> = {
  pending: ['running', 'awaiting_input', 'failed', 'skipped', 'cancelled'],
  running: ['pending', 'running', 'awaiting_input', 'completed', 'failed', 'cancelled'],
  awaiting_input: ['pending', 'running', 'completed', 'failed', 'skipped', 'cancelled'],
  completed: [],
  failed: [],
  skipped: [],
  cancelled: [],
}

export const runMay = (from: RunState, to: RunState): boolean => RUN_TRANSITIONS[from].includes(to)
export const phaseMay = (from: PhaseState, to: PhaseState): boolean => PHASE_TRANSITIONS[from].includes(to)

export const runEnded = (state: RunState): boolean => RUN_TRANSITIONS[state].length === 0
export const phaseEnded = (state: PhaseState): boolean => PHASE_TRANSITIONS[state].length === 0

/**
 * By state: the condition that a row may reach it. It is the fence in a statement's WHERE. For a list of three states
 * SQLite would make a table of them at each execution, a fifth of what the start of a phase costs.
 */
function fences<S extends string>(states: readonly S[], may: (from: S, to: S) => boolean): Record<S, string> {
  const fence = (to: S) => states.filter(from => may(from, to)).map(from => `state = '${from}'`)
  return Object.fromEntries(states.map(to => [to, `(${fence(to).join(' OR ') || 'false'})`])) as Record<S, string>
}

export const PHASE_FENCE = fences(PHASE_STATES, phaseMay)
export const RUN_FENCE = fences(RUN_STATES, runMay)

/** Whether an ended phase keeps those that depend on it from running. */
export function blocks(state: PhaseState, reason: string | null, onFailure: 'fail' | 'continue' | 'escalate'): boolean {
  if (state === 'failed') return onFailure !== 'continue'
  return state === 'cancelled' || (state === 'skipped' && reason === 'upstream')
}
