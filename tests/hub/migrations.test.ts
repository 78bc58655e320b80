// The committed migrations are what the schema says: regenerating changes nothing.

import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import {
  generateDrizzleJson,
  generateMigration,
  generateSQLiteDrizzleJson,
  generateSQLiteMigration,
} from 'drizzle-kit/api'
import * as postgres from '../../db/hub/postgres.ts'
import * as sqlite from '../../db/hub/sqlite.ts'

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
