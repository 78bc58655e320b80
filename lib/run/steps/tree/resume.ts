// A new attempt of an ended top run. It opens every phase that did not complete. `from` also opens that phase and all
// phases that depend on it, and `failed` also opens the failed items of maps that completed without them. `planResume`
// says in advance what will be repeated.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Phase, Team } from '../../../team/team.ts'
import { positionOf, type RunRow, runEnded } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { reopenRun } from '../run/reopen.ts'
import type { EngineState } from '../state/state.ts'
import { keyOf, queueForKey } from './concurrency-key.ts'
import { countedChildren, dependants, holdersOfFailed, isHolder, teamOf, withFailedItems } from './failed-items.ts'
import { takeSteps } from './step.ts'
import { type Written, written } from './written.ts'

export interface ResumeOptions {
  /** Name of the phase from which everything is repeated. */
  from?: string | null
  failed?: boolean
  /** The values of `secret` inputs, which were removed when the run ended. */
  inputs?: JsonObject
}

export interface ResumePlan {
  run_id: string
  /**
   * Phases of the run that run again. In their sub-runs only what did not complete runs again, unless `from` asks for
   * more.
   */
  repeats: string[]
  /** The writes of these phases to other systems. They are not sent again. */
  written: Written[]
}

/**
 * Starts the new attempt of a top run. Throws `not_found`, `invalid_state`, or `invalid_request` for an unknown phase.
 */
export function resume(engine: EngineState, runId: string, { from = null, failed = false }: ResumeOptions): void {
  const row = resumable(engine, runId, { from, failed })
  const team = teamOf(engine, row)
  for (const position of fromPhase(team, from)) openPhase(engine, row, team.phases[position]!)
  if (failed) openFailed(engine, row)
  engine.store.runs.requeue(runId)
  if (team.key) {
    engine.notes.changedRows([row], [])
    return queueForKey(engine, runId, keyOf(team.key, JSON.parse(row.inputs)), true)
  }
  reopenRun(engine, engine.store.runs.get(runId)!)
  takeSteps(engine, runId)
}

/** What a resume would repeat. Throws the same errors as `resume`. */
export function planResume(
  engine: EngineState,
  runId: string,
  { from = null, failed = false }: ResumeOptions,
): ResumePlan {
  const { store } = engine
  const row = resumable(engine, runId, { from, failed })
  const team = teamOf(engine, row)
  const whole = new Set(fromPhase(team, from))
  const repeated = new Set([...notCompleted(engine, row), ...whole, ...(failed ? withFailedItems(engine, row) : [])])
  const again = store.receipts.below(row.root_id, row.tree_key).filter(({ run_id, position, state }) => {
    const key = store.runs.get(run_id)!.tree_key
    const top = key === '' ? position : positionOf(key)
    if ((state !== 'done' && state !== 'partial') || !repeated.has(top)) return false
    return whole.has(top) || store.phases.get(run_id, position)!.state !== 'completed'
  })
  return {
    run_id: runId,
    repeats: team.phases.filter(phase => repeated.has(phase.index)).map(phase => phase.name),
    written: written(store, again, row => teamOf(engine, row).phases),
  }
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

export function resumable(engine: EngineState, runId: string, { from = null, failed = false }: ResumeOptions): RunRow {
  const row = engine.store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  if (row.parent_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: resume its top run ${row.root_id}`)
  }
  if (!runEnded(row.state)) {
    throw new CadreError('invalid_state', `run ${runId} is ${row.state}: it continues by itself`)
  }
  const isDone = row.state === 'completed' && from === null
  if (isDone && !failed) {
    throw new CadreError(
      'invalid_state',
      `run ${runId} has completed: name the phase to repeat from (\`--from PHASE\`)`,
    )
  }
  if (isDone && withFailedItems(engine, row).length === 0) {
    throw new CadreError('invalid_state', `run ${runId} is completed, and no item of its maps failed`)
  }
  return row
}

/** Opens a phase again, however it ended. The items of a map will be evaluated again. */
function openPhase(engine: EngineState, row: RunRow, phase: Phase): void {
  engine.store.attempts.keepOpened(row.id, phase.index)
  engine.store.phases.open(row.id, phase.index)
  engine.store.items.delete(row.id, phase.index)
  engine.store.receipts.doubtVouched(row.id, phase.index)
  engine.notes.changedRows([], [{ run_id: row.id, position: phase.index }])
  kindOf(phase).subRuns?.reopen(engine, row, phase)
}

/** Positions of the phases that did not complete, which every resume repeats. */
function notCompleted(engine: EngineState, row: RunRow): number[] {
  return engine.store.phases
    .of(row.id)
    .filter(
      ({ state, reason }) =>
        state === 'failed' ||
        state === 'cancelled' ||
        (state === 'skipped' && (reason === 'upstream' || reason === 'when')),
    )
    .map(phase => phase.position)
}

/** The phase `from` and all phases that depend on it. */
function fromPhase(team: Team, from: string | null): number[] {
  if (from === null) return []
  const first = team.phases.find(phase => phase.name === from)
  if (first) return dependants(team, [first.index])
  const names = team.phases.map(phase => phase.name).join(', ')
  throw new CadreError('invalid_request', `${team.name} has no phase ${from}; it has ${names}`, {
    details: [{ path: '/from_phase', message: `expected one of ${names}` }],
  })
}

/** Opens the phases of `withFailedItems`. Items stay as they are, and sub-runs keep their completed phases. */
function openFailed(engine: EngineState, row: Pick<RunRow, 'id' | 'bundle_id' | 'team_key'>): void {
  const { store } = engine
  const team = teamOf(engine, row)
  const holders = holdersOfFailed(engine, row, team)
  for (const position of dependants(team, holders)) {
    const phase = team.phases[position]!
    if (!holders.includes(position)) {
      openPhase(engine, store.runs.get(row.id)!, phase)
      continue
    }
    for (const child of countedChildren(engine, row.id, phase)) {
      if (!isHolder(engine, child)) continue
      openFailed(engine, child)
      engine.notes.changedRows(store.runs.requeue(child.id), [])
    }
    store.attempts.keepOpened(row.id, position)
    store.phases.open(row.id, position, true)
    engine.notes.changedRows([], [{ run_id: row.id, position }])
  }
}
