// Table `turns`: the turns of phases with `repeat`. The last one goes on, or has ended with its phase, unless its row
// says when it ended because the condition did not hold.

import type { Database } from 'bun:sqlite'
import { WHOLE } from './runs.ts'

/** How many turns are kept of a phase. */
const KEPT = 100

export interface TurnRow {
  turn: number
  started_at: number
  completed_at: number | null
}

export class Turns {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  of(runId: string, position: number): TurnRow[] {
    return this.#db
      .query<TurnRow, [string, number]>(
        'SELECT turn, started_at, completed_at FROM turns WHERE run_id = ? AND position = ? ORDER BY turn',
      )
      .all(runId, position)
  }

  last(runId: string, position: number): TurnRow | null {
    return this.#db
      .query<TurnRow, [string, number]>(
        'SELECT turn, started_at, completed_at FROM turns WHERE run_id = ? AND position = ? ORDER BY turn DESC LIMIT 1',
      )
      .get(runId, position)
  }

  begin(runId: string, position: number, turn: number, at: number): void {
    this.#db
      .query('INSERT INTO turns (run_id, position, turn, started_at) VALUES (?, ?, ?, ?)')
      .run(runId, position, turn, at)
    this.#db
      .query('DELETE FROM turns WHERE run_id = ? AND position = ? AND turn <= ?')
      .run(runId, position, turn - KEPT)
  }

  /** Ends a turn whose condition did not hold. */
  end(runId: string, position: number, turn: number, at: number): void {
    this.#db
      .query('UPDATE turns SET completed_at = max(?4, started_at) WHERE run_id = ?1 AND position = ?2 AND turn = ?3')
      .run(runId, position, turn, at)
  }

  /** Forgets the turns of a phase that begins anew. */
  drop(runId: string, position: number): void {
    this.#db.query('DELETE FROM turns WHERE run_id = ? AND position = ?').run(runId, position)
  }

  /** The same for every phase of a run and of the sub-runs of its team phases. */
  dropWhole(runId: string): void {
    this.#db.query<unknown, [string]>(`${WHOLE} DELETE FROM turns WHERE run_id IN (SELECT id FROM whole)`).run(runId)
  }
}
