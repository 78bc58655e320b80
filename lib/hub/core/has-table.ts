// Whether the database has what a migration made that an engine may refuse.

import { sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'

const known = new WeakMap<Store['commits'], Map<string, Promise<boolean>>>()

/** SQLite refuses none of them. */
export async function hasTable({ dialect, db, commits }: Store, table: string): Promise<boolean> {
  if (dialect === 'sqlite') return true
  const ofStore = known.get(commits) ?? new Map<string, Promise<boolean>>()
  known.set(commits, ofStore)
  let found = ofStore.get(table)
  if (!found) {
    const name = sql<string | null>`to_regclass(${table}::text)::text`
    found = Promise.resolve(db.select({ name }).from(sql`(SELECT 1) AS one`)).then(([row]) => row!.name !== null)
    found.catch(() => ofStore.delete(table))
    ofStore.set(table, found)
  }
  return found
}
