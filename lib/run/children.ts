// The sub-runs and the frozen items of a phase, as rows. Every list is in the order of the items.

import type { Json } from '../json.ts'
import type { RunRow } from './records.ts'
import type { RunStore } from './store.ts'
import type { RunState } from './transitions.ts'

export interface ItemRow {
  item: number
  key: string
  value: string
}

/** What a phase needs of its sub-runs. */
export type ChildRow = Pick<
  RunRow,
  'id' | 'item' | 'run_name' | 'state' | 'outputs' | 'bundle_id' | 'team_key' | 'workspace'
>

/** How the sub-runs of a phase stand: `[state, count]`. */
export function childStates({ db }: RunStore, runId: string, position: number): { state: RunState; count: number }[] {
  return db
    .query<{ state: RunState; count: number }, [string, number]>(
      'SELECT state, count(*) AS count FROM runs WHERE parent_id = ? AND parent_position = ? GROUP BY state',
    )
    .all(runId, position)
}

export function childrenOf({ db }: RunStore, runId: string, position: number): ChildRow[] {
  return db
    .query<ChildRow, [string, number]>(
      `SELECT id, item, run_name, state, outputs, bundle_id, team_key, workspace FROM runs
       WHERE parent_id = ? AND parent_position = ? ORDER BY item`,
    )
    .all(runId, position)
}

/** The last item that has a sub-run, or -1. */
export function lastItem({ db }: RunStore, runId: string, position: number): number {
  return db
    .query<{ item: number }, [string, number]>(
      'SELECT coalesce(max(item), -1) AS item FROM runs WHERE parent_id = ? AND parent_position = ?',
    )
    .get(runId, position)!.item
}

export function queuedChild({ db }: RunStore, runId: string, position: number): RunRow | null {
  return db
    .query<RunRow, [string, number]>(
      "SELECT * FROM runs WHERE parent_id = ? AND parent_position = ? AND state = 'queued' ORDER BY item LIMIT 1",
    )
    .get(runId, position)
}

export function childOf({ db }: RunStore, runId: string, position: number, item: number): RunRow | null {
  return db
    .query<RunRow, [string, number, number]>(
      'SELECT * FROM runs WHERE parent_id = ? AND parent_position = ? AND item = ?',
    )
    .get(runId, position, item)
}

export function firstFailedChild(
  { db }: RunStore,
  runId: string,
  position: number,
): Pick<RunRow, 'run_name' | 'state' | 'error'> | null {
  return db
    .query<RunRow, [string, number]>(
      `SELECT run_name, state, error FROM runs
       WHERE parent_id = ? AND parent_position = ? AND state IN ('failed', 'cancelled') ORDER BY item LIMIT 1`,
    )
    .get(runId, position)
}

/** The sub-run that made a phase end, or wait, as it does. */
export function decidingChild({ db }: RunStore, runId: string, position: number): RunRow | null {
  return db
    .query<RunRow, [string, number]>(
      `SELECT runs.* FROM runs JOIN phases ON phases.run_id = runs.parent_id AND phases.position = runs.parent_position
       WHERE parent_id = ? AND parent_position = ?
         AND CASE phases.state WHEN 'failed' THEN runs.state IN ('failed', 'cancelled') ELSE runs.state = phases.state END
       ORDER BY item LIMIT 1`,
    )
    .get(runId, position)
}

export function insertItems(
  { db }: RunStore,
  runId: string,
  position: number,
  items: Iterable<{ key: string; value: Json }>,
): void {
  const insert = db.query('INSERT INTO items (run_id, position, item, key, value) VALUES (?, ?, ?, ?, ?)')
  let index = 0
  for (const { key, value } of items) insert.run(runId, position, index++, key, JSON.stringify(value))
}

export function itemCount({ db }: RunStore, runId: string, position: number): number {
  return db
    .query<{ count: number }, [string, number]>('SELECT count(*) AS count FROM items WHERE run_id = ? AND position = ?')
    .get(runId, position)!.count
}

/** The first item at or after `from`. */
export function itemFrom({ db }: RunStore, runId: string, position: number, from: number): ItemRow | null {
  return db
    .query<ItemRow, [string, number, number]>(
      'SELECT item, key, value FROM items WHERE run_id = ? AND position = ? AND item >= ? ORDER BY item LIMIT 1',
    )
    .get(runId, position, from)
}

export function itemKeys({ db }: RunStore, runId: string, position: number): { item: number; key: string }[] {
  return db
    .query<{ item: number; key: string }, [string, number]>(
      'SELECT item, key FROM items WHERE run_id = ? AND position = ? ORDER BY item',
    )
    .all(runId, position)
}
