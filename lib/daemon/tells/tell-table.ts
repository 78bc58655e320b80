// Table `tells`: what accounts are told that is about no run, and what came of it.

import type { Database } from 'bun:sqlite'
import type { MaskedText } from '../../secrets/masked.ts'

export interface Tell {
  id: string
  /** `agent:channel`. */
  account: string
  /** JSON. */
  payload: string
  state: 'pending' | 'sent' | 'delivered' | 'failed' | 'unknown'
  error: string | null
}

type NewTell = Pick<Tell, 'id' | 'account'> & { subject: string; payload: MaskedText }

/** How long an ended one is kept, in lived time. */
const KEPT_MS = 30 * 86_400_000

export class TellTable {
  readonly #db: Database

  /** `db`: the daemon's database. */
  constructor(db: Database) {
    this.#db = db
  }

  /** Does nothing when the id is known. `at`: epoch milliseconds; `lived`: the same in the lived time of the home. */
  insert({ id, account, subject, payload }: NewTell, at: number, lived: number): void {
    this.#db
      .query(
        `INSERT INTO tells (id, account, subject, payload, state, at, lived) VALUES (?, ?, ?, ?, 'pending', ?, ?)
         ON CONFLICT (id) DO NOTHING`,
      )
      .run(id, account, subject, payload, at, lived)
  }

  /** How often an account was told about a subject since then. */
  countSince(subject: string, account: string, since: number): number {
    return this.#db
      .query<{ n: number }, [string, string, number]>(
        'SELECT count(*) AS n FROM tells WHERE subject = ? AND account = ? AND at > ?',
      )
      .get(subject, account, since)!.n
  }

  get(id: string): Tell | null {
    return this.#db.query<Tell, [string]>('SELECT id, account, payload, state, error FROM tells WHERE id = ?').get(id)
  }

  /** The oldest first. */
  pending(): Tell[] {
    return this.#db
      .query<Tell, []>(
        `SELECT id, account, payload, state, error FROM tells INDEXED BY tells_open
         WHERE state IN ('pending', 'sent') AND state = 'pending' ORDER BY at, id`,
      )
      .all()
  }

  set(id: string, state: Tell['state'], error: MaskedText | null): void {
    this.#db.query('UPDATE tells SET state = ?2, error = ?3 WHERE id = ?1').run(id, state, error)
  }

  /** Marks as `unknown` what an earlier process may have sent before it ended. */
  doubtAll(): void {
    this.#db.run(
      `UPDATE tells SET state = 'unknown', error = 'it may have been sent; the daemon ended before it knew'
       WHERE state = 'sent' AND state IN ('pending', 'sent')`,
    )
  }

  forgetOld(lived: number): void {
    this.#db.query("DELETE FROM tells WHERE lived < ? AND state NOT IN ('pending', 'sent')").run(lived - KEPT_MS)
  }

  /**
   * What was not delivered since then, or may not have been: one for each account, the last, and how many. `subject`: only
   * what is about it.
   */
  lost(since: number, subject: string | null): { account: string; count: number; at: number; error: string }[] {
    return this.#db
      .query<{ account: string; count: number; at: number; error: string }, [number, string | null]>(
        `SELECT account, count(*) AS count, max(at) AS at, error FROM tells
         WHERE state IN ('failed', 'unknown') AND at > ?1 AND (?2 IS NULL OR subject = ?2) GROUP BY account ORDER BY account`,
      )
      .all(since, subject)
  }
}
