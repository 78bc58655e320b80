// The hub's table of its chores: which hub does each of them, and what came of it last.

import type { Columns } from './columns.ts'

export function choreTables({ table, text, int }: Columns) {
  const chores = table('chores', {
    name: text().primaryKey(),
    /** The id of the hub that does it; null: none. */
    holder: text(),
    /** Until when, by the clock of the database, unless the holder says again that it does it. */
    lease_until: int().notNull().default(0),
    /** When the last run ended, how long it took in milliseconds, and why it failed; null: it did not. */
    last_run_at: int(),
    last_run_ms: int(),
    last_error: text(),
    /** When a run failed last. */
    last_error_at: int(),
  })

  return { chores }
}
