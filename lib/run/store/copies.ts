// Tables `copied_trees` and `copied_doubts`: what had not ended when this home was found to be a copy of another one.
// These trees are held until a person resumes them, and each of their outside writes is in doubt once.

import type { Database } from 'bun:sqlite'

/** Names of facts about the starts of the home, and about the daemon that it is at its hub. */
export const HOME_FACTS = {
  /** How often it was started, over all of its copies and moves. */
  starts: 'starts',
  /** The id of this start. */
  start: 'start',
  /** What the hub said when it refused this daemon, because a later start of its home has called. */
  movedAway: 'moved_away',
  /** The daemon that the home was before it was found to be a copy. */
  former: 'former_daemon',
  /** The daemon that the home was until a person said that it was moved. It is removed at the hub. */
  left: 'left_daemon',
} as const

/** The tree of a run in which each `once` entry is in doubt. */
export interface CopiedTree {
  /** Whether the run was not there yet when the copy was made: its keys are known here only. */
  isNew: boolean
}

const MAY_BE_SENT = 'this home was copied: it may have been sent by the home that it was copied from'

export class Copies {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /**
   * Holds every tree that has not ended, and doubts what listeners and accounts were about to be told. Called in the
   * transaction that records the new folder of the home. In a copy of a copy a tree keeps the moment of the first copy:
   * neither of the other homes knows the ids of runs that started later. A run that is there was not created later,
   * whatever the clock showed then.
   */
  found(at: number): void {
    this.#db
      .query(
        `DELETE FROM copied_doubts WHERE run_id IN (
           SELECT runs.id FROM runs JOIN runs AS top ON top.id = runs.root_id AND top.completed_at IS NULL
         )`,
      )
      .run()
    this.#db
      .query(
        `INSERT INTO copied_trees (root_id, found_at, last_row, held)
         SELECT id, (SELECT max(?1, max(created_at)) FROM runs), (SELECT max(rowid) FROM runs), 1 FROM runs WHERE parent_id IS NULL AND completed_at IS NULL
         ON CONFLICT (root_id) DO UPDATE SET held = 1`,
      )
      .run(at)
    for (const table of ['deliveries', 'tells']) {
      this.#db
        .query(`UPDATE ${table} SET state = 'unknown', error = ? WHERE state IN ('pending', 'sent')`)
        .run(MAY_BE_SENT)
    }
  }

  /**
   * Reports no run to the hub any more that was reported until now: the hub knows them as runs of another daemon. They
   * have the value 2, by which `reportAgain` finds them.
   */
  reportNothing(): void {
    if (this.reportsAny) this.#db.query('UPDATE runs SET synced = 0 WHERE synced = 2').run()
    this.#db.query('UPDATE runs SET synced = 2, log_due = 0 WHERE synced = 1').run()
    for (const table of ['outbox', 'uploads', 'jobs']) this.#db.query(`DELETE FROM ${table}`).run()
  }

  /** Whether a run was reported to the hub since then. */
  get reportsAny(): boolean {
    return this.#db.query('SELECT 1 FROM runs WHERE synced = 1 LIMIT 1').get() !== null
  }

  /** Reports again the runs that the home reported before it was found to be a copy, with the runs below them since. */
  reportAgain(): void {
    this.#db.query('UPDATE runs SET synced = 1 WHERE root_id IN (SELECT root_id FROM runs WHERE synced = 2)').run()
  }

  /** The top runs that wait for a person. */
  held(): string[] {
    const rows = this.#db.query<{ root_id: string }, []>(
      'SELECT copied_trees.root_id AS root_id FROM copied_trees JOIN runs ON runs.id = copied_trees.root_id WHERE held = 1 AND completed_at IS NULL',
    )
    return rows.all().map(({ root_id }) => root_id)
  }

  isHeld(rootId: string): boolean {
    return this.#db.query('SELECT 1 FROM copied_trees WHERE root_id = ? AND held = 1').get(rootId) !== null
  }

  /** A person has said that the tree goes on here. */
  release(rootId: string): void {
    this.#db.query('UPDATE copied_trees SET held = 0 WHERE root_id = ?').run(rootId)
  }

  /** Null for a run whose writes are not in doubt. */
  of(runId: string): CopiedTree | null {
    const row = this.#db
      .query<{ is_new: number }, [string]>(
        `SELECT runs.rowid > last_row OR runs.created_at > found_at AS is_new
         FROM runs JOIN copied_trees USING (root_id) WHERE runs.id = ?`,
      )
      .get(runId)
    return row && { isNew: row.is_new === 1 }
  }

  /** Notes that a write is doubted. Returns whether it was not before. */
  noteDoubt(runId: string, position: number, entry: string): boolean {
    return (
      this.#db
        .query('INSERT INTO copied_doubts (run_id, position, entry) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
        .run(runId, position, entry).changes === 1
    )
  }
}
