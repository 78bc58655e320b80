// Runs and phases as rows, and as the records that callers get (decisions: run record, phase record).

import type { FileRecord } from '../agent/define.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Phase } from '../team/team.ts'
import type { PhaseState, RunState } from './transitions.ts'

/** Why a run or a phase failed. `phase` and `run_id` lead to the leaf where it began. */
export interface RunError {
  code: string
  message: string
  hint?: string
  phase?: string
  run_id?: string
}

export interface RunRow {
  id: string
  root_id: string
  tree_key: string
  parent_id: string | null
  parent_position: number | null
  parent_phase: string | null
  item: number | null
  run_name: string | null
  call_path: string
  call_depth: number
  bundle_id: string
  team_key: string
  team: string
  version: string
  state: RunState
  reason: string | null
  error: string | null
  inputs: string
  outputs: string | null
  workspace: string | null
  from_path: number
  synced: number
  attempt: number
  ending: string | null
  created_at: number
  started_at: number | null
  completed_at: number | null
  deadline: number | null
  time_left: number | null
  /** The last log line that stands in the outbox. */
  logged: number
}

export interface PhaseRow {
  run_id: string
  position: number
  state: PhaseState
  reason: string | null
  attempt: number
  failures: number
  due_at: number | null
  started_at: number | null
  completed_at: number | null
  error: string | null
  text: string | null
  data: string | null
  files: string | null
}

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
  /** What it waits for, while a daemon runs it; null when it works or has ended. */
  waiting: string | null
}

export function phaseRecord(row: PhaseRow, phase: Phase, all: readonly Phase[], subRuns: SubRun[]): PhaseRecord {
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
    text: row.text ?? '',
    data: parse(row.data),
    files: parse(row.files) ?? [],
    sub_runs: subRuns,
    waiting: null,
  }
}

/** A value as a column holds it; absent is null. */
export function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value)
}

export function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}

/** The place of a sub-run in its tree: three base-36 digits for the phase, six for the item, after the parent's own. */
export function treeKey(parent: string, position: number, item: number): string {
  return parent + position.toString(36).padStart(3, '0') + item.toString(36).padStart(6, '0')
}

/** The phase of the top run that a place lies below. */
export function positionOf(place: string): number {
  return Number.parseInt(place.slice(0, 3), 36)
}
