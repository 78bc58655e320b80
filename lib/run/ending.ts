// How a run ends once all of its phases have: a pure reading of what they recorded.

import { formatDuration } from '../duration.ts'
import { CadreError, messageOf } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Output } from '../team/team.ts'
import { isOfType } from '../team/team.ts'
import type { LiveRun } from './live.ts'
import { parse, type RunError } from './records.ts'
import { scopeOf } from './scope.ts'
import type { RunStore } from './store.ts'
import type { RunState } from './transitions.ts'

export interface RunEnd {
  state: RunState
  reason: string | null
  error: RunError | null
  outputs: JsonObject | null
}

export function endOf(machine: { store: RunStore }, live: LiveRun): RunEnd {
  const nothing = { outputs: null, error: null, reason: null }
  if (live.ending?.reason === 'timeout') return { ...nothing, ...live.ending, error: tooLong(live) }
  if (live.ending) return { ...nothing, ...live.ending }
  const failed = live.phases.findIndex(
    (phase, position) => phase.state === 'failed' && live.phase(position).onFailure !== 'continue',
  )
  if (failed >= 0) {
    const { error, reason } = machine.store.phase(live.id, failed)!
    const recorded = parse<RunError>(error) ?? { code: 'failed', message: reason ?? 'failed' }
    const place = { phase: live.phase(failed).name, run_id: live.id }
    return { ...nothing, state: 'failed', reason, error: { ...place, ...recorded } }
  }
  if (live.phases.some(phase => phase.state === 'cancelled'))
    return { ...nothing, state: 'cancelled', reason: 'sub_run' }
  try {
    return { ...nothing, state: 'completed', outputs: outputsOf(machine, live) }
  } catch (thrown) {
    return { ...nothing, state: 'failed', reason: 'outputs', error: { ...errorOf(thrown), run_id: live.id } }
  }
}

function tooLong({ id, team: { timeout } }: LiveRun): RunError {
  const limit = timeout === undefined ? '' : ` of ${formatDuration(timeout)}`
  return { code: 'timeout', message: `the run took longer than its timeout${limit}`, run_id: id }
}

function outputsOf(machine: { store: RunStore }, live: LiveRun): JsonObject {
  const scope = scopeOf(machine, live)
  return Object.fromEntries(
    live.team.outputs.map(output => [output.name, checked(output, output.value.evaluate(scope))]),
  )
}

/** A value that is absent (its phase was skipped) stays null; any other is of the declared type, never coerced. */
function checked({ name, type, value: { place } }: Output, value: Json): Json {
  if (value === null || isOfType(value, type)) return value
  const shown = JSON.stringify(value).slice(0, 80)
  throw new CadreError('invalid_request', `${place}: output ${name} is declared ${type}, got ${shown}`)
}

/** A thrown error as a phase records it. */
export function errorOf(thrown: unknown): RunError {
  return { code: thrown instanceof CadreError ? thrown.code : 'internal', message: messageOf(thrown) }
}
