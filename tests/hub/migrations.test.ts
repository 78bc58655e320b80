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
import * as postgres from '../../db/hub/postgres.ts'
import * as sqlite from '../../db/hub/sqlite.ts'
import { openStore } from '../../db/hub/store.ts'
import { migrate, openDatabase, readMigrations } from '../../db/open.ts'
import { folder } from '../support/folder.ts'

async function lastSnapshot(dialect: string) {
  const meta = resolve(import.meta.dir, '../../db/hub/migrations', dialect, 'meta')
  const names = [...new Bun.Glob('*_snapshot.json').scanSync(meta)].sort()
  return Bun.file(`${meta}/${names.at(-1)}`).json()
}

test('SQLite', async () => {
  const before = await lastSnapshot('sqlite')
  const after = await generateSQLiteDrizzleJson({ ...sqlite }, before.id)
  expect(await generateSQLiteMigration(before, after)).toEqual([])
})

test('PostgreSQL', async () => {
  const before = await lastSnapshot('postgres')
  const after = generateDrizzleJson({ ...postgres }, before.id)
  expect(await generateMigration(before, after)).toEqual([])
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
