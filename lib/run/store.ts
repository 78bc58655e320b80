// The statements of the run database: one operation, one statement. Those that change a state carry their fence in the
// WHERE and say whether a row was hit; they are only called inside a journal change.

import type { Database } from 'bun:sqlite'
import type { FileRecord } from '../agent/define.ts'
import type { Json } from '../json.ts'
import type { DeliveryRow } from './listeners.ts'
import { type PhaseRow, parse, type RunError, type RunRow } from './records.ts'
import { PHASE_FENCE, type PhaseState, RUN_FENCE, type RunState } from './transitions.ts'

export interface PhaseChange {
  reason?: string | null
  error?: RunError | null
  text?: string | null
  data?: Json
  files?: readonly FileRecord[]
}

export interface ItemRow {
  item: number
  key: string
  value: string
}

/** What a phase needs of its sub-runs. */
export type ChildRow = Pick<
  RunRow,
  'id' | 'item' | 'run_name' | 'state' | 'outputs' | 'bundle_id' | 'team_key' | 'workspace'
>

export interface ReceiptRow {
  run_id: string
  position: number
  entry: string
  state: 'sent' | 'done' | 'unknown'
  attempt: number
  result: string | null
  external_id: string | null
  external_url: string | null
  sent_at: number
  done_at: number | null
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

const json = (value: unknown): string | null => (value === undefined || value === null ? null : JSON.stringify(value))

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

  /** How the sub-runs of a phase stand: `[state, count]`. */
  childStates(runId: string, position: number): { state: RunState; count: number }[] {
    return this.db
      .query<{ state: RunState; count: number }, [string, number]>(
        'SELECT state, count(*) AS count FROM runs WHERE parent_id = ? AND parent_position = ? GROUP BY state',
      )
      .all(runId, position)
  }

  children(runId: string, position: number): ChildRow[] {
    return this.db
      .query<ChildRow, [string, number]>(
        `SELECT id, item, run_name, state, outputs, bundle_id, team_key, workspace FROM runs
         WHERE parent_id = ? AND parent_position = ? ORDER BY item`,
      )
      .all(runId, position)
  }

  /** The last item that has a sub-run, or -1. */
  lastItem(runId: string, position: number): number {
    return this.db
      .query<{ item: number }, [string, number]>(
        'SELECT coalesce(max(item), -1) AS item FROM runs WHERE parent_id = ? AND parent_position = ?',
      )
      .get(runId, position)!.item
  }

  /** Opens the sub-runs that did not complete for a new attempt of the phase above. */
  requeueChildren(runId: string, position: number): void {
    this.db
      .query(
        `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
           completed_at = NULL, ending = NULL
         WHERE parent_id = ? AND parent_position = ? AND state IN ('failed', 'cancelled')`,
      )
      .run(runId, position)
  }

  queuedChild(runId: string, position: number): RunRow | null {
    return this.db
      .query<RunRow, [string, number]>(
        "SELECT * FROM runs WHERE parent_id = ? AND parent_position = ? AND state = 'queued' ORDER BY item LIMIT 1",
      )
      .get(runId, position)
  }

  /** Ends the runs below a phase that wait for an attempt which does not come any more, and what was open in them. */
  cancelQueued(rootId: string, treeKey: string, position: number, at: number): void {
    const prefix = treeKey + position.toString(36).padStart(3, '0')
    const below =
      "root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND state = 'queued' AND completed_at IS NULL"
    this.db
      .query(
        `UPDATE phases SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)), due_at = NULL
         WHERE completed_at IS NULL AND run_id IN (SELECT id FROM runs WHERE ${below})`,
      )
      .run(rootId, prefix, at)
    this.db
      .query(
        `UPDATE runs SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)) WHERE ${below}`,
      )
      .run(rootId, prefix, at)
  }

  /** Begins the new attempt of a run: what completed stays, the rest is open again. Gives the positions that are. */
  reopenRun(id: string, at: number, deadline: number | null): number[] {
    this.db
      .query(
        `UPDATE runs SET state = 'running', started_at = max(?2, coalesce(started_at, 0)), deadline = ?3, time_left = NULL
         WHERE id = ?1 AND state = 'queued'`,
      )
      .run(id, at, deadline)
    return this.db
      .query<{ position: number }, [string]>(
        `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
           error = NULL, text = NULL, data = NULL, files = NULL
         WHERE run_id = ? AND (state IN ('failed', 'cancelled') OR (state = 'skipped' AND reason = 'upstream'))
         RETURNING position`,
      )
      .all(id)
      .map(row => row.position)
  }

  /** Opens an ended run for its new attempt. */
  requeueRun(id: string): void {
    this.db
      .query(
        `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
           completed_at = NULL, ending = NULL
         WHERE id = ? AND completed_at IS NOT NULL`,
      )
      .run(id)
  }

  /** Opens a phase again, whatever it came to. */
  openPhase(runId: string, position: number): void {
    this.db
      .query(
        `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
           error = NULL, text = NULL, data = NULL, files = NULL
         WHERE run_id = ? AND position = ?`,
      )
      .run(runId, position)
  }

  /** Opens every run and phase below a phase again: its next attempt repeats them all. */
  openSubtree(rootId: string, treeKey: string, position: number): void {
    const prefix = treeKey + position.toString(36).padStart(3, '0')
    this.db
      .query(
        `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
           error = NULL, text = NULL, data = NULL, files = NULL
         WHERE run_id IN (SELECT id FROM runs WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~')`,
      )
      .run(rootId, prefix)
    this.db
      .query(
        `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
           completed_at = NULL, ending = NULL
         WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND completed_at IS NOT NULL`,
      )
      .run(rootId, prefix)
  }

  /** The sub-run that made a phase end, or wait, as it does. */
  decidingChild(runId: string, position: number): RunRow | null {
    return this.db
      .query<RunRow, [string, number]>(
        `SELECT runs.* FROM runs JOIN phases ON phases.run_id = runs.parent_id AND phases.position = runs.parent_position
         WHERE parent_id = ? AND parent_position = ?
           AND CASE phases.state WHEN 'failed' THEN runs.state IN ('failed', 'cancelled') ELSE runs.state = phases.state END
         ORDER BY item LIMIT 1`,
      )
      .get(runId, position)
  }

  /** Receipts of a run and of all below it. */
  receiptsBelow(rootId: string, treeKey: string): ReceiptRow[] {
    return this.db
      .query<ReceiptRow, [string, string]>(
        `SELECT receipts.* FROM receipts JOIN runs ON runs.id = receipts.run_id
         WHERE runs.root_id = ?1 AND runs.tree_key >= ?2 AND runs.tree_key < ?2 || '~'
         ORDER BY runs.tree_key, receipts.position, receipts.entry`,
      )
      .all(rootId, treeKey)
  }

  child(runId: string, position: number, item: number): RunRow | null {
    return this.db
      .query<RunRow, [string, number, number]>(
        'SELECT * FROM runs WHERE parent_id = ? AND parent_position = ? AND item = ?',
      )
      .get(runId, position, item)
  }

  firstFailedChild(runId: string, position: number): Pick<RunRow, 'run_name' | 'state' | 'error'> | null {
    return this.db
      .query<RunRow, [string, number]>(
        `SELECT run_name, state, error FROM runs
         WHERE parent_id = ? AND parent_position = ? AND state IN ('failed', 'cancelled') ORDER BY item LIMIT 1`,
      )
      .get(runId, position)
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

  // Items of a map

  insertItems(runId: string, position: number, items: Iterable<{ key: string; value: Json }>): void {
    const insert = this.db.query('INSERT INTO items (run_id, position, item, key, value) VALUES (?, ?, ?, ?, ?)')
    let index = 0
    for (const { key, value } of items) insert.run(runId, position, index++, key, JSON.stringify(value))
  }

  itemCount(runId: string, position: number): number {
    return this.db
      .query<{ count: number }, [string, number]>(
        'SELECT count(*) AS count FROM items WHERE run_id = ? AND position = ?',
      )
      .get(runId, position)!.count
  }

  /** The first item at or after `from`. */
  item(runId: string, position: number, from: number): ItemRow | null {
    return this.db
      .query<ItemRow, [string, number, number]>(
        'SELECT item, key, value FROM items WHERE run_id = ? AND position = ? AND item >= ? ORDER BY item LIMIT 1',
      )
      .get(runId, position, from)
  }

  itemKeys(runId: string, position: number): { item: number; key: string }[] {
    return this.db
      .query<{ item: number; key: string }, [string, number]>(
        'SELECT item, key FROM items WHERE run_id = ? AND position = ? ORDER BY item',
      )
      .all(runId, position)
  }

  // Receipts

  receipts(runId: string, position: number): ReceiptRow[] {
    return this.db
      .query<ReceiptRow, [string, number]>('SELECT * FROM receipts WHERE run_id = ? AND position = ? ORDER BY entry')
      .all(runId, position)
  }

  /** Before the first byte leaves. False when a receipt stands, or the attempt is not the live one any more. */
  insertReceipt(runId: string, position: number, entry: string, attempt: number, at: number): boolean {
    return (
      this.db
        .query(
          `INSERT INTO receipts (run_id, position, entry, state, attempt, sent_at)
           SELECT ?1, ?2, ?3, 'sent', ?4, ?5 FROM phases
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?4 AND state = 'running'
           ON CONFLICT DO NOTHING`,
        )
        .run(runId, position, entry, attempt, at).changes === 1
    )
  }

  confirmReceipt(
    runId: string,
    position: number,
    entry: string,
    done: { result: Json; id: string | null; url: string | null; at: number },
  ): void {
    this.db
      .query(
        `UPDATE receipts SET state = 'done', result = ?4, external_id = ?5, external_url = ?6, done_at = ?7
         WHERE run_id = ?1 AND position = ?2 AND entry = ?3 AND state <> 'done'`,
      )
      .run(runId, position, entry, json(done.result), done.id, done.url, done.at)
  }

  doubtReceipt(runId: string, position: number, entry: string): void {
    this.db
      .query("UPDATE receipts SET state = 'unknown' WHERE run_id = ? AND position = ? AND entry = ? AND state = 'sent'")
      .run(runId, position, entry)
  }

  clearReceipt(runId: string, position: number, entry: string): void {
    this.db
      .query("DELETE FROM receipts WHERE run_id = ? AND position = ? AND entry = ? AND state <> 'done'")
      .run(runId, position, entry)
  }

  /** What this process may have sent before it died. */
  doubtAllSent(): number {
    return this.db.query("UPDATE receipts SET state = 'unknown' WHERE state = 'sent'").run().changes
  }

  // Deliveries of listeners

  insertDelivery(row: DeliveryRow): void {
    this.db
      .query(
        `INSERT INTO deliveries (run_id, number, listener, event, payload, state, error)
         VALUES ($run_id, $number, $listener, $event, $payload, $state, $error)`,
      )
      .run(row as unknown as Record<string, string | number | null>)
  }

  deliveries(runId: string): DeliveryRow[] {
    return this.db.query<DeliveryRow, [string]>('SELECT * FROM deliveries WHERE run_id = ? ORDER BY number').all(runId)
  }

  pendingDeliveries(runId: string): DeliveryRow[] {
    return this.db
      .query<DeliveryRow, [string]>("SELECT * FROM deliveries WHERE run_id = ? AND state = 'pending' ORDER BY number")
      .all(runId)
  }

  runsWithDeliveries(): string[] {
    return this.db
      .query<{ run_id: string }, []>("SELECT DISTINCT run_id FROM deliveries WHERE state IN ('pending', 'sent')")
      .all()
      .map(row => row.run_id)
  }

  setDelivery(runId: string, number: number, state: DeliveryRow['state'], error: string | null): void {
    this.db
      .query('UPDATE deliveries SET state = ?3, error = ?4 WHERE run_id = ?1 AND number = ?2')
      .run(runId, number, state, error)
  }

  /** What this process may have sent before it died. */
  doubtDeliveries(): void {
    this.db
      .query(
        "UPDATE deliveries SET state = 'unknown', error = 'it may have been sent; the daemon ended before it knew' WHERE state = 'sent'",
      )
      .run()
  }

  // Reviews (their statements stand in reviews.ts), as the outbox sends them

  reviews(runId: string, position: number): unknown[] {
    return this.db.query('SELECT * FROM reviews WHERE run_id = ? AND position = ?').all(runId, position)
  }

  // The outbox

  insertOutbox(runId: string, attempt: number, kind: string, body: string): void {
    this.db
      .query('INSERT INTO outbox (run_id, attempt, kind, body) VALUES (?, ?, ?, ?)')
      .run(runId, attempt, kind, body)
  }

  outbox(limit: number): { seq: number; run_id: string; attempt: number; kind: string; body: string }[] {
    return this.db
      .query<{ seq: number; run_id: string; attempt: number; kind: string; body: string }, [number]>(
        'SELECT seq, run_id, attempt, kind, body FROM outbox ORDER BY seq LIMIT ?',
      )
      .all(limit)
  }

  acknowledge(seq: number): void {
    this.db.query('DELETE FROM outbox WHERE seq <= ?').run(seq)
  }

  /** Empties the outbox and numbers from 1 again. */
  clearOutbox(): void {
    this.db.query('DELETE FROM outbox').run()
    this.db.query("DELETE FROM sqlite_sequence WHERE name = 'outbox'").run()
  }

  syncedRuns(): RunRow[] {
    return this.db.query<RunRow, []>('SELECT * FROM runs WHERE synced = 1 ORDER BY root_id, tree_key').all()
  }

  setLogged(runId: string, last: number): void {
    this.db.query('UPDATE runs SET logged = ? WHERE id = ?').run(last, runId)
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
