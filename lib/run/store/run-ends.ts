// Rows of runs that end, many by one statement. Two triggers and nine indexes look at the end of a run, and opening them
// costs more than a row (measured: 3.2 µs a run instead of 6.2 µs where 16 end together).

import type { Database } from 'bun:sqlite'
import type { JsonObject } from '../../json.ts'
import type { Masked } from '../../secrets/masked.ts'
import { json, RUN_FENCE, type RunError } from '../core/core.ts'
import type { Value } from './batch-insert.ts'

export type EndState = 'completed' | 'failed' | 'cancelled'

export interface EndedRun {
  id: string
  reason: string | null
  error: Masked<RunError> | null
  outputs: Masked<JsonObject> | null
  handed: string | null
  at: number
}

/** Maximum number of runs that one statement ends: as many as one step of a map starts. */
const CHUNK = 16
/** A row of the values that is no run. */
const NONE: readonly Value[] = [null, null, null, null, null, null]

export class RunEnds {
  readonly #one
  readonly #some

  constructor(db: Database) {
    this.#one = statements(db, n => `?${n}`, 'WHERE id = ?1')
    const rows = Array(CHUNK).fill('(?, ?, ?, ?, ?, ?)').join(', ')
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
         time_left = NULL
       ${where} AND ${RUN_FENCE[state]}`,
    )
  return { completed: statement('completed'), failed: statement('failed'), cancelled: statement('cancelled') }
}

function valuesOf({ id, reason, error, outputs, handed, at }: EndedRun): Value[] {
  return [id, reason, json(error), json(outputs), handed, at]
}
