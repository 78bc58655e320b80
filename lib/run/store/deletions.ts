// Table `deletions`: top runs whose deletion has begun. A row goes with its run.

import type { Database } from 'bun:sqlite'

export class Deletions {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Does nothing for one that has begun. */
  begin(runId: string): void {
    this.#db.query('INSERT INTO deletions (run_id) VALUES (?) ON CONFLICT DO NOTHING').run(runId)
  }

  isBegun(runId: string): boolean {
    return this.#db.query('SELECT 1 FROM deletions WHERE run_id = ?').get(runId) !== null
  }

  begun(): string[] {
    const all = this.#db.query<{ run_id: string }, []>('SELECT run_id FROM deletions').all()
    return all.map(({ run_id }) => run_id)
  }
}
