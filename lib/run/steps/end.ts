// The end of an attempt of a leaf phase, and the end of a run once all of its phases have ended.

import { formatDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { isOfType, type Output } from '../../team/team.ts'
import { type LiveRun, parse, type RunError, retryDelay } from '../core/core.ts'
import type { Outcome } from './effects.ts'
import { errorOf } from './fault.ts'
import type { Machine } from './machine.ts'
import { mapChildEnded } from './map.ts'
import { ask, askGate } from './review.ts'
import { scopeOf } from './scope.ts'
import { teamChildEnded } from './team.ts'

type EndState = 'completed' | 'failed' | 'cancelled'

export interface RunEnd {
  state: EndState
  reason: string | null
  error: RunError | null
  outputs: JsonObject | null
}

const EVENT_OF = { completed: 'on_complete', failed: 'on_fail', cancelled: 'on_cancel' } as const

/** An attempt of a leaf phase ended. Returns false, and changes nothing, when it is no longer the live attempt. */
export function attemptEnded(
  machine: Machine,
  runId: string,
  position: number,
  attempt: number,
  outcome: Outcome,
): boolean {
  const live = machine.live(runId, position, attempt)
  if (!live || live.phases[position]!.state !== 'running') return false
  conclude(machine, live, position, outcome)
  machine.follow(live.root)
  machine.useSlots(live.root)
  return true
}

/** Applies the outcome of a phase: it ends, asks a person, or is tried again later. */
export function conclude(machine: Machine, live: LiveRun, position: number, outcome: Outcome): void {
  const phase = live.phase(position)
  const asksNobody = live.ending !== null
  if (outcome.kind === 'completed') {
    if (phase.type === 'gate' && phase.review) {
      if (asksNobody) return machine.endPhase(live, position, 'cancelled', { reason: live.ending!.reason })
      return askGate(machine, live, phase.index, phase.review)
    }
    const { kind: _, small: __, ...change } = outcome
    return machine.endPhase(live, position, 'completed', change)
  }
  if (outcome.kind === 'cancelled' || (live.ending && (live.ending.hard || !phase.always))) {
    return machine.endPhase(live, position, 'cancelled', { reason: live.ending?.reason ?? 'cancelled' })
  }
  const { error } = outcome
  if (outcome.kind === 'unknown') {
    if (asksNobody) return machine.endPhase(live, position, 'failed', { error })
    const { entries } = outcome
    return ask(machine, live, position, {
      kind: 'escalation',
      reason: 'unknown',
      entries,
      prompt: error.message,
      error,
    })
  }
  const { failures } = live.phases[position]!
  if (!outcome.retryable || failures + 1 >= phase.retry.attempts || asksNobody) {
    return machine.failPhase(live, position, error)
  }
  const delay = retryDelay(phase.retry.backoff, failures, machine.world.random)
  machine.postpone(live, position, machine.world.now() + delay, failures + 1, error)
}

/**
 * Ends a run whose phases have all ended. Its file outputs are checked first, by an errand, which puts its result into
 * `live.outputs` and has this called again.
 */
export function finish(machine: Machine, live: LiveRun): void {
  let end = machine.mask(live, endOf(machine, live))
  let handed: string | null = null
  let handFault: unknown = null
  if (end.state === 'completed' && fileOutputs(live, end.outputs).length > 0) {
    if (live.outputs === 'checking') return
    if (live.outputs === 'unchecked') {
      live.outputs = 'checking'
      const errand = { kind: 'outputs', runId: live.id, position: -1, attempt: 0 } as const
      return machine.after({ kind: 'errand', errand })
    }
    const { fault } = live.outputs
    handed = live.outputs.handed
    if (fault?.of === 'phase') handFault = fault.error
    if (fault?.of === 'run') end = machine.mask(live, failedOutputs(live, fault.error))
  }
  const at = machine.world.now()
  if (!machine.store.runs.end(live.id, end.state, { ...end, handed, at })) {
    throw new CadreError('internal', `run ${live.id} may not become ${end.state} now`)
  }
  leave(machine, live, end)
  machine.changed(live)
  machine.event(live, EVENT_OF[end.state], null)
  machine.after({ kind: 'ended', runId: live.id, root: live.root })
  const { parent } = live
  if (!parent) return
  const position = live.row.parent_position!
  const phase = parent.phase(position)
  // This may have been the last run below the phase that asked a person.
  machine.followBelow(parent, position, null)
  if (phase.type === 'team') teamChildEnded(machine, parent, phase, live, end, handed, handFault)
  else if (phase.type === 'map') mapChildEnded(machine, parent, phase, live, end, handFault)
  machine.step(parent)
}

/** Takes an ended run out of memory, and out of the counters of the run above. */
function leave(machine: Machine, live: LiveRun, end: RunEnd): void {
  const above = live.siblings
  if (above) {
    if (live.row.state === 'awaiting_input') above.asked--
    if (live.idle) above.idle--
    if (live.parked) above.parked--
    above.wanting.delete(live)
    above.runs.delete(live)
  }
  live.row.state = end.state
  live.row.outputs = end.outputs && JSON.stringify(end.outputs)
  machine.lives.delete(live.id)
  machine.slots.drop(live)
}

/** The end of a run, as it follows from what its phases recorded. */
function endOf(machine: Machine, live: LiveRun): RunEnd {
  const nothing = { outputs: null, error: null, reason: null }
  if (live.ending) {
    const { state, reason } = live.ending
    return { ...nothing, state, reason, error: reason === 'timeout' ? tooLong(live) : null }
  }
  const failed = live.phases.findIndex(
    (phase, position) => phase.state === 'failed' && live.phase(position).onFailure !== 'continue',
  )
  if (failed >= 0) {
    const { error, reason } = machine.store.phases.get(live.id, failed)!
    const recorded = parse<RunError>(error) ?? { code: 'failed', message: reason ?? 'failed' }
    const place = { phase: live.phase(failed).name, run_id: live.id }
    return { ...nothing, state: 'failed', reason, error: { ...place, ...recorded } }
  }
  if (live.phases.some(phase => phase.state === 'cancelled'))
    return { ...nothing, state: 'cancelled', reason: 'sub_run' }
  try {
    const scope = scopeOf(machine, live)
    const outputs = live.team.outputs.map(output => [output.name, checked(output, output.value.evaluate(scope))])
    return { ...nothing, state: 'completed', outputs: Object.fromEntries(outputs) }
  } catch (thrown) {
    return failedOutputs(live, thrown)
  }
}

const failedOutputs = (live: LiveRun, thrown: unknown): RunEnd => ({
  state: 'failed',
  reason: 'outputs',
  outputs: null,
  error: { ...errorOf(thrown), run_id: live.id },
})

function tooLong({ id, team: { timeout } }: LiveRun): RunError {
  const limit = timeout === undefined ? '' : ` of ${formatDuration(timeout)}`
  return { code: 'timeout', message: `the run took longer than its timeout${limit}`, run_id: id }
}

/** Null stays null: its phase did not complete. Any other value must be of the declared type; none is converted. */
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
