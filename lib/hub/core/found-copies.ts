// Older copies of the database that were found, as far as they concern what starts runs of a realm.

import { and, eq, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'

/** What is said of an occasion before the discovery. */
export const MAY_HAVE_STARTED =
  'it was due before the hub was found to be on an older copy of its database, and may have been started'

/** Whether a copy concerns a realm, and something was or may have been lost on it. */
export const concernsRealm = ({ copies }: Store, realmId: string): SQL =>
  and(or(isNull(copies.realm_id), eq(copies.realm_id, realmId)), sql`${copies.lost} IS NOT FALSE`)!

/** When the last copy was found that concerns a realm and on which something was lost; null: there was none. */
export async function lastFoundAt(store: Store, tx: Db, realmId: string): Promise<number | null> {
  const { copies } = store
  const [copy] = await tx
    .select({ at: sql<number | null>`max(${copies.found_at})` })
    .from(copies)
    .where(concernsRealm(store, realmId))
  return copy?.at == null ? null : Number(copy.at)
}
