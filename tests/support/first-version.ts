// A database of PostgreSQL as the first version of a hub has left it.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { MIGRATIONS } from '../../db/hub/store.ts'

const PLACE = join(MIGRATIONS, 'postgres')

/** Makes the tables of the first version. */
export async function firstVersion(sql: Bun.SQL): Promise<void> {
  const [first] = readdirSync(PLACE)
    .filter(name => name.endsWith('.sql'))
    .sort()
  const { entries } = await Bun.file(join(PLACE, 'meta/_journal.json')).json()
  await sql.unsafe(await Bun.file(join(PLACE, first!)).text()).simple()
  await sql`CREATE TABLE __drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`
  await sql`INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('first', ${entries[0].when})`
}
