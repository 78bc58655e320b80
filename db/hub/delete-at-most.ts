// Deletes some rows of a table, by the place where they lie, because neither engine has a limit for DELETE.

import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Db, Store } from './store.ts'

/** Deletes at most `most` rows that fulfil `where`. Returns how many. */
export async function deleteAtMost(
  { dialect }: Pick<Store, 'dialect'>,
  tx: Db,
  table: SQLiteTable,
  { where, most }: { where: SQL | undefined; most: number },
): Promise<number> {
  // A list of places is fetched row by row. PostgreSQL would read the whole table for a subquery.
  const some =
    dialect === 'sqlite'
      ? sql`rowid IN (SELECT rowid FROM ${table} WHERE ${where} LIMIT ${most})`
      : sql`ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${where} LIMIT ${most}))`
  return (await tx.delete(table).where(some).returning({ one: sql`1` })).length
}
