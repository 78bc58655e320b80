// The committed migrations are what the schema says, and bring every earlier database up to date.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  generateDrizzleJson,
  generateMigration,
  generateSQLiteDrizzleJson,
  generateSQLiteMigration,
} from 'drizzle-kit/api'
import { postgres, sqlite } from '../../db/hub/columns.ts'
import { openStore } from '../../db/hub/open-store.ts'
import { tables } from '../../db/hub/schema.ts'
import { migrate, openDatabase, readMigrations } from '../../db/open.ts'
import { folder } from '../support/folder.ts'

async function lastSnapshot(dialect: string) {
  const meta = resolve(import.meta.dir, '../../db/hub/migrations', dialect, 'meta')
  const names = [...new Bun.Glob('*_snapshot.json').scanSync(meta)].sort()
  return Bun.file(`${meta}/${names.at(-1)}`).json()
}

/** What to do when a table has something that no migration makes. */
const MISSING = 'write the migration: see "A column of the hub" in docs/architecture.md'

test('SQLite', async () => {
  const before = await lastSnapshot('sqlite')
  const after = await generateSQLiteDrizzleJson(tables(sqlite), before.id)
  expect(await generateSQLiteMigration(before, after), MISSING).toEqual([])
})

test('PostgreSQL', async () => {
  const before = await lastSnapshot('postgres')
  const after = generateDrizzleJson(tables(postgres), before.id)
  expect(await generateMigration(before, after), MISSING).toEqual([])
})

test('a database of each earlier version is brought up to date, with what is in it, and kept beside', async () => {
  const migrations = await readMigrations(resolve(import.meta.dir, '../../db/hub/migrations/sqlite'))
  expect(migrations.length).toBeGreaterThan(1)
  for (let version = 1; version < migrations.length; version++) {
    const file = join(folder(), 'hub.db')
    const db = openDatabase(file)
    migrate(db, file, migrations.slice(0, version))
    db.run("INSERT INTO users (username, password_hash, site_admin, created_at) VALUES ('kept', 'x', 0, 1)")
    db.close()
    const store = await openStore(file)
    expect(await store.db.select({ username: store.users.username }).from(store.users)).toEqual([{ username: 'kept' }])
    expect(await store.db.select().from(store.runs)).toEqual([])
    await store.close()
    expect(existsSync(`${file}.v${version}.backup`)).toBe(true)
  }
})

test('a list of teams from before lists were by scope: lines keep who added them, and slugs are taken', async () => {
  const migrations = await readMigrations(resolve(import.meta.dir, '../../db/hub/migrations/sqlite'))
  const file = join(folder(), 'hub.db')
  const db = openDatabase(file)
  migrate(db, file, migrations.slice(0, 5))
  db.run(`INSERT INTO users VALUES (1, 'ann', 'x', 0, 1, NULL, NULL);
    INSERT INTO orgs VALUES (1, 'acme', 'Acme', 1);
    INSERT INTO scopes VALUES (7, 1, 'acme', 'Acme', 1);
    INSERT INTO realms VALUES ('r', 1, 'main', 'Main', 1);
    INSERT INTO realm_teams VALUES ('r', '@acme/a', 2), ('r', '@acme/b', 3), ('r', '@former/x', 4);
    INSERT INTO audit (at, user_id, realm_id, action, target) VALUES
      (1, 1, NULL, 'scopes/create', 'acme'), (2, 1, 'r', 'realms/add_team', '@acme/a'), (2, 1, NULL, 'scopes/create', 'gone')`)
  db.close()
  const { db: now, realmTeams, scopeSlugs, close } = await openStore(file)
  expect(await now.select().from(realmTeams).orderBy(realmTeams.team)).toEqual([
    { realm_id: 'r', team: '@acme/a', scope_id: 7, added_at: 2, added_by: 1 },
    { realm_id: 'r', team: '@acme/b', scope_id: 7, added_at: 3, added_by: null },
  ])
  const slugs = await now.select().from(scopeSlugs).orderBy(scopeSlugs.slug)
  expect(slugs.map(({ slug }) => slug)).toEqual(['acme', 'former', 'gone'])
  await close()
})
