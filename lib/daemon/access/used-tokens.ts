// Remembers which dispatch tokens that count once have been used, also over a restart.

import type { Database } from 'bun:sqlite'

/** A token is forgotten this long after its end: the clock may be ahead of the time, and step back. */
const FORGET_MS = 24 * 3_600_000

export class UsedTokens {
  readonly #db: Database
  readonly #believed: () => number

  /** `db`: the daemon's database. `believed`: the time by which old things are deleted (home/ages.ts). */
  constructor(db: Database, believed: () => number = Date.now) {
    this.#db = db
    this.#believed = believed
  }

  /**
   * Marks the token as used. `until` (epoch milliseconds) is when it expires. Returns false when it was used before.
   */
  use(jti: string, until: number): boolean {
    // Tokens expire by the wall clock. The believed time may be ahead of it for good, after a clock was corrected.
    const now = Math.min(this.#believed(), Date.now())
    this.#db.query('DELETE FROM used_tokens WHERE until < ?').run(now - FORGET_MS)
    return (
      this.#db.query('INSERT INTO used_tokens (jti, until) VALUES (?, ?) ON CONFLICT DO NOTHING').run(jti, until)
        .changes === 1
    )
  }
}
