// Table `key_places`: the top runs that hold a concurrency key, and those that wait for it, in the order of their
// requests.

import type { Database } from 'bun:sqlite'
import type { WhenFull } from '../../wire/concurrency.ts'

/** A run that holds a key, or waits for it. */
export interface KeyClaim {
  seq: number
  run_id: string
  key: string
  /** How many runs may hold the key at once, as the team of this run says. */
  most: number
  when_full: WhenFull
  holds: 0 | 1
}

export class ConcurrencyKeys {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  insert(runId: string, key: string, most: number, whenFull: WhenFull): void {
    this.#db
      .query('INSERT INTO key_places (run_id, key, most, when_full, holds) VALUES (?, ?, ?, ?, 0)')
      .run(runId, key, most, whenFull)
  }

  get(runId: string): KeyClaim | null {
    return this.#db.query<KeyClaim, [string]>('SELECT * FROM key_places WHERE run_id = ?').get(runId)
  }

  /** The runs that hold a key, or wait for it. */
  of(key: string, holds: 0 | 1): KeyClaim[] {
    return this.#db
      .query<KeyClaim, [string, number]>('SELECT * FROM key_places WHERE key = ? AND holds = ? ORDER BY seq')
      .all(key, holds)
  }

  /** The first run that waits for a key and that `continues` accepts. */
  first(key: string, continues: (runId: string) => boolean): KeyClaim | null {
    const page = this.#db.query<KeyClaim, [string, number]>(
      'SELECT * FROM key_places WHERE key = ? AND holds = 0 AND seq > ? ORDER BY seq LIMIT 50',
    )
    for (let after = -1; ; ) {
      const claims = page.all(key, after)
      if (claims.length === 0) return null
      for (const claim of claims) if (continues(claim.run_id)) return claim
      after = claims.at(-1)!.seq
    }
  }

  /** How many runs wait before this one. */
  ahead({ key, seq }: KeyClaim): number {
    return this.#db
      .query<{ count: number }, [string, number]>(
        'SELECT count(*) AS count FROM key_places WHERE key = ? AND holds = 0 AND seq < ?',
      )
      .get(key, seq)!.count
  }

  holders(key: string): number {
    return this.#db
      .query<{ count: number }, [string]>('SELECT count(*) AS count FROM key_places WHERE key = ? AND holds = 1')
      .get(key)!.count
  }

  hold(runId: string): void {
    this.#db.query('UPDATE key_places SET holds = 1 WHERE run_id = ?').run(runId)
  }

  /** Returns the key that the run held or waited for. */
  drop(runId: string): string | null {
    const dropped = this.#db.query<{ key: string }, [string]>('DELETE FROM key_places WHERE run_id = ? RETURNING key')
    return dropped.get(runId)?.key ?? null
  }

  /** The keys that runs wait for. */
  awaited(): string[] {
    const keys = this.#db.query<{ key: string }, []>('SELECT DISTINCT key FROM key_places WHERE holds = 0')
    return keys.all().map(({ key }) => key)
  }

  /** The run that came last and is to have older runs of its key cancelled. */
  lastCancelling(key: string): KeyClaim | null {
    return this.#db
      .query<KeyClaim, [string]>(
        `SELECT * FROM key_places WHERE key = ? AND holds = 0 AND when_full = 'cancel_oldest' ORDER BY seq DESC LIMIT 1`,
      )
      .get(key)
  }

  /** The runs of a key up to `seq`, in order, without those that were asked to end. */
  upTo({ key, seq }: KeyClaim): string[] {
    return this.#db
      .query<{ run_id: string }, [string, number]>(
        `SELECT run_id FROM key_places JOIN runs ON runs.id = run_id
         WHERE key = ? AND seq <= ? AND runs.ending IS NULL ORDER BY seq`,
      )
      .all(key, seq)
      .map(({ run_id }) => run_id)
  }
}
