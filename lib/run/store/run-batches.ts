// Rows of runs that begin, and of runs that end, many by one statement.

import type { Database } from 'bun:sqlite'
import type { JsonObject } from '../../json.ts'
import type { Masked } from '../../secrets/masked.ts'
import { json, RUN_FENCE, type RunError, type RunRow } from '../core/core.ts'
import { BatchInsert, type Value } from './batch-insert.ts'
import type { RunGroups } from './run-groups.ts'

/** The columns of a run that begins, in the order in which `run` gives them. */
const INSERTED = [
  ...['id', 'root_id', 'tree_key', 'parent_id', 'parent_position', 'parent_phase', 'item', 'run_name', 'call_path'],
  ...['call_depth', 'bundle_id', 'team_key', 'team', 'version', 'state', 'inputs', 'workspace', 'from_path', 'synced'],
  ...['attempt', 'created_at', 'started_at', 'deadline', 'settled', 'started_by', 'environment', 'review', 'group_id'],
  ...['lived_ms', 'lived_since'],
]
/** Maximum number of runs of one statement: as many as one step of a map starts. */
const CHUNK = 16

export class RunInsert {
  readonly #insert: BatchInsert
  readonly #groups: RunGroups

  constructor(db: Database, groups: RunGroups) {
    this.#groups = groups
    this.#insert = new BatchInsert(db, `runs (${INSERTED.join(', ')})`, `(${INSERTED.map(() => '?').join(', ')})`)
  }

  run(runs: readonly RunRow[]): void {
    for (let from = 0; from < runs.length; from += CHUNK) {
      const some = runs.slice(from, from + CHUNK)
      const values: Value[] = []
      let last: RunRow | undefined
      let group = 0
      // The values are written out, because picking them in a loop costs twice as much as the statement.
      for (const run of some) {
        // The items of a map have one group.
        const isSame = last !== undefined && last.parent_id !== null && run.parent_id !== null && last.team === run.team
        if (!isSame) group = this.#groups.of(run)
        last = run
        values.push(
          run.id,
          run.root_id,
          run.tree_key,
          run.parent_id,
          run.parent_position,
          run.parent_phase,
          run.item,
          run.run_name,
          run.call_path,
          run.call_depth,
          run.bundle_id,
          run.team_key,
          run.team,
          run.version,
          run.state,
          run.inputs,
          run.workspace,
          run.from_path,
          run.synced,
          run.attempt,
          run.created_at,
          run.started_at,
          run.deadline,
          run.settled,
          run.started_by,
          run.environment,
          run.review,
          group,
          run.lived_ms,
          run.lived_since,
        )
      }
      this.#insert.run(some.length, values)
    }
  }
}

export type EndState = 'completed' | 'failed' | 'cancelled'

export interface EndedRun {
  id: string
  reason: string | null
  error: Masked<RunError> | null
  outputs: Masked<JsonObject> | null
  handed: string | null
  at: number
  /** The lived time. */
  lived: number
}

/**
 * The columns of an attempt that ends, which adds what was lived of it. A kill loses up to a second of lived time, and
 * with it perhaps the time at which the attempt began. What a run from before had lived is not known, and stays so.
 */
export const endOfAttempt = (lived: string): string =>
  `lived_ms = lived_ms + coalesce(max(0, ${lived} - lived_since), 0), lived_since = NULL`

/** A row of the values that is no run. */
const NONE: readonly Value[] = [null, null, null, null, null, null, null]

/**
 * Two triggers and nine indexes look at the end of a run, and opening them costs more than a row (measured: 3.2 µs a run
 * instead of 6.2 µs where 16 end together).
 */
export class RunEnds {
  readonly #one
  readonly #some

  constructor(db: Database) {
    this.#one = statements(db, n => `?${n}`, 'WHERE id = ?1')
    const rows = Array(CHUNK).fill('(?, ?, ?, ?, ?, ?, ?)').join(', ')
    this.#some = statements(db, n => `v.column${n}`, `FROM (VALUES ${rows}) AS v WHERE runs.id = v.column1`)
  }

  /** Returns whether all of them could end so. */
  run(state: EndState, ends: readonly EndedRun[]): boolean {
    let changed = 0
    for (let from = 0; from < ends.length; from += CHUNK) {
      const rows = ends.slice(from, from + CHUNK).map(valuesOf)
      if (rows.length === 1) changed += this.#one[state].run(...rows[0]!).changes
      else
        changed += this.#some[state].run(
          ...rows.flat(),
          ...Array(CHUNK - rows.length)
            .fill(NONE)
            .flat(),
        ).changes
    }
    return changed === ends.length
  }
}

/** A statement for each state. `value` names one of the values of a run. */
function statements(db: Database, value: (n: number) => string, where: string) {
  const statement = (state: EndState) =>
    db.query<unknown, Value[]>(
      `UPDATE runs SET state = '${state}', reason = ${value(2)}, error = ${value(3)}, outputs = ${value(4)},
         handed = ${value(5)}, completed_at = max(${value(6)}, coalesce(started_at, 0)), ending = NULL, deadline = NULL,
         time_left = NULL, ${endOfAttempt(value(7))}
       ${where} AND ${RUN_FENCE[state]}`,
    )
  return { completed: statement('completed'), failed: statement('failed'), cancelled: statement('cancelled') }
}

function valuesOf({ id, reason, error, outputs, handed, at, lived }: EndedRun): Value[] {
  return [id, reason, json(error), json(outputs), handed, at, lived]
}
