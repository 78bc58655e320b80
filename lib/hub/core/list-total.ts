// What lists have in common: the total number of entries, whichever page is read, and how a text is looked for.

import { type AnyColumn, count, type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Db } from '../../../db/hub/store.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import { counted } from '../../wire/page.ts'

export async function countOf(db: Db, table: SQLiteTable, where?: SQL): Promise<number> {
  const [row] = await db
    .select({ total: sql<number>`count(*)`.mapWith(Number) })
    .from(table)
    .where(where)
  return row!.total
}

/** The same for a long list, which is counted only up to a bound. */
export async function countUpTo(db: Db, table: SQLiteTable, where?: SQL) {
  const some = db
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(where)
    .limit(MOST_COUNTED + 1)
    .as('some')
  const [row] = await db.select({ found: count() }).from(some)
  return counted(Number(row!.found))
}

/** Text as a pattern of LIKE that fits only itself. */
export const literal = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')

export const beginsWith = (column: AnyColumn, text: string): SQL =>
  sql`${column} LIKE ${`${literal(text)}%`} ESCAPE '\\'`
