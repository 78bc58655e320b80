// The total number of entries in a list, whichever page is read.

import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Db } from '../../db/hub/store.ts'

export async function countOf(db: Db, table: SQLiteTable, where?: SQL): Promise<number> {
  const [row] = await db
    .select({ total: sql<number>`count(*)`.mapWith(Number) })
    .from(table)
    .where(where)
  return row!.total
}
