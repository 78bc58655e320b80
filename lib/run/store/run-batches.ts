// Rows of runs that begin, with their ids, and of runs that end, many by one statement.

import type { Database } from 'bun:sqlite'
import { CHOSEN_FROM, RunIds } from '../../files/run-ids.ts'
import type { JsonObject } from '../../json.ts'
import type { Masked } from '../../secrets/masked.ts'
import { json, RUN_FENCE, type RunError, type RunRow } from '../core/core.ts'
import { BatchInsert, type Value } from './batch-insert.ts'
import { ChainEnds } from './chain-ends.ts'
import type { RunGroups } from './run-groups.ts'

/** Makes ids that are greater than those of all runs in the database. */
export function runIdsAfter(db: Database): RunIds {
  const ids = new RunIds()
  const greatest = db
    .query<{ id: string }, [string]>(
      "SELECT id FROM runs WHERE id < ? AND substr(id, 15, 1) = '7' ORDER BY id DESC LIMIT 1",
    )
    .get(CHOSEN_FROM)
  if (greatest) ids.note(greatest.id)
  return ids
}

/** The columns of a run that begins, in the order in which `run` gives them. */
const INSERTED = [
  ...['id', 'root_id', 'tree_key', 'parent_id', 'parent_position', 'parent_phase', 'item', 'run_name', 'call_path'],
  ...['call_depth', 'bundle_id', 'team_key', 'team', 'version', 'state', 'inputs', 'workspace', 'from_path', 'synced'],
  ...['attempt', 'created_at', 'started_at', 'deadline', 'settled', 'started_by', 'environment', 'review', 'group_id'],
  ...['lived_ms', 'lived_since', 'traceparent'],
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
      let before: RunRow | undefined
      let group = 0
      // The values are written out, because picking them in a loop costs twice as much as the statement.
      for (const run of some) {
        // The items of a map have one group.
        const isSame = before?.parent_id != null && run.parent_id !== null && before.team === run.team
        if (!isSame) group = this.#groups.of(run)
        before = run
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
          run.traceparent,
        )
      }
      const last = this.#insert.run(some.length, values)
      for (const [index, run] of some.entries()) run.number = last - some.length + 1 + index
    }
  }
}

export type EndState = 'completed' | 'failed' | 'cancelled'

export interface EndedRun {
  id: string
  isTop: boolean
  reason: string | null
  error: Masked<RunError> | null
  outputs: Masked<JsonObject> | null
  handed: string | null
  /** How many failures were passed over; null unless it completed. */
  tolerated: number | null
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
const NONE: readonly Value[] = [null, null, null, null, null, null, null, null]

/** Nine indexes look at the end of a run, and opening them costs more than a row. */
export class RunEnds {
  readonly #chains: ChainEnds
  readonly #one
  readonly #some

  constructor(db: Database) {
    this.#chains = new ChainEnds(db)
    this.#one = statements(db, n => `?${n}`, 'WHERE id = ?1')
    const rows = Array(CHUNK).fill('(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')
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
    if (changed !== ends.length) return false
    for (const { id, isTop } of ends) if (isTop) this.ofTop(id)
    return true
  }

  /** Called for a top run that was ended by any other statement. */
  ofTop(id: string): void {
    this.#chains.record(id)
  }
}

/** A statement for each state. `value` names one of the values of a run. */
function statements(db: Database, value: (n: number) => string, where: string) {
  const statement = (state: EndState) =>
    db.query<unknown, Value[]>(
      `UPDATE runs SET state = '${state}', reason = ${value(2)}, error = ${value(3)}, outputs = ${value(4)},
         handed = ${value(5)}, completed_at = max(${value(6)}, coalesce(started_at, 0)), ending = NULL, deadline = NULL,
         time_left = NULL, tolerated = ${value(8)}, ${endOfAttempt(value(7))}
       ${where} AND ${RUN_FENCE[state]}`,
    )
  return { completed: statement('completed'), failed: statement('failed'), cancelled: statement('cancelled') }
}

function valuesOf({ id, reason, error, outputs, handed, at, lived, tolerated }: EndedRun): Value[] {
  return [id, reason, json(error), json(outputs), handed, at, lived, tolerated]
}
