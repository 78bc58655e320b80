// The hub's tables of what hubs agree on: which of them does each chore, and what came of it last; and the words by which they
// wake each other on a database that passes no notifications on.

import type { Columns } from './columns.ts'

export function choreTables({ table, text, int, index }: Columns) {
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

  const news = table(
    'news',
    {
      id: text().primaryKey(),
      /** When it was written, by the clock of the database. */
      at: int().notNull(),
      /** A list of topics in JSON. */
      topics: text().notNull(),
    },
    row => [index('news_at').on(row.at)],
  )

  return { chores, news }
}
