// Table `looks`: questions to other systems about entries that were in doubt. It is empty unless the reply to a write
// was lost, and a row is deleted with its receipt.

import type { Database } from 'bun:sqlite'
import type { EntryId } from './receipts.ts'

export interface LookRow {
  run_id: string
  position: number
  entry: string
  /** Encrypted, because an entry may hold a secret. */
  call: Uint8Array
  settles: number
  /** How often the other system was asked since the end of the run; after 5 times only a person asks again. */
  looked: number
  /** 1 once a look one settling time after the end of the run has shown the write. */
  confirmed: number
  failures: number
  boot: string | null
  since: number | null
}

const ENTRY = 'run_id = ?1 AND position = ?2 AND entry = ?3'

export class Looks {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  get any(): boolean {
    return this.#db.query('SELECT 1 FROM looks LIMIT 1').get() !== null
  }

  /** Whether the other system can be asked about a write. */
  has({ runId, position, entry }: EntryId): boolean {
    return this.#db.query(`SELECT 1 FROM looks WHERE ${ENTRY}`).get(runId, position, entry) !== null
  }

  /** Whether a write is still to be confirmed. */
  isOpen({ runId, position, entry }: EntryId): boolean {
    return this.#db.query(`SELECT 1 FROM looks WHERE ${ENTRY} AND confirmed = 0`).get(runId, position, entry) !== null
  }

  put({ runId, position, entry }: EntryId, call: Uint8Array, settles: number): void {
    this.#db
      .query(
        `INSERT INTO looks (run_id, position, entry, call, settles)
         SELECT run_id, position, entry, ?4, ?5 FROM receipts WHERE ${ENTRY}
         ON CONFLICT DO UPDATE SET call = ?4, settles = ?5, looked = 0, failures = 0, confirmed = 0`,
      )
      .run(runId, position, entry, call, settles)
  }

  /** The questions that the engine asks without a person: of ended runs, about entries that may have been sent twice. */
  open(): LookRow[] {
    return this.#db
      .query<LookRow, []>(
        `SELECT looks.* FROM looks JOIN receipts USING (run_id, position, entry) JOIN runs ON runs.id = run_id
         WHERE looked < 5 AND presumed_at IS NOT NULL AND receipts.state IN ('done', 'presumed') AND runs.completed_at IS NOT NULL`,
      )
      .all()
  }

  /** The questions of a run and of the runs below it. */
  below(rootId: string, treeKey: string): LookRow[] {
    return this.#db
      .query<LookRow, [string, string]>(
        `SELECT looks.* FROM looks JOIN runs ON runs.id = looks.run_id
         WHERE runs.root_id = ?1 AND runs.tree_key >= ?2 AND runs.tree_key < ?2 || '~'`,
      )
      .all(rootId, treeKey)
  }

  set(
    { runId, position, entry }: EntryId,
    next: { looked: number; failures: number; confirmed: number; boot: string; since: number },
  ): void {
    this.#db
      .query(`UPDATE looks SET looked = ?4, failures = ?5, confirmed = ?6, boot = ?7, since = ?8 WHERE ${ENTRY}`)
      .run(runId, position, entry, next.looked, next.failures, next.confirmed, next.boot, next.since)
  }

  /** A look by a person has shown the write. */
  setConfirmed({ runId, position, entry }: EntryId): void {
    this.#db.query(`UPDATE looks SET confirmed = 1 WHERE ${ENTRY}`).run(runId, position, entry)
  }

  drop({ runId, position, entry }: EntryId): void {
    this.#db.query(`DELETE FROM looks WHERE ${ENTRY}`).run(runId, position, entry)
  }
}
