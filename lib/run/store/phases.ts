// Table `phases`: one row for each phase of each run. What is read of it is in phase-reads.ts. A statement that changes a
// state has a fence in its WHERE, the attempt and the states that it may come from, and returns whether a row was changed.

import type { Database } from 'bun:sqlite'
import type { FileRecord } from '../../agent/agent-context.ts'
import type { Json } from '../../json.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { JsonText, json, PHASE_FENCE, type PhaseState, type RunError } from '../core/core.ts'
import { BatchInsert, type Value } from './batch-insert.ts'
import { type PhaseId, PhaseReads, type Renewal } from './phase-reads.ts'
import { QUEUED_BELOW, WHOLE } from './runs.ts'

/** What is recorded when a phase ends. */
export interface PhaseChange {
  reason?: string | null
  error?: Masked<RunError> | null
  text?: MaskedText | null
  data?: Masked<Json> | JsonText
  files?: readonly FileRecord[]
}

/** A phase that is open again for a new attempt. */
const PENDING = `state = 'pending', reason = NULL, failures = 0, due_at = NULL, started_at = NULL, completed_at = NULL,
  error = NULL, text = NULL, data = NULL, files = NULL, deadline = NULL, time_left = NULL`
/** Maximum number of rows that one statement inserts. */
const CHUNK = 50

const END_STATES = ['completed', 'failed', 'skipped', 'cancelled'] as const
type EndState = (typeof END_STATES)[number]

/**
 * Most phases start and complete without an error in their row. A statement that leaves `error` as it is costs half as
 * much, because a trigger of the database looks at each change of it.
 */
const CLEAN = ' AND error IS NULL'

export class Phases extends PhaseReads {
  readonly #db: Database
  readonly #insert: BatchInsert
  readonly #start
  readonly #startClean
  readonly #end
  readonly #completeClean

  constructor(db: Database) {
    super(db)
    this.#db = db
    const into = 'phases (run_id, position, state, attempt, failures)'
    this.#insert = new BatchInsert(db, into, "(?, ?, 'pending', 0, 0)")
    const start = (error: string, fence: string) =>
      db.query<unknown, Value[]>(
        `UPDATE phases SET state = 'running', reason = NULL, attempt = ?3, started_at = ?4, due_at = NULL,
           deadline = ?5, time_left = NULL${error}
         WHERE run_id = ?1 AND position = ?2 AND attempt < ?3 AND ${PHASE_FENCE.running}${fence}`,
      )
    const end = (state: EndState, error: string, fence: string) =>
      db.query<unknown, Value[]>(
        `UPDATE phases SET state = '${state}', reason = ?4, text = ?5, data = ?6, files = ?7,
           completed_at = max(?8, coalesce(started_at, 0)), due_at = NULL, deadline = NULL, time_left = NULL${error}
         WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND ${PHASE_FENCE[state]}${fence}`,
      )
    this.#start = start(', error = NULL', '')
    this.#startClean = start('', CLEAN)
    this.#end = Object.fromEntries(END_STATES.map(state => [state, end(state, ', error = ?9', '')]))
    this.#completeClean = end('completed', '', CLEAN)
  }

  /** Inserts the phases of runs that have `count` phases each. */
  insert(runIds: readonly string[], count: number): void {
    const values: Value[] = []
    for (const runId of runIds) {
      for (let position = 0; position < count; position++) {
        values.push(runId, position)
        if (values.length === 2 * CHUNK) this.#insert.run(CHUNK, values.splice(0))
      }
    }
    if (values.length > 0) this.#insert.run(values.length / 2, values)
  }

  /** Opens attempt `attempt`. False when the state of the phase does not allow a new attempt. */
  start(runId: string, position: number, attempt: number, at: number, deadline: number | null): boolean {
    const values = [runId, position, attempt, at, deadline]
    return this.#startClean.run(...values).changes === 1 || this.#start.run(...values).changes === 1
  }

  setState(runId: string, position: number, attempt: number, state: PhaseState, reason: string | null): boolean {
    return (
      this.#db
        .query(
          `UPDATE phases SET state = ?4, reason = ?5
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND ${PHASE_FENCE[state]}`,
        )
        .run(runId, position, attempt, state, reason).changes === 1
    )
  }

  /** Records the files of a gate that asks a person. */
  keepFiles(runId: string, position: number, files: readonly FileRecord[]): void {
    this.#db
      .query('UPDATE phases SET files = ?3 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL')
      .run(runId, position, json(files))
  }

  /** Stores the result that a phase keeps if the person that it waits for lets it fail. */
  keepResult(runId: string, position: number, error: Masked<RunError>, change: PhaseChange): void {
    this.#db
      .query(
        `UPDATE phases SET error = ?3, text = ?4, data = ?5, files = ?6
         WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL`,
      )
      .run(runId, position, JSON.stringify(error), change.text ?? null, dataText(change.data), json(change.files))
  }

  /**
   * Sets a phase back to `pending` for another attempt at `due`: a retry, also because a person asked (`failures` 0), or
   * its next turn (`repeat`).
   */
  postpone(
    runId: string,
    position: number,
    attempt: number,
    due: number,
    reason: 'retry' | 'repeat',
    failures: number,
    error: Masked<RunError> | null,
  ): boolean {
    return (
      this.#db
        .query(
          `UPDATE phases SET state = 'pending', reason = ?7, failures = ?5, due_at = ?4, error = ?6,
             text = NULL, data = NULL, files = NULL, deadline = NULL, time_left = NULL
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?3 AND ${PHASE_FENCE.pending}`,
        )
        .run(runId, position, attempt, due, failures, json(error), reason).changes === 1
    )
  }

  end(runId: string, position: number, attempt: number, state: EndState, at: number, change: PhaseChange): boolean {
    const { reason = null, error = null, text = null, data, files } = change
    const values = [runId, position, attempt, reason, text, dataText(data), json(files), at]
    if (state === 'completed' && error === null && this.#completeClean.run(...values).changes === 1) return true
    const isEnded = this.#end[state]!.run(...values, json(error)).changes === 1
    if (isEnded && state === 'failed') {
      this.#db.query('UPDATE runs SET has_failed = 1 WHERE id = ? AND has_failed IS NULL').run(runId)
    }
    return isEnded
  }

  setReason(runId: string, position: number, reason: string): void {
    this.#db
      .query('UPDATE phases SET reason = ?3 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL')
      .run(runId, position, reason)
  }

  setError(runId: string, position: number, error: Masked<RunError>): void {
    this.#db
      .query('UPDATE phases SET error = ?3 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL')
      .run(runId, position, JSON.stringify(error))
  }

  setClock(runId: string, position: number, deadline: number | null, left: number | null): void {
    this.#db
      .query(
        'UPDATE phases SET deadline = ?3, time_left = ?4 WHERE run_id = ?1 AND position = ?2 AND completed_at IS NULL',
      )
      .run(runId, position, deadline, left)
  }

  /** Records that all items of a map are stored. */
  setTotal(runId: string, position: number, total: number): void {
    this.#db
      .query('UPDATE phases SET total = ?3, renewal = NULL WHERE run_id = ?1 AND position = ?2')
      .run(runId, position, total)
  }

  // New attempts: only these take a phase out of a terminal state

  /**
   * Opens a phase again, however it ended. A map keeps its items. One that was to evaluate them again, and did not come to
   * it, does it now as `renewal` says.
   */
  open(runId: string, position: number, renewal: Renewal): void {
    this.#db
      .query(
        `UPDATE phases SET ${PENDING}, renewal = iif(renewal IS NULL, NULL, ?3) WHERE run_id = ?1 AND position = ?2`,
      )
      .run(runId, position, renewal)
  }

  /** The same, but a map evaluates its items again. If it was to repeat all of them and did not come to it, it does now. */
  openAnew(runId: string, position: number, renewal: Renewal | null): void {
    this.#db
      .query(
        `UPDATE phases SET ${PENDING}, total = NULL, renewal = iif(total IS NULL AND renewal IS NULL, NULL, ?3)
         WHERE run_id = ?1 AND position = ?2`,
      )
      .run(runId, position, renewal)
  }

  /** Opens every phase of a run and of the sub-runs of its team phases. */
  openWhole(runId: string): PhaseId[] {
    return this.#db
      .query<PhaseId, [string]>(
        `${WHOLE} UPDATE phases SET ${PENDING}, total = NULL, renewal = NULL WHERE run_id IN (SELECT id FROM whole)
         RETURNING run_id, position`,
      )
      .all(runId)
  }

  /** Cancels the phases of the runs that `Runs.cancelQueued` ends; must be called before it. */
  cancelQueued(rootId: string, treeKey: string, at: number): PhaseId[] {
    return this.#db
      .query<PhaseId, [string, string, number]>(
        `UPDATE phases SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)),
           due_at = NULL, deadline = NULL, time_left = NULL
         WHERE completed_at IS NULL AND run_id IN (SELECT id FROM runs WHERE ${QUEUED_BELOW}) RETURNING run_id, position`,
      )
      .all(rootId, treeKey, at)
  }

  /** Cancels the open phases of a run that has not started. */
  cancelOf(runId: string, reason: string, at: number): PhaseId[] {
    return this.#db
      .query<PhaseId, [string, string, number]>(
        `UPDATE phases SET state = 'cancelled', reason = ?2, completed_at = max(?3, coalesce(started_at, 0)), due_at = NULL
         WHERE run_id = ?1 AND completed_at IS NULL RETURNING run_id, position`,
      )
      .all(runId, reason, at)
  }

  /** Cancels the phases of the runs that `Runs.abandon` ends; must be called before it. */
  abandon(rootId: string, at: number): PhaseId[] {
    return this.#db
      .query<PhaseId, [string, number]>(
        `UPDATE phases SET state = 'cancelled', reason = 'internal', completed_at = max(?2, coalesce(started_at, 0)),
           due_at = NULL, deadline = NULL, time_left = NULL, text = NULL, data = NULL, files = NULL
         WHERE completed_at IS NULL AND run_id IN (SELECT id FROM runs WHERE root_id = ?1 AND completed_at IS NULL)
         RETURNING run_id, position`,
      )
      .all(rootId, at)
  }
}

function dataText(data: PhaseChange['data']): string | null {
  return data instanceof JsonText ? data.text : json(data)
}
