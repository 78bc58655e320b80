// Table `hook_secrets`: what the senders of hooks and this home share. The values are sealed, and shown nowhere.

import type { Database } from 'bun:sqlite'
import { mustBeChangeable, type SecretChange } from '../../firing/hook-secrets.ts'
import type { Seal } from '../../run/engine.ts'
import type { KnownSecret } from '../../secrets/redact.ts'

interface SecretRow {
  id: string
  trigger_id: string
  sealed: Uint8Array
  created_at: number
  expires_at: number | null
}

/** A secret without its value. */
export type SecretRecord = Pick<SecretRow, 'id' | 'created_at' | 'expires_at'>

/** The secrets of a hook, the oldest first, also those that fit no more. */
export function secretRecords(db: Database, triggerId: string): SecretRecord[] {
  return db
    .query<SecretRecord, [string]>(
      'SELECT id, created_at, expires_at FROM hook_secrets WHERE trigger_id = ? ORDER BY created_at, id',
    )
    .all(triggerId)
}

export class HookSecrets {
  readonly #db: Database
  readonly #seal: Seal
  readonly #learn: () => void
  readonly #opened = new Map<string, string>()

  /** `learn` is called when there are others to mask. */
  constructor(db: Database, seal: Seal, learn: () => void) {
    this.#db = db
    this.#seal = seal
    this.#learn = learn
  }

  /**
   * One more fits, or one does no longer, or both. Called in the transaction that changes the hook. Throws `not_found`, and
   * `conflict` when none or more than two would fit.
   */
  change(triggerId: string, { add, expire }: SecretChange, now: number) {
    mustBeChangeable(this.#fitting(triggerId), { add, expire })
    // Nobody needs to see for ever which fit no more.
    if (add !== undefined) {
      this.#db.query('DELETE FROM hook_secrets WHERE trigger_id = ? AND expires_at IS NOT NULL').run(triggerId)
      const id = Bun.randomUUIDv7()
      this.#db
        .query('INSERT INTO hook_secrets (id, trigger_id, sealed, created_at) VALUES (?, ?, ?, ?)')
        .run(id, triggerId, this.#seal.close(labelOf(id), add), now)
    }
    if (expire !== undefined) {
      this.#db.query('UPDATE hook_secrets SET expires_at = ? WHERE id = ?').run(now, expire)
    }
    queueMicrotask(this.#learn)
  }

  /** The values that fit; null when none of them can be opened, because the key of the home is another one. */
  values(triggerId: string): string[] | null {
    const values = this.#fitting(triggerId).flatMap(row => this.#open(row) ?? [])
    return values.length === 0 ? null : values
  }

  /** All of them, for the masker. */
  known(): KnownSecret[] {
    const rows = this.#db.query<SecretRow, []>('SELECT * FROM hook_secrets').all()
    return rows.flatMap(row => {
      const value = this.#open(row)
      return value === null ? [] : [{ name: 'the secret of a hook', value }]
    })
  }

  #fitting(triggerId: string): SecretRow[] {
    return this.#db
      .query<SecretRow, [string]>('SELECT * FROM hook_secrets WHERE trigger_id = ? AND expires_at IS NULL')
      .all(triggerId)
  }

  #open({ id, sealed }: SecretRow): string | null {
    const known = this.#opened.get(id)
    if (known !== undefined) return known
    try {
      const value = this.#seal.open(labelOf(id), sealed).toString()
      this.#opened.set(id, value)
      return value
    } catch {
      return null
    }
  }
}

const labelOf = (id: string): string => `hook_secret:${id}`
