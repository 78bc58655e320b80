// Runs, phases, reviews and deliveries in the form that callers receive.

import type { FileRecord } from '../../agent/agent-context.ts'
import { CadreError } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Phase } from '../../team/team.ts'
import { briefError, VALUE_BYTES } from '../../wire/budget.ts'
import type { ReviewNext, ReviewRecord, ReviewShown } from '../../wire/records/review-records.ts'
import type {
  AttemptRecord,
  PhaseRecord,
  RunDetail,
  RunRecord as ToldRun,
  TurnRecord,
} from '../../wire/records/run-records.ts'
import { type PhaseRow, parse, type ReviewRow, type RunRow, startedBy } from '../core/core.ts'
import type { AttemptRow, RunHead, Store, TurnRow } from '../store/store.ts'
import { turnOfRun } from './waits.ts'

export type { ReviewRecord }

/** A run of this home, whose id is read. */
export type RunRecord = ToldRun & { run_id: RunId }

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
    environment: row.environment,
    started_by: startedBy(row),
    attempt: row.attempt,
    started_at: row.started_at,
    completed_at: row.completed_at,
    lived_ms: row.completed_at === null ? null : row.lived_ms,
    tolerated: row.tolerated,
  }
}

/** A run as lists and events have it, from its row or from one without what is large. */
export function runHead(row: RunRow | RunHead): RunRecord {
  const record = runRecord({ ...row, inputs: '{}', outputs: null, error: null })
  return { ...record, error: briefError(parse(row.error)), ...smallOf('inputs', row), ...smallOf('outputs', row) }
}

/** Inputs or outputs if they are small, otherwise how large they are. */
function smallOf(name: 'inputs' | 'outputs', row: RunRow | RunHead) {
  const text = row[name]
  const bytes = `${name}_bytes` in row ? (row as RunHead)[`${name}_bytes`] : text === null ? 0 : Buffer.byteLength(text)
  return bytes !== null && bytes > VALUE_BYTES ? { [name]: null, [`${name}_bytes`]: bytes } : { [name]: parse(text) }
}

/** A phase without its sub-runs and what it waits for. */
export function phaseRecord(
  { turns }: Pick<Store, 'turns'>,
  row: PhaseRow,
  phase: Phase,
  all: readonly Phase[],
): Omit<PhaseRecord, 'sub_runs' | 'waiting'> {
  // A phase that waits for a person may have a result stored for later, which is not shown before the phase has ended.
  const hasResult = row.state === 'completed' || row.state === 'failed'
  // What the commands of a gate wrote is looked at before somebody answers.
  const hasFiles = hasResult || (row.state === 'awaiting_input' && phase.type === 'gate')
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
    files: (hasFiles && parse<FileRecord[]>(row.files)) || [],
    turns: phase.repeat ? turns.of(row.run_id, row.position).map(turn => turnRecord(turn, row)) : [],
  }
}

/** The turn that goes on is as its phase, and one whose condition held ended with it. */
function turnRecord({ turn, started_at, completed_at }: TurnRow, { state, completed_at: ended }: PhaseRow): TurnRecord {
  return completed_at === null
    ? { turn, state, started_at, completed_at: ended }
    : { turn, state: 'completed', started_at, completed_at }
}

export function attemptRecord({ position: _, error, ...row }: AttemptRow, phase: string): AttemptRecord {
  return { phase, ...row, error: parse(error) }
}

/** A run as `runs/get` returns it: its record, and what its listeners were asked to send. Throws `not_found`. */
export function runDetail(store: Store, runId: string): RunDetail {
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  const deliveries = store.deliveries.of(runId)
  const waits = row.state === 'queued' ? turnOfRun(store, runId) : null
  return {
    ...runRecord(row),
    inputs: JSON.parse(row.inputs),
    ...(waits !== null && { waiting_for: waits }),
    deliveries: deliveries.map(({ listener, event, state, error }) => ({ phase: listener, event, state, error })),
  }
}

/** `lived` is the lived time of the home now; null while no process lives, which stops the clock of the review. */
export function reviewRecord(
  row: ReviewRow,
  phase: string | null,
  runName: string | null,
  lived: number | null,
): ReviewRecord {
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
    next: parse<ReviewNext>(row.next),
    shown: parse<ReviewShown>(row.shown),
    expires_at: expiryOf(row, lived),
    state,
    decision,
    decided_by,
    comment,
    created_at,
    decided_at,
  }
}

/** When a clock on the wall will show that a review expires. */
function expiryOf({ state, deadline }: ReviewRow, lived: number | null): number | null {
  if (state !== 'pending' || deadline === null || lived === null) return null
  return Date.now() + Math.max(0, deadline - lived)
}
