// Table `items`: the items of maps in their order, as they were when they were first evaluated.

import type { Database } from 'bun:sqlite'
import type { MaskedText } from '../../secrets/masked.ts'
import type { NextItem } from '../core/core.ts'
import { WHOLE } from './runs.ts'

export interface ItemRow {
  item: number
  key: string
  /** The value as JSON. */
  value: string
}

export class Items {
  readonly #db: Database
  readonly #insert

  constructor(db: Database) {
    this.#db = db
    this.#insert = db.query('INSERT INTO items (run_id, position, item, key, value, folder) VALUES (?, ?, ?, ?, ?, ?)')
  }

  insert(
    runId: string,
    position: number,
    from: number,
    items: readonly { key: MaskedText; value: MaskedText; folder: string }[],
  ) {
    for (const [index, { key, value, folder }] of items.entries()) {
      this.#insert.run(runId, position, from + index, key, value, folder)
    }
  }

  delete(runId: string, position: number): void {
    this.#db.query('DELETE FROM items WHERE run_id = ? AND position = ?').run(runId, position)
  }

  /** Deletes the items of a run and of the sub-runs of its team phases. */
  deleteWhole(runId: string): void {
    this.#db.query(`${WHOLE} DELETE FROM items WHERE run_id IN (SELECT id FROM whole)`).run(runId)
  }

  get(runId: string, position: number, item: number): ItemRow | null {
    return this.#db
      .query<ItemRow, [string, number, number]>(
        'SELECT item, key, value FROM items WHERE run_id = ? AND position = ? AND item = ?',
      )
      .get(runId, position, item)
  }

  /** The folder of an item's files below `files/<phase>/`; null where the row is older than the column. */
  folder(runId: string, position: number, item: number): string | null {
    return (
      this.#db
        .query<{ folder: string | null }, [string, number, number]>(
          'SELECT folder FROM items WHERE run_id = ? AND position = ? AND item = ?',
        )
        .get(runId, position, item)?.folder ?? null
    )
  }

  /** The next items to start, beginning at index `from`. */
  next(runId: string, position: number, from: number, limit: number): NextItem[] {
    return this.#db
      .query<NextItem, [string, number, number, number]>(
        `SELECT items.item, key, value, runs.id AS sub_run
         FROM items LEFT JOIN runs ON parent_id = ?1 AND parent_position = ?2 AND runs.item = items.item
         WHERE run_id = ?1 AND position = ?2 AND items.item >= ?3 AND (runs.id IS NULL OR state = 'queued')
         ORDER BY items.item LIMIT ?4`,
      )
      .all(runId, position, from, limit)
  }

  keys(runId: string, position: number, from = 0, limit = 2 ** 31): { item: number; key: string }[] {
    return this.#db
      .query<{ item: number; key: string }, [string, number, number, number]>(
        'SELECT item, key FROM items WHERE run_id = ? AND position = ? AND item >= ? ORDER BY item LIMIT ?',
      )
      .all(runId, position, from, limit)
  }
}
