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

/** How the sub-runs of a phase stand; those behind its items do not count. */
export function childStates(
  { db }: RunStore,
  runId: string,
  position: number,
  items: number,
): { state: RunState; count: number }[] {
  return db
    .query<{ state: RunState; count: number }, [string, number, number]>(
      'SELECT state, count(*) AS count FROM runs WHERE parent_id = ? AND parent_position = ? AND item < ? GROUP BY state',
    )
    .all(runId, position, items)
}

export function childrenOf({ db }: RunStore, runId: string, position: number): ChildRow[] {
  return db
    .query<ChildRow, [string, number]>(
      `SELECT id, item, run_name, state, outputs, bundle_id, team_key, workspace FROM runs
       WHERE parent_id = ? AND parent_position = ? ORDER BY item`,
    )
    .all(runId, position)
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

export function itemOf({ db }: RunStore, runId: string, position: number, item: number): ItemRow | null {
  return db
    .query<ItemRow, [string, number, number]>(
      'SELECT item, key, value FROM items WHERE run_id = ? AND position = ? AND item = ?',
    )
    .get(runId, position, item)
}

/** The first item from `from` on that has no sub-run, or whose sub-run waits in the queue. */
export function nextItem(
  { db }: RunStore,
  runId: string,
  position: number,
  from: number,
): (ItemRow & { sub_run: string | null }) | null {
  return db
    .query<ItemRow & { sub_run: string | null }, [string, number, number]>(
      `SELECT items.item, key, value, runs.id AS sub_run
       FROM items LEFT JOIN runs ON parent_id = ?1 AND parent_position = ?2 AND runs.item = items.item
       WHERE run_id = ?1 AND position = ?2 AND items.item >= ?3 AND (runs.id IS NULL OR state = 'queued')
       ORDER BY items.item LIMIT 1`,
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
