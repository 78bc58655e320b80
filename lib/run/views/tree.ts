// The tree of a run: every run of it, depth first, phases in file order, map items by index. The index on
// (root_id, tree_key) holds that order, so a tree of any size is one range scan, a page at a time.

import type { Database } from 'bun:sqlite'
import { CadreError } from '../../error.ts'
import type { TreeEntry } from '../../wire/records/run-records.ts'

interface Row extends Omit<TreeEntry, 'call_path'> {
  call_path: string
  tree_key: string
}

const PAGE = 500

/** The top run of the tree that `runId` is in. Throws `not_found`. */
export function rootOf(db: Database, runId: string): string {
  const row = db.query<{ root_id: string }, [string]>('SELECT root_id FROM runs WHERE id = ?').get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  return row.root_id
}

/** The entries of a tree, the top run first. Reads a page at a time, so rows may change between pages. */
export function* treeEntries(db: Database, rootId: string): Generator<TreeEntry> {
  const page = db.query<Row, [string, string, number]>(
    `SELECT id AS run_id, run_name, state, call_path, call_depth, parent_phase, started_at, completed_at, tolerated,
       tree_key
     FROM runs WHERE root_id = ? AND tree_key > ? ORDER BY tree_key LIMIT ?`,
  )
  const root = db
    .query<Row, [string]>(
      `SELECT id AS run_id, run_name, state, call_path, call_depth, parent_phase, started_at, completed_at, tolerated,
         tree_key
       FROM runs WHERE id = ?`,
    )
    .get(rootId)
  if (root) yield entry(root)
  for (let after = ''; ; ) {
    const rows = page.all(rootId, after, PAGE)
    for (const row of rows) yield entry(row)
    if (rows.length < PAGE) return
    after = rows.at(-1)!.tree_key
  }
}

/** The keys have a fixed order, so that the daemon and the hub return the same text for a tree. */
function entry(row: Row): TreeEntry {
  const { run_id, run_name, state, call_depth, parent_phase, started_at, completed_at, tolerated } = row
  const call_path = JSON.parse(row.call_path)
  return { run_id, run_name, state, call_path, call_depth, parent_phase, started_at, completed_at, tolerated }
}
