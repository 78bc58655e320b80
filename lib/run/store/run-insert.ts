// Rows of runs that begin, many by one statement.

import type { Database } from 'bun:sqlite'
import type { RunRow } from '../core/core.ts'
import { BatchInsert, type Value } from './batch-insert.ts'
import type { RunGroups } from './run-groups.ts'

/** The columns of a run that begins, in the order in which `run` gives them. */
const INSERTED = [
  ...['id', 'root_id', 'tree_key', 'parent_id', 'parent_position', 'parent_phase', 'item', 'run_name', 'call_path'],
  ...['call_depth', 'bundle_id', 'team_key', 'team', 'version', 'state', 'inputs', 'workspace', 'from_path', 'synced'],
  ...['attempt', 'created_at', 'started_at', 'deadline', 'settled', 'started_by', 'environment', 'review', 'group_id'],
]
/** Maximum number of runs that one statement inserts: as many as one step of a map starts. */
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
        )
      }
      this.#insert.run(some.length, values)
    }
  }
}
