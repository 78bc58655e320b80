// Table `runs`: one row for each run of any depth. A statement that changes a state has a fence in its WHERE and
// returns whether a row was changed. Statements that change rows are called only inside units of the journal.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../files/run-id.ts'
import type { RunIds } from '../../files/run-ids.ts'
import type { Masked } from '../../secrets/masked.ts'
import { type CountedRun, json, type RunError, type RunRow, type RunState } from '../core/core.ts'
import type { Value } from './batch-insert.ts'
import { type EndedRun, type EndState, endOfAttempt, RunEnds, RunInsert, runIdsAfter } from './run-batches.ts'
import type { RunGroups } from './run-groups.ts'

/** The part of a run that is needed to report a change of it. */
const CHANGED_COLUMNS = ['id', 'root_id', 'synced', 'bundle_id', 'team_key'] as const
export type ChangedRun = Pick<RunRow, 'number' | (typeof CHANGED_COLUMNS)[number]>
const CHANGED = `rowid AS number, ${CHANGED_COLUMNS.join(', ')}`

/** A whole `RunRow`. */
const ROW = 'runs.rowid AS number, runs.*'

/** The part of a sub-run that its team or map phase needs. */
const CHILD_COLUMNS = [
  ...(['id', 'item', 'run_name', 'state', 'error', 'outputs', 'handed'] as const),
  ...(['bundle_id', 'team_key', 'workspace', 'team'] as const),
]
export type ChildRow = Pick<RunRow, (typeof CHILD_COLUMNS)[number]>

/** Sets an ended run to `queued` for a new attempt. */
const QUEUED = `state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL, handed = NULL,
  completed_at = NULL, ending = NULL, log_ended = 0, tolerated = NULL`

/**
 * A run and the sub-runs of its team phases, at any depth. They have no key; the sub-runs of maps do. Those of a phase with
 * `repeat` after its first turn are left out.
 */
export const WHOLE = `WITH RECURSIVE whole (id) AS (
  SELECT ?1 UNION ALL SELECT runs.id FROM runs JOIN whole ON runs.parent_id = whole.id WHERE runs.run_name IS NULL AND runs.item = 0)`

/**
 * The top runs that have not ended. The index of open runs holds few rows, and has the key of a top run, which is empty;
 * without its name SQLite may read all top runs instead.
 */
export const OPEN_TOPS = "FROM runs INDEXED BY runs_open WHERE completed_at IS NULL AND tree_key = ''"

/** Open runs of a tree below a tree key that wait for a new attempt. */
export const QUEUED_BELOW =
  "root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND state = 'queued' AND completed_at IS NULL"

export class Runs {
  readonly #db: Database
  readonly #insert: RunInsert
  readonly #ends: RunEnds
  /** Made with the first id that is asked for: most processes only read. */
  #ids: RunIds | undefined
  readonly #get
  readonly #counted
  readonly #attempt
  readonly #synced
  readonly #open
  readonly #settled
  readonly #state
  readonly #children
  readonly #child

  constructor(db: Database, groups: RunGroups) {
    this.#db = db
    this.#insert = new RunInsert(db, groups)
    this.#ends = new RunEnds(db)
    this.#get = db.query<RunRow, [string]>(`SELECT ${ROW} FROM runs WHERE id = ?`)
    this.#counted = db.query<CountedRun, [string]>(
      'SELECT team, state, reason, started_at, completed_at FROM runs WHERE id = ?',
    )
    this.#attempt = db.query<Pick<RunRow, 'attempt'>, [string]>('SELECT attempt FROM runs WHERE id = ?')
    this.#synced = db.query<unknown, [string]>('SELECT 1 FROM runs WHERE id = ? AND synced = 1')
    this.#open = db.query<unknown, [string]>('SELECT 1 FROM runs WHERE id = ? AND completed_at IS NULL')
    this.#settled = db.query<unknown, [string]>('SELECT 1 FROM runs WHERE id = ? AND settled = 1')
    this.#state = db.query<unknown, Value[]>('UPDATE runs SET state = ?2, reason = ?3 WHERE id = ?1 AND state = ?4')
    this.#children = db.query<ChildRow, [string, number, number, number]>(
      `SELECT ${CHILD_COLUMNS.join(', ')} FROM runs WHERE parent_id = ? AND parent_position = ? AND item >= ? ORDER BY item LIMIT ?`,
    )
    this.#child = db.query<RunRow, [string, number, number]>(
      `SELECT ${ROW} FROM runs WHERE parent_id = ? AND parent_position = ? AND item = ?`,
    )
  }

  /** The id of a new run. */
  newId(): RunId {
    this.#ids ??= runIdsAfter(this.#db)
    return this.#ids.next()
  }

  /** Inserts runs, many by one statement. */
  insert(runs: readonly RunRow[]): void {
    for (const { id } of runs) this.#ids?.note(id)
    this.#insert.run(runs)
  }

  /** Whether a run exists and has not ended. */
  isOpen(id: string): boolean {
    return this.#open.get(id) !== null
  }

  isSettled(id: string): boolean {
    return this.#settled.get(id) !== null
  }

  get(id: string): RunRow | null {
    return this.#get.get(id)
  }

  /** What is counted of a run that has ended. To read its whole row takes twice as long. */
  counted(id: string): CountedRun | null {
    return this.#counted.get(id)
  }

  /** Whether any run is of a package: it was not started from a path. */
  anyOfPackage(): boolean {
    return this.#db.query('SELECT 1 FROM runs WHERE from_path = 0 LIMIT 1').get() !== null
  }

  /** The attempt of a run; null when the run is not here. */
  attempt(id: string): number | null {
    return this.#attempt.get(id)?.attempt ?? null
  }

  /** Whether the run is reported to the hub. */
  isSynced(id: string): boolean {
    return this.#synced.get(id) !== null
  }

  /** Top runs that have not ended. */
  openRoots(): RunRow[] {
    return this.#db.query<RunRow, []>(`SELECT ${ROW} ${OPEN_TOPS} ORDER BY root_id`).all()
  }

  /** The ids of top runs that have not ended. */
  openRootIds(): string[] {
    return this.#db
      .query<{ id: string }, []>(`SELECT root_id AS id ${OPEN_TOPS} ORDER BY root_id`)
      .all()
      .map(({ id }) => id)
  }

  /** Runs of a tree that have started and not ended, parents before their children. */
  openOf(rootId: string): RunRow[] {
    return this.#db
      .query<RunRow, [string]>(
        `SELECT ${ROW} FROM runs WHERE root_id = ? AND completed_at IS NULL AND state <> 'queued' ORDER BY tree_key`,
      )
      .all(rootId)
  }

  /** `running` to `awaiting_input`, or back. */
  setState(id: string, state: 'running' | 'awaiting_input', reason: string | null): boolean {
    const from = state === 'running' ? 'awaiting_input' : 'running'
    return this.#state.run(id, state, reason, from).changes === 1
  }

  setClock(id: string, deadline: number | null, left: number | null): void {
    this.#db
      .query('UPDATE runs SET deadline = ?2, time_left = ?3 WHERE id = ?1 AND completed_at IS NULL')
      .run(id, deadline, left)
  }

  /** Ends runs, many by one statement. False when the state of one of them does not allow that. */
  end(state: EndState, ends: readonly EndedRun[]): boolean {
    return this.#ends.run(state, ends)
  }

  /** Null hands its files over again. */
  setHanded(id: string, handed: string | null): void {
    this.#db.query("UPDATE runs SET handed = ?2 WHERE id = ?1 AND state = 'completed'").run(id, handed)
  }

  /** Records that the run was asked to end, and stops its clock. */
  setEnding(id: string, ending: object): void {
    this.#db
      .query('UPDATE runs SET ending = ?2, deadline = NULL, time_left = NULL WHERE id = ?1 AND completed_at IS NULL')
      .run(id, JSON.stringify(ending))
  }

  // Sub-runs of a phase, in the order of the items

  children(runId: string, position: number, from = 0, limit = 2 ** 31): ChildRow[] {
    return this.#children.all(runId, position, from, limit)
  }

  child(runId: string, position: number, item: number): RunRow | null {
    return this.#child.get(runId, position, item)
  }

  /** The number of sub-runs of a phase in each state, without those after its current items. */
  childStates(runId: string, position: number, items: number): { state: RunState; count: number }[] {
    return this.#db
      .query<{ state: RunState; count: number }, [string, number, number]>(
        'SELECT state, count(*) AS count FROM runs WHERE parent_id = ? AND parent_position = ? AND item < ? GROUP BY state',
      )
      .all(runId, position, items)
  }

  firstFailedChild(runId: string, position: number): Pick<RunRow, 'run_name' | 'state' | 'error'> | null {
    return this.#db
      .query<RunRow, [string, number]>(
        `SELECT run_name, state, error FROM runs
         WHERE parent_id = ? AND parent_position = ? AND state IN ('failed', 'cancelled') ORDER BY item LIMIT 1`,
      )
      .get(runId, position)
  }

  /** The failed sub-runs of a map, in the order of their items. */
  failedChildren(runId: string, position: number, limit: number): Pick<RunRow, 'run_name' | 'error'>[] {
    return this.#db
      .query<RunRow, [string, number, number]>(
        `SELECT run_name, error FROM runs
         WHERE parent_id = ? AND parent_position = ? AND state = 'failed' ORDER BY item LIMIT ?`,
      )
      .all(runId, position, limit)
  }

  /** The failed items of all maps below a run, in the order of the tree. */
  failedItemsBelow(
    rootId: string,
    treeKey: string,
  ): Iterable<Pick<RunRow, 'parent_id' | 'tree_key' | 'item' | 'run_name' | 'error'>> {
    return this.#db
      .query<RunRow, [string, string]>(
        `SELECT parent_id, tree_key, item, run_name, error FROM runs INDEXED BY runs_failed
         WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND state = 'failed' AND run_name IS NOT NULL
         ORDER BY tree_key`,
      )
      .iterate(rootId, treeKey)
  }

  /** The run of a tree that has a tree key. */
  atKey(rootId: string, treeKey: string): Pick<RunRow, 'run_name' | 'parent_id' | 'item'> | null {
    return this.#db
      .query<RunRow, [string, string]>('SELECT run_name, parent_id, item FROM runs WHERE root_id = ? AND tree_key = ?')
      .get(rootId, treeKey)
  }

  /** The sub-run that is the reason why a phase failed or waits. */
  decidingChild(runId: string, position: number): RunRow | null {
    return this.#db
      .query<RunRow, [string, number]>(
        `SELECT ${ROW} FROM runs JOIN phases ON phases.run_id = runs.parent_id AND phases.position = runs.parent_position
         WHERE parent_id = ? AND parent_position = ?
           AND CASE phases.state WHEN 'failed' THEN runs.state IN ('failed', 'cancelled') ELSE runs.state = phases.state END
         ORDER BY item LIMIT 1`,
      )
      .get(runId, position)
  }

  /** Whether a run of a tree failed because an output could not be made. */
  lacksOutputs(rootId: string): boolean {
    return (
      this.#db.query("SELECT 1 FROM runs WHERE root_id = ? AND state = 'failed' AND reason = 'outputs'").get(rootId) !==
      null
    )
  }

  /** Gives a sub-run another item, and so other tree keys to it and to all runs below it. */
  move(rootId: string, id: string, item: number, from: string, to: string): ChangedRun[] {
    this.#db.query('UPDATE runs SET item = ? WHERE id = ?').run(item, id)
    return this.#db
      .query<ChangedRun, [string, string, string]>(
        `UPDATE runs SET tree_key = ?3 || substr(tree_key, length(?2) + 1)
         WHERE root_id = ?1 AND tree_key >= ?2 AND tree_key < ?2 || '~' RETURNING ${CHANGED}`,
      )
      .all(rootId, from, to)
  }

  // New attempts: only these statements take a run out of an ended state

  requeue(id: string): ChangedRun[] {
    return this.#db
      .query<ChangedRun, [string]>(
        `UPDATE runs SET ${QUEUED} WHERE id = ? AND completed_at IS NOT NULL RETURNING ${CHANGED}`,
      )
      .all(id)
  }

  /** A run and the sub-runs of its team phases. */
  requeueWhole(id: string): ChangedRun[] {
    return this.#db
      .query<ChangedRun, [string]>(
        `${WHOLE} UPDATE runs SET ${QUEUED} WHERE id IN (SELECT id FROM whole) AND completed_at IS NOT NULL
         RETURNING ${CHANGED}`,
      )
      .all(id)
  }

  /** Queues the sub-runs of a phase that did not complete. Sub-runs from index `items` on are ignored. */
  requeueChildren(runId: string, position: number, items: number): ChangedRun[] {
    return this.#db
      .query<ChangedRun, [string, number, number]>(
        `UPDATE runs SET ${QUEUED}
         WHERE parent_id = ? AND parent_position = ? AND item < ? AND state IN ('failed', 'cancelled') RETURNING ${CHANGED}`,
      )
      .all(runId, position, items)
  }

  /** Starts the new attempt of a `queued` run. */
  startQueued(id: string, { at, lived, deadline }: { at: number; lived: number; deadline: number | null }): void {
    this.#db
      .query(
        `UPDATE runs SET state = 'running', reason = NULL, started_at = max(?2, coalesce(started_at, 0)), deadline = ?3, time_left = NULL,
           settled = CASE WHEN parent_id IS NULL THEN 0 ELSE settled END, lived_since = ?4
         WHERE id = ?1 AND state = 'queued'`,
      )
      .run(id, at, deadline, lived)
  }

  /** Who may approve the new attempt of a `queued` top run before it begins. */
  setReview(id: string, review: readonly string[] | null): void {
    this.#db.query("UPDATE runs SET review = ?2 WHERE id = ?1 AND state = 'queued'").run(id, json(review))
  }

  /** Sets why a top run is `queued`. */
  setReason(id: string, reason: string): void {
    this.#db.query("UPDATE runs SET reason = ?2 WHERE id = ?1 AND state = 'queued'").run(id, reason)
  }

  /** Ends a top run that is `queued`. */
  endQueued(id: string, reason: string, error: Masked<RunError> | null, at: number): void {
    const { changes } = this.#db
      .query(
        `UPDATE runs SET state = 'cancelled', reason = ?2, error = ?3, completed_at = max(?4, coalesce(started_at, 0)),
           settled = 0
         WHERE id = ?1 AND parent_id IS NULL AND state = 'queued'`,
      )
      .run(id, reason, json(error), at)
    if (changes === 1) this.#ends.ofTop(id)
  }

  setInputs(id: string, inputs: string): void {
    this.#db.query("UPDATE runs SET inputs = ?2 WHERE id = ?1 AND state = 'queued'").run(id, inputs)
  }

  /** Cancels the `queued` runs below a tree key, whose new attempt will not start any more. */
  cancelQueued(rootId: string, treeKey: string, at: number): ChangedRun[] {
    return this.#db
      .query<ChangedRun, [string, string, number]>(
        `UPDATE runs SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0))
         WHERE ${QUEUED_BELOW} RETURNING ${CHANGED}`,
      )
      .all(rootId, treeKey, at)
  }

  /** Ends every open run of a tree after a fault of the engine: the top run fails, those below are cancelled. */
  abandon(rootId: string, error: Masked<RunError>, at: number, lived: number): ChangedRun[] {
    const changed = this.#db
      .query<ChangedRun, [string, string, number, number]>(
        `UPDATE runs SET state = iif(parent_id IS NULL, 'failed', 'cancelled'), reason = 'internal',
           error = iif(parent_id IS NULL, ?2, NULL), completed_at = max(?3, coalesce(started_at, 0)), ending = NULL,
           deadline = NULL, time_left = NULL, ${endOfAttempt('?4')}
         WHERE root_id = ?1 AND completed_at IS NULL RETURNING ${CHANGED}`,
      )
      .all(rootId, JSON.stringify(error), at, lived)
    if (changed.some(({ id }) => id === rootId)) this.#ends.ofTop(rootId)
    return changed
  }

  /** Top runs that have ended, but whose deliveries, reports or secrets are still to be dealt with. */
  unsettled(): RunId[] {
    return this.#db
      .query<{ id: RunId }, []>(
        `SELECT id FROM runs INDEXED BY runs_unsettled
         WHERE parent_id IS NULL AND completed_at IS NOT NULL AND settled = 0`,
      )
      .all()
      .map(row => row.id)
  }

  settle(id: string): void {
    this.#db.query('UPDATE runs SET settled = 1 WHERE id = ? AND completed_at IS NOT NULL').run(id)
  }

  // Deadlines

  due(now: number, after: { at: number; id: string }, limit: number) {
    return this.#db
      .query<{ id: string; run_id: string; root_id: string; at: number }, [number, number, string, number]>(
        `SELECT id, id AS run_id, root_id, deadline AS at FROM runs WHERE deadline IS NOT NULL AND deadline <= ?1
           AND (deadline, id) > (?2, ?3) ORDER BY deadline, id LIMIT ?4`,
      )
      .all(now, after.at, after.id, limit)
  }

  nextDue(after: number): number | null {
    return this.#db
      .query<{ at: number | null }, [number]>(
        'SELECT min(deadline) AS at FROM runs WHERE deadline IS NOT NULL AND deadline > ?',
      )
      .get(after)!.at
  }

  // Reports to the hub

  /** Ended runs whose log is not marked as complete, because a process was killed. */
  withOpenLog(): { id: RunId; root_id: RunId }[] {
    return this.#db
      .query<{ id: RunId; root_id: RunId }, []>(
        `SELECT id, root_id FROM runs INDEXED BY runs_log_open
         WHERE synced = 1 AND log_ended = 0 AND completed_at IS NOT NULL`,
      )
      .all()
  }
}
