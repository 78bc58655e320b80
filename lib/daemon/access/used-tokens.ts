// Remembers which dispatch tokens that count once have been used, also over a restart.

import type { Database } from 'bun:sqlite'

export class UsedTokens {
  readonly #db: Database

  /** `db`: the daemon's database. */
  constructor(db: Database) {
    this.#db = db
  }

  /**
   * Marks the token as used. `until` (epoch milliseconds) is when it expires. Returns false when it was used before.
   */
  use(jti: string, until: number, now: number): boolean {
    this.#db.query('DELETE FROM used_tokens WHERE until < ?').run(now)
    return (
      this.#db.query('INSERT INTO used_tokens (jti, until) VALUES (?, ?) ON CONFLICT DO NOTHING').run(jti, until)
        .changes === 1
    )
  }
}
