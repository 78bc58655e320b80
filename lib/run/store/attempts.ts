// Table `attempts`: attempts of phases that were followed by another one. They are copied from `phases` before its row
// is used for the next attempt. People see them; nothing is decided by them.

import type { Database } from 'bun:sqlite'
import type { Masked } from '../../secrets/masked.ts'
import { json, type RunError } from '../core/core.ts'
import { WHOLE } from './runs.ts'

export interface AttemptRow {
  position: number
  attempt: number
  state: 'failed' | 'cancelled' | 'completed' | 'skipped' | 'interrupted'
  error: string | null
  started_at: number
  ended_at: number | null
}

const COLUMNS = 'run_id, position, attempt, state, error, started_at, ended_at'
/** An attempt that has ended, as it stands in its phase. */
const ENDED = `INSERT INTO attempts (${COLUMNS})
  SELECT run_id, position, attempt, state, error, started_at, completed_at FROM phases`
const STARTED = 'attempt > 0 AND started_at IS NOT NULL AND completed_at IS NOT NULL'

export class Attempts {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  of(runId: string): AttemptRow[] {
    return this.#db
      .query<AttemptRow, [string]>(
        'SELECT position, attempt, state, error, started_at, ended_at FROM attempts WHERE run_id = ? ORDER BY position, attempt',
      )
      .all(runId)
  }

  /** Keeps an attempt that failed at `at` and is repeated. */
  keepFailed(runId: string, position: number, attempt: number, at: number, error: Masked<RunError> | null): void {
    this.#db
      .query(
        `INSERT INTO attempts (${COLUMNS})
         SELECT run_id, position, attempt, 'failed', coalesce(?5, error), started_at, max(?4, started_at) FROM phases
         WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND started_at IS NOT NULL
         ON CONFLICT DO NOTHING`,
      )
      .run(runId, position, attempt, at, json(error))
  }

  /** Keeps an attempt whose end nobody recorded, unless it was kept when it ended. */
  keepLost(runId: string, position: number, attempt: number): void {
    this.#db
      .query(
        `INSERT INTO attempts (${COLUMNS})
         SELECT run_id, position, attempt, 'interrupted', NULL, started_at, NULL FROM phases
         WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND started_at IS NOT NULL
         ON CONFLICT DO NOTHING`,
      )
      .run(runId, position, attempt)
  }

  /** Keeps the last attempt of a phase that is opened again. Must be called before `Phases.open`. */
  keepOpened(runId: string, position: number): void {
    this.#db
      .query(`${ENDED} WHERE run_id = ? AND position = ? AND ${STARTED} ON CONFLICT DO NOTHING`)
      .run(runId, position)
  }

  /** Keeps the last attempts of the phases that `Phases.openWhole` opens; must be called before it. */
  keepWhole(runId: string): void {
    this.#db
      .query(`${WHOLE} ${ENDED} WHERE run_id IN (SELECT id FROM whole) AND ${STARTED} ON CONFLICT DO NOTHING`)
      .run(runId)
  }
}
