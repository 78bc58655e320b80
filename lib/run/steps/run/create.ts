// Creates a run: inserts its rows and makes its first phases ready. Its tree key follows from the phase above.

import type { RunId } from '../../../files/run-id.ts'
import type { JsonObject } from '../../../json.ts'
import type { Bundle, Field, Team } from '../../../team/team.ts'
import { type StartedBy, UNKNOWN_STARTER } from '../../../wire/records/started-by.ts'
import { json, LiveRun, parse, type RunError, type RunRow, startClock, treeKey, untouched } from '../../core/core.ts'
import type { EngineState } from '../state/state.ts'
import type { World } from '../state/world.ts'
import { beginRun, readyFirst } from './begin.ts'

export interface NewRun {
  id: RunId
  bundle: Bundle
  teamKey: string
  /** Checked and complete. */
  inputs: JsonObject
  runName: string | null
  workspace: string | null
  environment: string | null
  /** Of a top run: who may approve it before anything of it begins; null when nobody is asked. */
  review: readonly string[] | null
  fromPath: boolean
  synced: boolean
  /** Why it cannot begin. It is recorded as failed, because nobody would hear the answer to its start. */
  notStarted?: RunError
  /** Of a top run. */
  startedBy?: StartedBy
  /** Of a top run that continues the trace of its caller. */
  traceparent?: string
}

/** The phase that starts a sub-run, and the item that it is for. A team phase has one item a turn, from 0, without a key. */
export interface Above {
  live: LiveRun
  position: number
  item: number
  key: string | null
}

/** Inserts a run with its phases, and starts it. */
export function createRun(engine: EngineState, run: NewRun, above: Above | null): void {
  createRuns(engine, [{ run, above }])
}

/** The same for runs of one team. Their rows are inserted together, before the first of them starts. */
export function createRuns(engine: EngineState, created: readonly { run: NewRun; above: Above | null }[]): void {
  const [first] = created
  if (!first) return
  const team = first.run.bundle.team(first.run.teamKey)
  const rows = created.map(({ run, above }) => newRow(run, above, engine.world))
  engine.store.runs.insert(rows)
  engine.store.phases.insert(
    rows.map(({ id }) => id),
    team.phases.length,
  )
  for (const [index, { run, above }] of created.entries()) startCreated(engine, rows[index]!, team, run, above)
}

function startCreated(engine: EngineState, row: RunRow, team: Team, run: NewRun, above: Above | null): void {
  const live = new LiveRun(row, run.bundle, above?.live ?? null, team.phases.map(untouched), run.inputs)
  engine.notes.touch(live.root)
  engine.lives.set(row.id, live)
  live.siblings?.runs.add(live)
  if (row.deadline !== null) engine.world.wakeAt(row.deadline)
  engine.notes.changed(live)
  if (run.notStarted) readyFirst(engine, live)
  else beginRun(engine, live)
}

/** Inserts a top run that waits for its concurrency key. */
export function createQueuedRun(engine: EngineState, run: NewRun): void {
  const started: RunRow = newRow(run, null, engine.world)
  const row: RunRow = { ...started, state: 'queued', started_at: null, deadline: null, lived_since: null }
  engine.store.runs.insert([row])
  engine.store.phases.insert([row.id], run.bundle.team(run.teamKey).phases.length)
  engine.notes.touch(row.id)
  engine.notes.changedRows([row], [])
}

/** The inputs as they are stored and shown: secrets are masked. */
export function maskInputs(fields: readonly Field[], values: JsonObject): JsonObject {
  if (!fields.some(({ secret }) => secret)) return values
  const masked = { ...values }
  for (const { name, secret } of fields) if (secret && name in masked) masked[name] = '***'
  return masked
}

/** Whether the end of a run needs nothing more, because there are no listeners and no secrets. */
function endsAlone({ inputs, listeners }: Team): boolean {
  return listeners.length === 0 && !inputs.some(({ secret }) => secret)
}

function newRow(run: NewRun, above: Above | null, world: World): RunRow {
  const [now, lived] = [world.now(), world.lived()]
  const team = run.bundle.team(run.teamKey)
  const parent = above?.live.row
  return {
    number: 0,
    id: run.id,
    root_id: parent?.root_id ?? run.id,
    tree_key: parent ? treeKey(parent.tree_key, above!.position, above!.item) : '',
    parent_id: parent?.id ?? null,
    parent_position: above?.position ?? null,
    parent_phase: above ? above.live.phase(above.position).name : null,
    item: above?.item ?? null,
    run_name: above ? above.key : run.runName,
    call_path: JSON.stringify([...(parent ? parse<string[]>(parent.call_path)! : []), team.name]),
    call_depth: parent ? parent.call_depth + 1 : 0,
    bundle_id: run.bundle.id,
    team_key: run.teamKey,
    team: team.name,
    version: team.version,
    state: 'running',
    reason: null,
    error: null,
    inputs: JSON.stringify(maskInputs(team.inputs, run.inputs)),
    outputs: null,
    workspace: run.workspace,
    from_path: run.fromPath ? 1 : 0,
    synced: run.synced ? 1 : 0,
    attempt: 1,
    ending: null,
    created_at: now,
    started_at: run.notStarted ? null : now,
    completed_at: null,
    deadline: startClock(team.timeout, lived).deadline,
    time_left: null,
    logged: 0,
    log_sent: 0,
    log_ended: 0,
    log_due: 0,
    handed: null,
    settled: parent || endsAlone(team) ? 1 : 0,
    started_by: parent ? null : JSON.stringify(run.startedBy ?? UNKNOWN_STARTER),
    environment: run.environment,
    review: parent ? null : json(run.review),
    lived_ms: 0,
    tolerated: null,
    lived_since: run.notStarted ? null : lived,
    traceparent: run.traceparent ?? null,
  }
}
