// Table `deliveries`: the messages of the listeners of runs, numbered in the order of the events.

import type { Database } from 'bun:sqlite'
import type { MaskedText } from '../../secrets/masked.ts'
import type { DeliveryRow } from '../core/core.ts'

/** Messages that were not delivered, or may not have been. */
export interface LostDeliveries {
  listener: string
  team: string
  count: number
  /** The newest run that one of them was about, and why that one was lost. */
  run_id: string
  error: string
}

/** Of runs that began longer before, nothing lost is found: their ids are not read. */
const LONGEST_RUN_MS = 30 * 86_400_000

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

  /** What was lost of runs that have ended since then, or go on. */
  lost(since: number): LostDeliveries[] {
    const from = Math.max(0, since - LONGEST_RUN_MS)
      .toString(16)
      .padStart(12, '0')
    return this.#db
      .query<LostDeliveries, [string, number]>(
        `SELECT listener, team, count(*) AS count, max(run_id) AS run_id, deliveries.error AS error
         FROM deliveries JOIN runs ON runs.id = run_id
         WHERE run_id >= ? AND deliveries.state IN ('failed', 'unknown') AND coalesce(completed_at, created_at) > ?
         GROUP BY listener, team ORDER BY listener, team`,
      )
      .all(`${from.slice(0, 8)}-${from.slice(8)}`, since)
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
