// Everything that the database of a hub holds, to look for what must not be in it.

import { is, Table } from 'drizzle-orm'
import type { Store } from '../../db/hub/store.ts'

/** The rows of every table, by the name that the store has for it. */
export async function tablesOf(store: Store): Promise<Record<string, object[]>> {
  const found: Record<string, object[]> = {}
  for (const [name, table] of Object.entries(store)) {
    if (is(table, Table)) found[name] = await store.db.select().from(table as Store['users'])
  }
  return found
}
