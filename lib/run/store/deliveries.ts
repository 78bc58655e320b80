// Table `deliveries`: the messages of the listeners of runs, numbered in the order of the events.

import type { Database } from 'bun:sqlite'
import type { MaskedText } from '../../secrets/masked.ts'
import type { DeliveryRow } from '../core/core.ts'

export class Deliveries {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  insert(row: DeliveryRow & { payload: MaskedText; error: MaskedText | null }): void {
    this.#db
      .query(
        'INSERT INTO deliveries (run_id, number, listener, event, payload, state, error) VALUES (?, ?, ?, ?, ?, ?, ?)',
      )
      .run(row.run_id, row.number, row.listener, row.event, row.payload, row.state, row.error)
  }

  count(runId: string): number {
    return this.#db
      .query<{ count: number }, [string]>('SELECT count(*) AS count FROM deliveries WHERE run_id = ?')
      .get(runId)!.count
  }

  of(runId: string): DeliveryRow[] {
    return this.#db.query<DeliveryRow, [string]>('SELECT * FROM deliveries WHERE run_id = ? ORDER BY number').all(runId)
  }

  pending(runId: string): DeliveryRow[] {
    return this.#db
      .query<DeliveryRow, [string]>("SELECT * FROM deliveries WHERE run_id = ? AND state = 'pending' ORDER BY number")
      .all(runId)
  }

  /** Whether the run has deliveries that wait to be sent. */
  isPending(runId: string): boolean {
    const some = this.#db.query("SELECT 1 FROM deliveries WHERE run_id = ? AND state = 'pending' LIMIT 1")
    return some.get(runId) !== null
  }

  runsWithPending(): string[] {
    return this.#db
      .query<{ run_id: string }, []>("SELECT DISTINCT run_id FROM deliveries WHERE state IN ('pending', 'sent')")
      .all()
      .map(row => row.run_id)
    // The index covers both states. No delivery is `sent` here: `doubtAll` has made them `unknown` before.
  }

  set(runId: string, number: number, state: DeliveryRow['state'], error: MaskedText | null): void {
    this.#db
      .query('UPDATE deliveries SET state = ?3, error = ?4 WHERE run_id = ?1 AND number = ?2')
      .run(runId, number, state, error)
  }

  /** Marks as `unknown` what an earlier process may have sent before it ended, and returns whose that is. */
  doubtAll(): { run_id: string }[] {
    return this.#db
      .query<{ run_id: string }, []>(
        `UPDATE deliveries SET state = 'unknown', error = 'it may have been sent; the daemon ended before it knew'
         WHERE state = 'sent' AND state IN ('pending', 'sent') RETURNING run_id`,
      )
      .all()
  }
}
