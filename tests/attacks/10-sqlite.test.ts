// A query of a SQLite file only reads, and writes no other file either.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { query } from '../support/query.ts'
import { sqliteDatabase } from '../vendors/databases.ts'

const at = await sqliteDatabase()
const { database: file } = at.settings as { database: string }
afterAll(() => at.close())
await at.sql('CREATE TABLE items (id int)')
await at.sql('INSERT INTO items VALUES (1)')
await at.sql('PRAGMA wal_checkpoint(TRUNCATE)')

const victim = join(folder(), 'victim.db')
const FORBIDDEN = [
  `VACUUM INTO '${victim}'`,
  `vacuum main into '${victim}'`,
  `/* SELECT */ VACUUM INTO '${victim}'`,
  `EXPLAIN VACUUM INTO '${victim}'`,
  `ATTACH '${victim}' AS other`,
  `ATTACH DATABASE '${victim}' AS other; CREATE TABLE other.x (a)`,
  'DETACH main',
  'VACUUM',
  'BEGIN IMMEDIATE',
  'COMMIT',
  'SAVEPOINT x',
  'REINDEX',
  'ANALYZE',
  'PRAGMA user_version = 5',
  'PRAGMA journal_mode = DELETE',
  'PRAGMA wal_checkpoint(TRUNCATE)',
  'PRAGMA writable_schema = ON',
  'PRAGMA incremental_vacuum',
  'INSERT INTO items VALUES (2) RETURNING id',
  'WITH x AS (SELECT 2 AS id) INSERT INTO items SELECT id FROM x RETURNING id',
  'DELETE FROM items RETURNING id',
  'CREATE TEMP TABLE copy AS SELECT * FROM items',
  `SELECT load_extension('${victim}')`,
  `SELECT writefile('${victim}', 'x')`,
  `SELECT 1; VACUUM INTO '${victim}'`,
  `SELECT 1 AS "a;"; ATTACH '${victim}' AS other`,
  '',
  '-- nothing',
]

test.each(FORBIDDEN.map(sql => [sql]))('%s is refused, and no file is made or changed', async sql => {
  const before = readFileSync(file)
  expect((await failureOf(query(at, sql))).sent).toBe('no')
  expect(existsSync(victim)).toBe(false)
  expect(readdirSync(dirname(victim))).toEqual([])
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('what writes is said to be for another action', async () => {
  const error = await failureOf(query(at, `VACUUM INTO '${victim}'`))
  expect(error).toMatchObject({ code: 'read_only', hint: 'a query must only read; use the action `execute` to write' })
  expect(error.message).toContain('the statement does more than read')
  expect((await failureOf(query(at, 'BEGIN'))).message).toContain('the statement returns no rows')
})

test('whatever reads and returns rows is a query', async () => {
  for (const sql of [
    'SELECT id FROM items',
    'VALUES (1)',
    'WITH x AS (SELECT 1 AS a) SELECT a FROM x;',
    'EXPLAIN QUERY PLAN SELECT id FROM items',
    'EXPLAIN SELECT id FROM items',
    'PRAGMA table_info(items)',
    "SELECT name FROM pragma_table_info('items') -- VACUUM INTO",
  ]) {
    expect((await query(at, sql)).items.length).toBeGreaterThan(0)
  }
})
