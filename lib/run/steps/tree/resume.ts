// A new attempt of an ended top run. core/repeated.ts says what it repeats, and resume-plan.ts tells it in advance.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Team } from '../../../team/team.ts'
import { type RunRow, runEnded } from '../../core/core.ts'
import { openPhases, reopenRun } from '../run/reopen.ts'
import { PassedOver, type Rows, repetitionsOf, teamOf } from '../run/repeated.ts'
import type { EngineState } from '../state/state.ts'
import { keyOf, queueForKey } from './concurrency-key.ts'
import { takeSteps } from './step.ts'

export interface ResumeOptions {
  /** Name of the phase from which everything is repeated. */
  from?: string | null
  /** Also repeat what failed and was passed over, at any depth. */
  failed?: boolean
  /** Only make the outputs again that could not be made, and repeat what failed because of it. */
  outputs?: boolean
  /** The values of `secret` inputs, which were removed when the run ended. */
  inputs?: JsonObject
  /** Who may approve it before it begins, unless somebody has; null when nobody is asked. */
  review?: readonly string[] | null
}

/**
 * Starts the new attempt of a top run. Throws `not_found`, `invalid_state`, or `invalid_request` for an unknown phase.
 */
export function resume(engine: EngineState, runId: string, options: ResumeOptions): void {
  const row = resumable(engine, runId, options)
  const team = teamOf(engine, row)
  const passedOver = options.failed ? new PassedOver(engine) : null
  const repeated = repetitionsOf(engine, row, passedOver, fromPhase(team, options))
  if (!makesOnlyOutputs(row, options)) openPhases(engine, row, repeated, passedOver)
  engine.store.runs.requeue(runId)
  engine.store.runs.setReview(runId, options.review ?? null)
  if (team.key) {
    engine.notes.changedRows([row], [])
    return queueForKey(engine, runId, keyOf(team.key, JSON.parse(row.inputs), row.environment), true)
  }
  reopenRun(engine, engine.store.runs.get(runId)!)
  takeSteps(engine, runId)
}

/**
 * The values of secret inputs for a new attempt of `row`, from the values that were given again; null when it needs
 * none. The values of the previous attempt were removed when the run ended. Throws `invalid_request` when a value is
 * missing, or is given for an input that is not secret.
 */
export function secretsAgain(team: Team, row: Pick<RunRow, 'inputs'>, given: JsonObject): JsonObject | null {
  const wrong = Object.keys(given).filter(name => !team.inputs.some(input => input.secret && input.name === name))
  if (wrong.length > 0) {
    throw new CadreError(
      'invalid_request',
      `only secret inputs can be given again at a resume: ${wrong.join(', ')} ${wrong.length > 1 ? 'keep their values' : 'keeps its value'} from the start`,
      { details: wrong.map(name => ({ path: `/inputs/${name}`, message: 'must be a secret input of this team' })) },
    )
  }
  const started: JsonObject = JSON.parse(row.inputs)
  const needed = team.inputs.filter(({ name, secret }) => secret && name in started).map(({ name }) => name)
  if (needed.length === 0) return null
  const missing = needed.filter(name => !(name in given))
  if (missing.length > 0) {
    const options = missing.map(name => `-i ${name}=@-`).join(' ')
    throw new CadreError(
      'invalid_request',
      `the values of secret inputs are kept only until a run ends: give ${missing.join(', ')} again (${options})`,
      { details: missing.map(name => ({ path: `/inputs/${name}`, message: `input ${name}: give it again` })) },
    )
  }
  return given
}

/** Whether a resume repeats no phase: the outputs of the top run itself are missing. */
export const makesOnlyOutputs = ({ reason }: RunRow, { outputs = false }: ResumeOptions): boolean =>
  outputs && reason === 'outputs'

/** The row of a run that can be resumed like this. */
export function resumable(rows: Rows, runId: string, options: ResumeOptions): RunRow {
  const { from = null, failed = false, outputs = false } = options
  if (outputs && (failed || from !== null)) {
    throw new CadreError('invalid_request', '`--outputs` repeats no phase that completed: give it alone')
  }
  const row = rows.store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  if (row.parent_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: resume its top run ${row.root_id}`)
  }
  if (!runEnded(row.state)) {
    throw new CadreError('invalid_state', `run ${runId} is ${row.state}: it continues by itself`)
  }
  if (rows.store.deletions.isBegun(runId)) {
    throw new CadreError('invalid_state', `run ${runId} is being deleted, and only a part of it may be left`)
  }
  fromPhase(teamOf(rows, row), options)
  if (outputs) {
    if (row.reason === 'outputs' || rows.store.runs.lacksOutputs(row.root_id)) return row
    throw new CadreError('invalid_state', `run ${runId} has all of its outputs`)
  }
  const isDone = row.state === 'completed' && from === null
  if (isDone && !failed) {
    throw new CadreError(
      'invalid_state',
      `run ${runId} has completed: name the phase to repeat from (\`--from PHASE\`)`,
    )
  }
  if (isDone && !new PassedOver(rows).in(row)) {
    throw new CadreError('invalid_state', `run ${runId} has completed, and passed over no failure`)
  }
  return row
}

/** The position of the phase from which everything is repeated. */
export function fromPhase(team: Team, { from = null }: ResumeOptions): number | null {
  if (from === null) return null
  const first = team.phases.find(phase => phase.name === from)
  if (first) return first.index
  const names = team.phases.map(phase => phase.name).join(', ')
  throw new CadreError('invalid_request', `${team.name} has no phase ${from}; it has ${names}`, {
    details: [{ path: '/from_phase', message: `expected one of ${names}` }],
  })
}
