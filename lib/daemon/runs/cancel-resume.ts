// Cancels and resumes runs. An interrupted run, which no process executes any more, is first continued by this process.

import { CadreError, type Detail } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { planResume, type RunRecord, type RunRow, type Store } from '../../run/engine.ts'
import { type Bundle, problemWith, type Team } from '../../team/team.ts'
import { didYouMean } from '../../text/spelling.ts'
import type { ResumePlan } from '../../wire/records/resume-plan.ts'
import type { Written } from '../../wire/records/run-records.ts'
import type { Daemon } from './daemon.ts'

/** Cancels a run. `cleanup` has the names of the `always` phases that continue. */
export async function cancelRun(
  daemon: Daemon,
  runId: string,
  actor: string,
): Promise<RunRecord & { cleanup: string[] }> {
  const also = () => daemon.audit.write({ actor, action: 'runs/cancel', target: runId })
  // Both changes go into one commit, so that no phase of an interrupted run is started again before the cancel.
  const [, record] = await Promise.all([
    daemon.openRuns.continueTree(runId, { isAsked: true }),
    daemon.engine.cancel(runId, undefined, also),
  ])
  return { ...record, cleanup: cleanupOf(daemon, runId) }
}

/**
 * The phases of a run and of all runs below it that run to their end after a cancel. A second cancel stops these too.
 */
function cleanupOf({ db, engine }: Daemon, runId: string): string[] {
  const open = db
    .query<{ position: number; bundle_id: string; team_key: string }, [string]>(
      `SELECT phases.position, runs.bundle_id, runs.team_key
       FROM runs AS top JOIN runs ON runs.root_id = top.root_id AND runs.tree_key >= top.tree_key
         AND runs.tree_key < top.tree_key || '~' AND runs.completed_at IS NULL
       JOIN phases ON phases.run_id = runs.id AND phases.completed_at IS NULL
       WHERE top.id = ? AND coalesce(json_extract(top.ending, '$.hard'), 0) = 0`,
    )
    .all(runId)
  const names = open.flatMap(({ position, bundle_id, team_key }) => {
    const phase = engine.bundle(bundle_id).team(team_key).phases[position]!
    return phase.always ? [phase.name] : []
  })
  return [...new Set(names)]
}

interface Recorded {
  store: Store
  bundle: (id: string) => Bundle
}

interface Request {
  /** Who resumes it, for the audit log. */
  actor: string
  from: string | null
  failed: boolean
  outputs?: boolean
  /** Secret inputs, given again because they are deleted when a run ends. */
  inputs?: JsonObject
}

/** `repeats`: the phases of the run that run again. `written`: what they have written, which is not sent again. */
type Resumed = RunRecord & { repeats: string[]; written: Written[]; continued: boolean }

/**
 * Resumes a run. `continued` means that it had been interrupted and continues unchanged. Throws `not_found`,
 * `invalid_state`, `invalid_request`, and `forbidden` when a package of the run is not trusted any more.
 */
export async function resumeRun(daemon: Daemon, runId: string, request: Request): Promise<Resumed> {
  const { engine, openRuns } = daemon
  const row = engine.store.runs.get(runId)!
  const { actor, from, failed, outputs = false, inputs } = request
  const what = `${failed ? ', failed items' : ''}${outputs ? ', outputs' : ''}`
  const target = `${runId}${from === null ? '' : ` from ${from}`}${what}`
  const also = () => daemon.audit.write({ actor, action: 'runs/resume', target })
  if (inputs) checkSecrets(engine.bundle(row.bundle_id).team(row.team_key), inputs)
  // It is what makes each phase fail, if the environment is gone.
  daemon.settings.in(row.environment)
  const review = daemon.settings.reviewersIn(row.environment)
  await daemon.packages.judge(engine.bundle(row.bundle_id))
  if (openRuns.isInterrupted(row.root_id)) {
    checkInterrupted(row, request)
    await daemon.openRuns.continueTree(runId, { isAsked: true })
    await engine.commit(also)
    return { ...engine.record(runId), repeats: [], written: [], continued: true }
  }
  const { repeated, writes } = engine.planResume(runId, { from, failed, outputs })
  const repeats = repeated.map(({ phase }) => phase)
  const written = writes.filter(({ state, fate }) => fate !== 'kept' && (state === 'done' || state === 'partial'))
  return {
    ...(await engine.resume(runId, { ...request, review }, also)),
    repeats,
    written: written.map(({ fate: _, ...write }) => write),
    continued: false,
  }
}

/** What `resumeRun` would do. It changes nothing, and throws the same errors, except for secret inputs that are missing. */
export function planOfResume(
  { store, bundle }: Recorded,
  runId: string,
  request: Omit<Request, 'actor'>,
  isInterrupted: (rootId: string) => boolean,
): ResumePlan {
  const row = store.runs.get(runId)
  const { from, failed, outputs = false, inputs } = request
  if (row && inputs) checkSecrets(bundle(row.bundle_id).team(row.team_key), inputs)
  const interrupted = row !== null && isInterrupted(row.root_id)
  if (interrupted) checkInterrupted(row, request)
  return planResume({ store, world: { bundle } }, runId, { from, failed, outputs }, interrupted)
}

/** An interrupted run only continues where it was. */
function checkInterrupted(
  { id, root_id, parent_id }: RunRow,
  { from, failed, outputs, inputs }: Omit<Request, 'actor'>,
): void {
  const reason =
    parent_id !== null
      ? `run ${id} is a sub-run: resume its top run ${root_id}`
      : `run ${id} was interrupted: resume it without options, then again with them once it has ended`
  if (parent_id !== null || from !== null || failed || outputs || inputs) throw new CadreError('invalid_state', reason)
}

function checkSecrets({ inputs: fields }: Team, given: JsonObject): void {
  const secrets = fields.filter(({ secret }) => secret)
  const details = Object.entries(given).flatMap(([name, value]): Detail[] => {
    const path = `/inputs/${name}`
    const field = secrets.find(each => each.name === name)
    if (field) {
      const problem = problemWith(value, field)
      return problem ? [{ path, message: `input ${name}: ${problem}` }] : []
    }
    if (fields.some(each => each.name === name)) {
      return [{ path, message: `input ${name} is not secret: it keeps the value that the run began with` }]
    }
    const near = didYouMean(
      name,
      secrets.map(each => each.name),
    )
    return [{ path, message: `no input ${name} is declared${near}` }]
  })
  if (details.length === 0) return
  throw new CadreError('invalid_request', details.map(({ message }) => message).join('; '), { details })
}
