// Table `receipts`: outside writes. A receipt is `sent` before the first byte leaves, `done` once the write is
// confirmed, and `unknown` when nobody can tell whether it happened. What is `done` stays `done`.

import type { Database } from 'bun:sqlite'
import type { AgentResult } from '../../agent/agent-context.ts'
import { json, type ReceiptRow } from '../core/core.ts'

export class Receipts {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  of(runId: string, position: number): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string, number]>('SELECT * FROM receipts WHERE run_id = ? AND position = ? ORDER BY entry')
      .all(runId, position)
  }

  /** The receipts of a run, without those of the runs below it. */
  ofRun(runId: string): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string]>('SELECT * FROM receipts WHERE run_id = ? ORDER BY position, entry')
      .all(runId)
  }

  /** The receipts of a run and of all runs below it. */
  below(rootId: string, treeKey: string): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string, string]>(
        `SELECT receipts.* FROM receipts JOIN runs ON runs.id = receipts.run_id
         WHERE runs.root_id = ?1 AND runs.tree_key >= ?2 AND runs.tree_key < ?2 || '~'
         ORDER BY runs.tree_key, receipts.position, receipts.entry`,
      )
      .all(rootId, treeKey)
  }

  /** Called before the first byte leaves. False when there is a receipt, or the attempt is no longer the live one. */
  insert(runId: string, position: number, entry: string, attempt: number, at: number): boolean {
    return (
      this.#db
        .query(
          `INSERT INTO receipts (run_id, position, entry, state, attempt, sent_at)
           SELECT ?1, ?2, ?3, 'sent', ?4, ?5 FROM phases
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?4 AND state = 'running'
           ON CONFLICT DO NOTHING`,
        )
        .run(runId, position, entry, attempt, at).changes === 1
    )
  }

  confirm(
    runId: string,
    position: number,
    entry: string,
    done: { result: AgentResult; id: string | null; url: string | null; at: number },
  ): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'done', result = ?4, external_id = ?5, external_url = ?6, done_at = ?7
         WHERE run_id = ?1 AND position = ?2 AND entry = ?3 AND state <> 'done'`,
      )
      .run(runId, position, entry, json(done.result), done.id, done.url, done.at)
  }

  /** Marks what attempt `sentBy` sent as `unknown`. The receipt of a later attempt is left alone. */
  doubt(runId: string, position: number, entry: string, sentBy: number): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'unknown'
         WHERE run_id = ? AND position = ? AND entry = ? AND attempt = ? AND state = 'sent'`,
      )
      .run(runId, position, entry, sentBy)
  }

  /** Removes the receipt of attempt `sentBy`, whose write did not happen; null removes that of any attempt. */
  clear(runId: string, position: number, entry: string, sentBy: number | null): void {
    this.#db
      .query(
        `DELETE FROM receipts WHERE run_id = ?1 AND position = ?2 AND entry = ?3 AND state <> 'done'
           AND (?4 IS NULL OR attempt = ?4)`,
      )
      .run(runId, position, entry, sentBy)
  }

  /** Marks as `unknown` what an earlier process may have sent before it ended. */
  doubtAll(): Pick<ReceiptRow, 'run_id' | 'position' | 'entry'>[] {
    return this.#db
      .query<ReceiptRow, []>(
        "UPDATE receipts SET state = 'unknown' WHERE state = 'sent' AND state <> 'done' RETURNING run_id, position, entry",
      )
      .all()
  }
}
