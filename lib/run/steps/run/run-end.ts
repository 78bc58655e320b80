// Decides from the records of its phases how a run ends, and computes its outputs.

import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import type { Json, JsonObject } from '../../../json.ts'
import { conversionOf, isOfType, type Output, type Scope } from '../../../team/team.ts'
import { type LiveRun, type PhaseRow, parse, type RunError } from '../../core/core.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { EngineState } from '../state/state.ts'

export interface RunEnd {
  state: 'completed' | 'failed' | 'cancelled'
  reason: string | null
  error: RunError | null
  outputs: JsonObject | null
}

/** Null when the unit is out of time before all outputs are evaluated: a later step continues with the next one. */
export function endOf(engine: EngineState, live: LiveRun): RunEnd | null {
  const nothing = { outputs: null, error: null, reason: null }
  if (live.ending) {
    const { state, reason, error = null } = live.ending
    return { ...nothing, state, reason, error: reason === 'timeout' ? tooLong(live) : error }
  }
  const failed = firstFailed(engine, live)
  if (failed) {
    const { error, reason, position } = failed
    const recorded = parse<RunError>(error) ?? { code: 'failed', message: reason ?? 'failed' }
    const where = { phase: live.phase(position).name, run_id: live.id }
    return { ...nothing, state: 'failed', reason, error: { ...where, ...recorded } }
  }
  if (live.phases.some(phase => phase.state === 'cancelled'))
    return { ...nothing, state: 'cancelled', reason: 'sub_run' }
  try {
    if (!evaluateOutputs(engine, live)) return null
    return { ...nothing, ...warningOf(live), state: 'completed', outputs: Object.fromEntries(live.evaluated) }
  } catch (thrown) {
    return failedOutputs(live, failureOf(thrown))
  }
}

/** The first failed phase that fails its run. Later failures may be its consequences, such as a failed cleanup. */
function firstFailed(engine: EngineState, live: LiveRun): PhaseRow | null {
  let first: PhaseRow | null = null
  for (const [position, { state }] of live.phases.entries()) {
    if (state !== 'failed' || live.phase(position).onFailure === 'continue') continue
    const row = engine.store.phases.get(live.id, position)!
    if (!first || row.completed_at! < first.completed_at!) first = row
  }
  return first
}

function evaluateOutputs(engine: EngineState, live: LiveRun): boolean {
  const scope = scopeOf(engine, live)
  for (const output of live.team.outputs.slice(live.evaluated.length)) {
    if (!engine.agenda.hasTime()) return false
    live.evaluated.push([output.name, madeOf(live, output, scope)])
  }
  return true
}

/**
 * Nobody reads the outputs of a top run but people, so that one which cannot be made is null, and the run completes with
 * a warning. A file that was promised must be there.
 */
function madeOf(live: LiveRun, output: Output, scope: Scope): Json {
  try {
    return checked(output, output.value.evaluate(scope))
  } catch (thrown) {
    if (live.parent || output.type === 'file') throw thrown
    live.unmade.push({ name: output.name, error: failureOf(thrown) })
    return null
  }
}

/** Maximum number of outputs whose errors a warning has. */
const WARNED = 3

function warningOf({ id, unmade }: LiveRun): Pick<RunEnd, 'reason' | 'error'> | null {
  const [first] = unmade
  if (!first) return null
  const shown = unmade.slice(0, WARNED).map(({ name, error }) => `output ${name} could not be made: ${error.message}`)
  const more = unmade.length > WARNED ? [`${unmade.length - WARNED} more could not be made`] : []
  return { reason: 'outputs', error: { code: first.error.code, message: [...shown, ...more].join('; '), run_id: id } }
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
function checked({ name, type, value: { place, source } }: Output, value: Json): Json {
  if (value === null || isOfType(value, type)) return value
  const shown = JSON.stringify(value).slice(0, 80)
  const by = conversionOf(value, type)
  const alone = typeof source === 'string' ? /^\{\{([^{}]{1,200})\}\}$/.exec(source)?.[1]?.trim() : undefined
  const write = by ? `: write \`{{ ${by}(${alone ?? '…'}) }}\`` : ''
  throw new CadreError('invalid_request', `${place}: output ${name} is declared ${type}, got ${shown}${write}`)
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
