// Runs, phases, reviews and deliveries in the form that callers receive.

import type { FileRecord } from '../../agent/define.ts'
import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Phase } from '../../team/team.ts'
import {
  type DeliveryRow,
  type PhaseRow,
  type PhaseState,
  parse,
  type ReviewRow,
  type RunError,
  type RunRow,
  type RunState,
} from '../core/core.ts'
import type { Store } from '../store/store.ts'

/** `runs/get`, items of `runs/list`. Times are epoch milliseconds. */
export interface RunRecord {
  run_id: string
  run_name: string | null
  root_run_id: string
  parent_run_id: string | null
  parent_phase: string | null
  call_path: string[]
  call_depth: number
  team: string
  version: string
  state: RunState
  reason: string | null
  error: RunError | null
  inputs: JsonObject
  outputs: JsonObject | null
  workspace: string | null
  attempt: number
  started_at: number | null
  completed_at: number | null
}

export function runRecord(row: RunRow): RunRecord {
  return {
    run_id: row.id,
    run_name: row.run_name,
    root_run_id: row.root_id,
    parent_run_id: row.parent_id,
    parent_phase: row.parent_phase,
    call_path: JSON.parse(row.call_path),
    call_depth: row.call_depth,
    team: row.team,
    version: row.version,
    state: row.state,
    reason: row.reason,
    error: parse(row.error),
    inputs: JSON.parse(row.inputs),
    outputs: parse(row.outputs),
    workspace: row.workspace,
    attempt: row.attempt,
    started_at: row.started_at,
    completed_at: row.completed_at,
  }
}

export interface SubRun {
  run_id: string
  run_name: string | null
  state: RunState
}

/** An item of `runs/phases`. */
export interface PhaseRecord {
  name: string
  type: Phase['type']
  agent: string | null
  action: string | null
  state: PhaseState
  reason: string | null
  attempt: number
  depends_on: string[]
  started_at: number | null
  completed_at: number | null
  error: RunError | null
  ok: boolean | null
  text: string
  data: Json
  files: FileRecord[]
  sub_runs: SubRun[]
  /** What the phase waits for while a process executes its run; null when it works or has ended. */
  waiting: string | null
}

export function phaseRecord(row: PhaseRow, phase: Phase, all: readonly Phase[], subRuns: SubRun[]): PhaseRecord {
  // A phase that waits for a person may have a result stored for later, which is not shown before the phase has ended.
  const hasResult = row.state === 'completed' || row.state === 'failed'
  return {
    name: phase.name,
    type: phase.type,
    agent: phase.type === 'standard' ? phase.agent : null,
    action: (phase.type === 'standard' && phase.action) || null,
    state: row.state,
    reason: row.reason,
    attempt: row.attempt,
    depends_on: phase.dependsOn.map(position => all[position]!.name),
    started_at: row.started_at,
    completed_at: row.completed_at,
    error: parse(row.error),
    ok: row.state === 'completed' ? true : row.state === 'failed' ? false : null,
    text: (hasResult && row.text) || '',
    data: hasResult ? parse(row.data) : null,
    files: (hasResult && parse<FileRecord[]>(row.files)) || [],
    sub_runs: subRuns,
    waiting: null,
  }
}

/** `deliveries` of `runs/get`. */
export interface DeliveryRecord {
  phase: string
  event: string
  state: DeliveryRow['state']
  error: string | null
}

export type RunDetail = RunRecord & { deliveries: DeliveryRecord[] }

/** A run as `runs/get` returns it: its record, and what its listeners were asked to send. Throws `not_found`. */
export function runDetail(store: Store, runId: string): RunDetail {
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  const deliveries = store.deliveries.of(runId)
  return {
    ...runRecord(row),
    deliveries: deliveries.map(({ listener, event, state, error }) => ({ phase: listener, event, state, error })),
  }
}

/** A review as `reviews/list` returns it. */
export interface ReviewRecord {
  id: string
  run_id: string
  run_name: string | null
  phase: string
  entries: string[]
  kind: ReviewRow['kind']
  reason: string
  prompt: string
  state: ReviewRow['state']
  decision: string | null
  decided_by: string | null
  comment: string | null
  created_at: number
  decided_at: number | null
}

export function reviewRecord(row: ReviewRow, phase: string, runName: string | null): ReviewRecord {
  const { id, run_id, kind, reason, prompt, state, decision, decided_by, comment, created_at, decided_at } = row
  return {
    id,
    run_id,
    run_name: runName,
    phase,
    entries: parse<string[]>(row.entries) ?? [],
    kind,
    reason,
    prompt,
    state,
    decision,
    decided_by,
    comment,
    created_at,
    decided_at,
  }
}
