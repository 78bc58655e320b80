// What is read of the table `phases`: of one run, of all runs below a run, and what is due.

import type { Database } from 'bun:sqlite'
import type { FileRecord } from '../../agent/agent-context.ts'
import type { MaskedText } from '../../secrets/masked.ts'
import type { PhaseRow, RunRow } from '../core/core.ts'

/** The columns of a result. Their texts were masked when they were recorded. */
type RecordedResult = Pick<PhaseRow, 'files' | 'error'> & { text: MaskedText | null; data: MaskedText | null }

/** The part of a phase that scheduling needs, without its result. */
export type PhaseStates = Pick<
  PhaseRow,
  'state' | 'reason' | 'attempt' | 'failures' | 'due_at' | 'deadline' | 'time_left' | 'total'
>

/**
 * The sub-runs that stay of a map that evaluates its items again: those that completed and whose inputs are the same,
 * with `failed` without what failed in them and was passed over. Null: none of them stays.
 */
export type Renewal = 'completed' | 'failed'

export interface PhaseId {
  run_id: string
  position: number
}

/** A phase for which something is due at `at`. */
export interface Due extends PhaseId {
  at: number
  root_id: string
}

/**
 * What `toleratedBelow` counts, as SQL. A map has its items, without sub-runs whose items are gone, and of a phase with
 * `repeat` the last turn counts.
 */
export const toleratedBelow = (runId: string): string =>
  `SELECT coalesce(sum(iif(child.state = 'completed', child.tolerated, child.state = 'failed')), 0)
   FROM phases CROSS JOIN runs AS child ON child.parent_id = phases.run_id AND child.parent_position = phases.position
     AND child.item >= iif(total IS NULL, ${LAST_TURN} - 1, 0) AND child.item < coalesce(total, ${LAST_TURN})
   WHERE phases.run_id = ${runId} AND phases.state = 'completed'`
const LAST_TURN = `coalesce((SELECT max(turn) FROM turns
  WHERE turns.run_id = phases.run_id AND turns.position = phases.position), 1)`

export class PhaseReads {
  readonly #db: Database
  readonly #get
  readonly #result
  readonly #tolerated

  constructor(db: Database) {
    this.#db = db
    this.#get = db.query<PhaseRow, [string, number]>('SELECT * FROM phases WHERE run_id = ? AND position = ?')
    this.#result = db.query<RecordedResult, [string, number]>(
      'SELECT text, data, files, error FROM phases WHERE run_id = ? AND position = ?',
    )
    const anyBelow = (index: string, failed: string) =>
      `EXISTS (SELECT 1 FROM runs INDEXED BY ${index} WHERE root_id = ?2 AND tree_key > ?3 AND tree_key < ?3 || '~' AND ${failed})`
    this.#tolerated = db.query<{ count: number }, [string, string, string]>(
      `SELECT iif(${anyBelow('runs_failed', "state = 'failed'")} OR ${anyBelow('runs_has_failed', 'has_failed = 1')},
         (${toleratedBelow('?1')}), 0) AS count`,
    )
  }

  get(runId: string, position: number): PhaseRow | null {
    return this.#get.get(runId, position)
  }

  of(runId: string): PhaseRow[] {
    return this.#db.query<PhaseRow, [string]>('SELECT * FROM phases WHERE run_id = ? ORDER BY position').all(runId)
  }

  /** The failed phases of all runs below a run, in the order of the tree. */
  failedBelow(
    rootId: string,
    treeKey: string,
  ): Iterable<
    Pick<PhaseRow, 'run_id' | 'position' | 'error'> & Pick<RunRow, 'parent_id' | 'tree_key' | 'item' | 'run_name'>
  > {
    return this.#db
      .query<PhaseRow & RunRow, [string, string]>(
        `SELECT run_id, position, phases.error, parent_id, tree_key, item, run_name
         FROM runs INDEXED BY runs_has_failed CROSS JOIN phases ON run_id = id AND phases.state = 'failed'
         WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND has_failed = 1 ORDER BY tree_key, position`,
      )
      .iterate(rootId, treeKey)
  }

  /**
   * How many failures the completed phases of a run passed over: each failed sub-run is one, and a completed one has those
   * that it passed over itself. Most trees have no failure, which two indexes say without a look at the sub-runs.
   */
  toleratedBelow(runId: string, rootId: string, treeKey: string): number {
    return this.#tolerated.get(runId, rootId, treeKey)!.count
  }

  /** How many items the maps at a position have in all runs of a tree whose keys are as the pattern. */
  totalOfMaps(rootId: string, pattern: string, position: number): number {
    return this.#db
      .query<{ total: number }, [string, string, number]>(
        `SELECT coalesce(sum(total), 0) AS total FROM runs CROSS JOIN phases ON run_id = id AND position = ?3
         WHERE root_id = ?1 AND tree_key GLOB ?2`,
      )
      .get(rootId, pattern, position)!.total
  }

  /** How many bytes the phases of a run have, in their order. The values are not read for that. */
  sizes(runId: string): { position: number; text: number; data: number; rest: number }[] {
    return this.#db
      .query<{ position: number; text: number; data: number; rest: number }, [string]>(
        `SELECT position, coalesce(octet_length(text), 0) AS text, coalesce(octet_length(data), 0) AS data,
           coalesce(octet_length(error), 0) + coalesce(octet_length(files), 0) AS rest
         FROM phases WHERE run_id = ? ORDER BY position`,
      )
      .all(runId)
  }

  /** The phases of a run, with the texts and the data of those at the given positions only. */
  some(runId: string, withText: readonly number[], withData: readonly number[]): PhaseRow[] {
    return this.#db
      .query<PhaseRow, [string, string, string]>(
        `SELECT run_id, position, state, reason, attempt, failures, due_at, started_at, completed_at, error,
           CASE WHEN position IN (SELECT value FROM json_each(?2)) THEN text END AS text,
           CASE WHEN position IN (SELECT value FROM json_each(?3)) THEN data END AS data,
           files, deadline, time_left, total, renewal
         FROM phases WHERE run_id = ?1 ORDER BY position`,
      )
      .all(runId, JSON.stringify(withText), JSON.stringify(withData))
  }

  states(runId: string): PhaseStates[] {
    return this.#db
      .query<PhaseStates, [string]>(
        `SELECT state, reason, attempt, failures, due_at, deadline, time_left, total
         FROM phases WHERE run_id = ? ORDER BY position`,
      )
      .all(runId)
  }

  result(runId: string, position: number): RecordedResult {
    return this.#result.get(runId, position)!
  }

  error(runId: string, position: number): string | null {
    return this.#db
      .query<{ error: string | null }, [string, number]>('SELECT error FROM phases WHERE run_id = ? AND position = ?')
      .get(runId, position)!.error
  }

  /** How many items a map has; null until all of them are stored. */
  total(runId: string, position: number): number | null {
    return this.#db
      .query<{ total: number | null }, [string, number]>('SELECT total FROM phases WHERE run_id = ? AND position = ?')
      .get(runId, position)!.total
  }

  /** The record of a file that a phase of this run wrote. */
  fileRecord(runId: string, path: string): FileRecord | null {
    const row = this.#db
      .query<{ record: string }, [string, string]>(
        `SELECT file.value AS record FROM phases, json_each(phases.files) AS file
         WHERE phases.run_id = ? AND phases.files IS NOT NULL AND file.value ->> 'path' = ? LIMIT 1`,
      )
      .get(runId, path)
    return row ? JSON.parse(row.record) : null
  }

  /** Which sub-runs stay of a map that evaluates its items again. */
  renewal(runId: string, position: number): Renewal | null {
    return this.#db
      .query<{ renewal: Renewal | null }, [string, number]>(
        'SELECT renewal FROM phases WHERE run_id = ? AND position = ?',
      )
      .get(runId, position)!.renewal
  }

  // Times

  /** Phases whose next attempt is due. */
  retriesDue(now: number, after: Due, limit: number): Due[] {
    return this.#db
      .query<Due, [number, number, string, number, number]>(
        `SELECT phases.run_id, position, due_at AS at, root_id FROM phases JOIN runs ON runs.id = phases.run_id
         WHERE due_at IS NOT NULL AND due_at <= ?1 AND (due_at, phases.run_id, position) > (?2, ?3, ?4)
         ORDER BY due_at, phases.run_id, position LIMIT ?5`,
      )
      .all(now, after.at, after.run_id, after.position, limit)
  }

  /** Team and map phases whose deadline has passed. */
  due(now: number, after: Due, limit: number): Due[] {
    return this.#db
      .query<Due, [number, number, string, number, number]>(
        `SELECT phases.run_id, position, phases.deadline AS at, root_id FROM phases JOIN runs ON runs.id = phases.run_id
         WHERE phases.deadline IS NOT NULL AND phases.deadline <= ?1
           AND (phases.deadline, phases.run_id, position) > (?2, ?3, ?4)
         ORDER BY phases.deadline, phases.run_id, position LIMIT ?5`,
      )
      .all(now, after.at, after.run_id, after.position, limit)
  }

  nextDue(after: number): number | null {
    return this.#db
      .query<{ at: number | null }, [number]>(
        `SELECT min(at) AS at FROM (
           SELECT min(due_at) AS at FROM phases WHERE due_at IS NOT NULL AND due_at > ?1
           UNION ALL SELECT min(deadline) FROM phases WHERE deadline IS NOT NULL AND deadline > ?1)`,
      )
      .get(after)!.at
  }
}
