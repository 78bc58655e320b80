// The statements that every run needs: one operation, one statement. Those that change a state carry their fence in the
// WHERE and say whether a row was hit; they are only called inside a journal change. What belongs to one subject only
// (sub-runs, receipts, deliveries, reviews, the outbox) has its statements there.

import type { Database } from 'bun:sqlite'
import type { FileRecord } from '../agent/define.ts'
import type { Json } from '../json.ts'
import { json, type PhaseRow, parse, type RunError, type RunRow } from './records.ts'
import { PHASE_FENCE, type PhaseState, RUN_FENCE, type RunState } from './transitions.ts'

export interface PhaseChange {
  reason?: string | null
  error?: RunError | null
  text?: string | null
  data?: Json
  files?: readonly FileRecord[]
}

const RUN_COLUMNS = [
  'id',
  'root_id',
  'tree_key',
  'parent_id',
  'parent_position',
  'parent_phase',
  'item',
  'run_name',
  'call_path',
  'call_depth',
  'bundle_id',
  'team_key',
  'team',
  'version',
  'state',
  'reason',
  'error',
  'inputs',
  'outputs',
  'workspace',
  'from_path',
  'synced',
  'attempt',
  'ending',
  'created_at',
  'started_at',
  'completed_at',
  'deadline',
  'time_left',
  'logged',
] as const satisfies readonly (keyof RunRow)[]

export class RunStore {
  readonly db: Database

  constructor(db: Database) {
    this.db = db
  }

  // Runs

  insertRun(run: RunRow): void {
    this.db
      .query(
        `INSERT INTO runs (${RUN_COLUMNS.join(', ')}) VALUES (${RUN_COLUMNS.map(column => `$${column}`).join(', ')})`,
      )
      .run(run as unknown as Record<string, string | number | null>)
  }

  run(id: string): RunRow | null {
    return this.db.query<RunRow, [string]>('SELECT * FROM runs WHERE id = ?').get(id)
  }

  /** Every run that has not ended, parents before their children. */
  openRuns(): RunRow[] {
    return this.db.query<RunRow, []>('SELECT * FROM runs WHERE completed_at IS NULL ORDER BY root_id, tree_key').all()
  }

  setRunState(
    id: string,
    state: RunState,
    reason: string | null,
    deadline: number | null,
    left: number | null,
  ): boolean {
    return (
      this.db
        .query(
          `UPDATE runs SET state = ?2, reason = ?3, deadline = ?4, time_left = ?5 WHERE id = ?1 AND state IN (${RUN_FENCE[state]})`,
        )
        .run(id, state, reason, deadline, left).changes === 1
    )
  }

  /** For a new attempt with other inputs. */
  setInputs(id: string, inputs: string): void {
    this.db.query("UPDATE runs SET inputs = ?2 WHERE id = ?1 AND state = 'queued'").run(id, inputs)
  }

  endRun(
    id: string,
    state: RunState,
    end: { reason: string | null; error: RunError | null; outputs: Json; at: number },
  ): boolean {
    return (
      this.db
        .query(
          `UPDATE runs SET state = ?2, reason = ?3, error = ?4, outputs = ?5, completed_at = max(?6, started_at),
             ending = NULL, deadline = NULL, time_left = NULL
           WHERE id = ?1 AND state IN (${RUN_FENCE[state]})`,
        )
        .run(id, state, end.reason, json(end.error), json(end.outputs), end.at).changes === 1
    )
  }

  setEnding(id: string, ending: { state: RunState; reason: string }): void {
    this.db
      .query('UPDATE runs SET ending = ?2 WHERE id = ?1 AND ending IS NULL AND completed_at IS NULL')
      .run(id, JSON.stringify(ending))
  }

  // Phases

  insertPhases(runId: string, count: number): void {
    const insert = this.db.query(
      "INSERT INTO phases (run_id, position, state, attempt, failures) VALUES (?, ?, 'pending', 0, 0)",
    )
    for (let position = 0; position < count; position++) insert.run(runId, position)
  }

  phases(runId: string): PhaseRow[] {
    return this.db.query<PhaseRow, [string]>('SELECT * FROM phases WHERE run_id = ? ORDER BY position').all(runId)
  }

  phase(runId: string, position: number): PhaseRow | null {
    return this.db
      .query<PhaseRow, [string, number]>('SELECT * FROM phases WHERE run_id = ? AND position = ?')
      .get(runId, position)
  }

  /** What scheduling needs, without the results. */
  phaseStates(runId: string): Pick<PhaseRow, 'state' | 'reason' | 'attempt' | 'failures' | 'due_at'>[] {
    return this.db
      .query<PhaseRow, [string]>(
        'SELECT state, reason, attempt, failures, due_at FROM phases WHERE run_id = ? ORDER BY position',
      )
      .all(runId)
  }

  /** Opens attempt `attempt`; false when the phase is not where a new attempt may begin. */
  startPhase(runId: string, position: number, attempt: number, at: number): boolean {
    return (
      this.db
        .query(
          `UPDATE phases SET state = 'running', reason = NULL, attempt = ?3, started_at = ?4, due_at = NULL, error = NULL
           WHERE run_id = ?1 AND position = ?2 AND attempt < ?3 AND state IN (${PHASE_FENCE.running})`,
        )
        .run(runId, position, attempt, at).changes === 1
    )
  }

  /** `running` to `awaiting_input`, or back. */
  setPhaseState(runId: string, position: number, attempt: number, state: PhaseState, reason: string | null): boolean {
    return (
      this.db
        .query(
          `UPDATE phases SET state = ?4, reason = ?5
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND state IN (${PHASE_FENCE[state]})`,
        )
        .run(runId, position, attempt, state, reason).changes === 1
    )
  }

  /** Back to `pending` until `due`: the next attempt of a retry. */
  postponePhase(runId: string, position: number, attempt: number, due: number, error: RunError): boolean {
    return (
      this.db
        .query(
          `UPDATE phases SET state = 'pending', reason = 'retry', failures = failures + 1, due_at = ?4, error = ?5
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND state IN (${PHASE_FENCE.pending})`,
        )
        .run(runId, position, attempt, due, JSON.stringify(error)).changes === 1
    )
  }

  endPhase(
    runId: string,
    position: number,
    attempt: number,
    state: PhaseState,
    at: number,
    change: PhaseChange,
  ): boolean {
    return (
      this.db
        .query(
          `UPDATE phases SET state = ?4, reason = ?5, error = ?6, text = ?7, data = ?8, files = ?9,
             completed_at = max(?10, coalesce(started_at, 0)), due_at = NULL
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND state IN (${PHASE_FENCE[state]})`,
        )
        .run(
          runId,
          position,
          attempt,
          state,
          change.reason ?? null,
          json(change.error),
          change.text ?? null,
          json(change.data),
          json(change.files),
          at,
        ).changes === 1
    )
  }

  setPhaseReason(runId: string, position: number, reason: string): void {
    this.db
      .query('UPDATE phases SET reason = ?3 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL')
      .run(runId, position, reason)
  }

  setPhaseError(runId: string, position: number, error: RunError): void {
    this.db
      .query('UPDATE phases SET error = ?3 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL')
      .run(runId, position, JSON.stringify(error))
  }

  /** The record of a file that a phase of this run wrote. */
  fileRecord(runId: string, path: string): FileRecord | null {
    const row = this.db
      .query<{ record: string }, [string, string]>(
        `SELECT file.value AS record FROM phases, json_each(phases.files) AS file
         WHERE phases.run_id = ? AND phases.files IS NOT NULL AND file.value ->> 'path' = ? LIMIT 1`,
      )
      .get(runId, path)
    return row ? JSON.parse(row.record) : null
  }

  // Bundles, facts about this database

  insertBundle(id: string, text: string): void {
    this.db.query('INSERT INTO bundles (id, json) VALUES (?, ?) ON CONFLICT DO NOTHING').run(id, text)
  }

  bundle(id: string): string | null {
    return this.db.query<{ json: string }, [string]>('SELECT json FROM bundles WHERE id = ?').get(id)?.json ?? null
  }

  setFact(key: string, value: string): void {
    this.db
      .query('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
      .run(key, value)
  }

  getFact(key: string): string | null {
    return this.db.query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?').get(key)?.value ?? null
  }

  /** The value of `key`, made once by `create`. */
  fact(key: string, create: () => string): string {
    this.db.query('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING').run(key, create())
    return this.db.query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?').get(key)!.value
  }
}

export function filesOf(row: PhaseRow): FileRecord[] {
  return parse<FileRecord[]>(row.files) ?? []
}
