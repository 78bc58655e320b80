// Rows of runs for tests of lists, written without an engine.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../lib/files/run-id.ts'
import { RunGroups } from '../../lib/run/store/run-groups.ts'

export interface ListedRow {
  id: string
  root_id: string
  parent_id: string | null
  team: string
  state: string
  started_at: number | null
  started_by: object | null
}

/** An id as a run has it that was made at this moment. */
export function runIdAt(ms: number, number: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${number.toString(16).padStart(12, '0')}`
}

/** Inserts a run. A sub-run is below the run `parent_id`, which is a top run. */
export function insertRun(
  db: Database,
  row: Omit<ListedRow, 'root_id' | 'started_by'> & {
    started_by?: object | null
    run_name?: string
    inputs?: object
    error?: object
  },
): ListedRow {
  const { id, parent_id, team, state, started_at, run_name = null, inputs = {}, error, started_by = null } = row
  const root_id = parent_id ?? id
  const at = started_at ?? 1
  const written = started_by && JSON.stringify(started_by)
  db.query("INSERT OR IGNORE INTO bundles (id, json) VALUES ('b', '{}')").run()
  db.query(
    `INSERT INTO runs (id, root_id, tree_key, parent_id, parent_position, item, run_name, call_path, call_depth, bundle_id,
       team_key, team, version, state, error, inputs, from_path, synced, attempt, created_at, started_at, completed_at,
       started_by, group_id)
     VALUES (?, ?, ?, ?, ?, 0, ?, '[]', 0, 'b', '', ?, '1.0.0', ?, ?, ?, 1, 0, 1, ?, ?, ?, ?, ?)`,
  ).run(
    ...[id, root_id, parent_id === null ? '' : id, parent_id, parent_id === null ? null : 0, run_name, team, state],
    ...[error ? JSON.stringify(error) : null, JSON.stringify(inputs), at, started_at],
    ['completed', 'failed', 'cancelled'].includes(state) ? at : null,
    written,
    new RunGroups(db).of({ team, parent_id: parent_id as RunId | null, started_by: written }),
  )
  return { id, root_id, parent_id, team, state, started_at, started_by }
}
