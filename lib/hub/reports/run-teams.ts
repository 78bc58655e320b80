// The teams that top runs had, in each realm. Triggers of the database write each of them down with its first run, whichever
// version of a hub writes that, so that nobody goes through a million runs for a few names. A name stays when its runs are
// deleted.

import { type AnyColumn, and, desc, eq, inArray, sql } from 'drizzle-orm'
import { postgres, sqlite } from '../../../db/hub/columns.ts'
import type { Store } from '../../../db/hub/store.ts'
import { hasTable } from '../core/has-table.ts'
import type { Where } from './run-texts.ts'

const ofDialect = ({ table, text }: typeof sqlite) =>
  table('run_teams', { realm_id: text().notNull(), team: text().notNull() })
const tables = { sqlite: ofDialect(sqlite), postgres: ofDialect(postgres) }

/** So many of the newest runs say which teams there are, where the engine lacks the triggers. */
const NEWEST = 10_000

/** A page of the names in these realms, in the order of the alphabet, and how many there are. */
export async function teamsOfRuns(
  store: Store,
  where: Where,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ teams: string[]; total: number }> {
  const { db, runs, realms } = store
  const within = (realm_id: AnyColumn) =>
    'realm' in where
      ? eq(realm_id, where.realm)
      : inArray(realm_id, db.select({ id: realms.id }).from(realms).where(where.reached))
  const written = tables[store.dialect]
  const newest = () =>
    db
      .select({ team: runs.team })
      .from(runs)
      .where(and(within(runs.realm_id), eq(runs.run_id, runs.root_run_id)))
      .orderBy(desc(runs.run_id))
      .limit(NEWEST)
      .as('newest')
  const rows = (await hasTable(store, 'run_teams'))
    ? await db.selectDistinct({ team: written.team }).from(written).where(within(written.realm_id))
    : await db.selectDistinct({ team: sql<string>`team` }).from(newest())
  const all = rows.map(({ team }) => team).sort()
  return { teams: all.slice(offset, offset + limit), total: all.length }
}
