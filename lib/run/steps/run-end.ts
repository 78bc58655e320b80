// Decides from the records of its phases how a run ends, and computes its outputs.

import { formatDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { isOfType, type Output } from '../../team/team.ts'
import { type LiveRun, parse, type RunError } from '../core/core.ts'
import { failureOf } from './fault.ts'
import { scopeOf } from './scope.ts'
import type { Work } from './work.ts'

export interface RunEnd {
  state: 'completed' | 'failed' | 'cancelled'
  reason: string | null
  error: RunError | null
  outputs: JsonObject | null
}

export function endOf(work: Work, live: LiveRun): RunEnd {
  const nothing = { outputs: null, error: null, reason: null }
  if (live.ending) {
    const { state, reason } = live.ending
    return { ...nothing, state, reason, error: reason === 'timeout' ? tooLong(live) : null }
  }
  const failed = live.phases.findIndex(
    (phase, position) => phase.state === 'failed' && live.phase(position).onFailure !== 'continue',
  )
  if (failed >= 0) {
    const { error, reason } = work.store.phases.get(live.id, failed)!
    const recorded = parse<RunError>(error) ?? { code: 'failed', message: reason ?? 'failed' }
    const place = { phase: live.phase(failed).name, run_id: live.id }
    return { ...nothing, state: 'failed', reason, error: { ...place, ...recorded } }
  }
  if (live.phases.some(phase => phase.state === 'cancelled'))
    return { ...nothing, state: 'cancelled', reason: 'sub_run' }
  try {
    const scope = scopeOf(work, live)
    const outputs = live.team.outputs.map(output => [output.name, checked(output, output.value.evaluate(scope))])
    return { ...nothing, state: 'completed', outputs: Object.fromEntries(outputs) }
  } catch (thrown) {
    return failedOutputs(live, failureOf(thrown))
  }
}

export const failedOutputs = (live: LiveRun, error: RunError): RunEnd => ({
  state: 'failed',
  reason: 'outputs',
  outputs: null,
  error: { ...error, run_id: live.id },
})

function tooLong({ id, team: { timeout } }: LiveRun): RunError {
  const limit = timeout === undefined ? '' : ` of ${formatDuration(timeout)}`
  return { code: 'timeout', message: `the run took longer than its timeout${limit}`, run_id: id }
}

/**
 * Checks an output. Null is allowed, because its phase may not have completed. Any other value must be of the declared
 * type; values are never converted.
 */
function checked({ name, type, value: { place } }: Output, value: Json): Json {
  if (value === null || isOfType(value, type)) return value
  const shown = JSON.stringify(value).slice(0, 80)
  throw new CadreError('invalid_request', `${place}: output ${name} is declared ${type}, got ${shown}`)
}

/** The file outputs of a run: their names, and their paths as the run writes them. */
export function fileOutputs(
  { team }: Pick<LiveRun, 'team'>,
  outputs: JsonObject | null,
): { name: string; path: string }[] {
  if (!outputs) return []
  return team.outputs
    .filter(({ name, type }) => type === 'file' && typeof outputs[name] === 'string')
    .map(({ name }) => ({ name, path: outputs[name] as string }))
}
