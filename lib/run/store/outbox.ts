// Table `outbox`: changes of synced runs that the hub has not acknowledged, numbered in the order of commits, without
// gaps.

import type { Database } from 'bun:sqlite'

export interface OutboxRow {
  seq: number
  run_id: string
  attempt: number
  kind: string
  /** The change as JSON. */
  body: string
}

export class OutboxRows {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Returns the number of the change. */
  insert(runId: string, attempt: number, kind: string, body: string): number {
    const { lastInsertRowid } = this.#db
      .query('INSERT INTO outbox (run_id, attempt, kind, body) VALUES (?, ?, ?, ?)')
      .run(runId, attempt, kind, body)
    return Number(lastInsertRowid)
  }

  /** The oldest change after number `after`. Read one at a time, because a body may have a megabyte. */
  next(after: number): OutboxRow | null {
    return this.#db
      .query<OutboxRow, [number]>(
        'SELECT seq, run_id, attempt, kind, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT 1',
      )
      .get(after)
  }

  dropUpTo(seq: number): void {
    this.#db.query('DELETE FROM outbox WHERE seq <= ?').run(seq)
  }

  /** Empties the outbox and starts numbering from 1 again. */
  clear(): void {
    this.#db.query('DELETE FROM outbox').run()
    this.#db.query("DELETE FROM sqlite_sequence WHERE name = 'outbox'").run()
  }

  count(): number {
    return this.#db.query<{ count: number }, []>('SELECT count(*) AS count FROM outbox').get()!.count
  }
}
