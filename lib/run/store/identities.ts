// Table `identities`: the name by which a vendor knows an entry. It stays when the receipt of the entry is removed, and
// goes with the run.

import type { Database } from 'bun:sqlite'

export class Identities {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  get(runId: string, position: number, entry: string): string | null {
    return (
      this.#db
        .query<{ value: string }, [string, number, string]>(
          'SELECT value FROM identities WHERE run_id = ? AND position = ? AND entry = ?',
        )
        .get(runId, position, entry)?.value ?? null
    )
  }

  /** Keeps the first value. Does nothing when there is one, or when the run is gone. */
  keep(runId: string, position: number, entry: string, value: string): void {
    this.#db
      .query(
        `INSERT INTO identities (run_id, position, entry, value) SELECT ?1, ?2, ?3, ?4 FROM runs WHERE id = ?1
         ON CONFLICT DO NOTHING`,
      )
      .run(runId, position, entry, value)
  }
}
