// The copy of a database that an upgrade leaves beside it: whole and its owner's only, or not there.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDiskError, type Migration, migrate, openDatabase, versionOf } from '../../db/open.ts'
import { smallDisk } from '../support/disk.ts'
import { folder } from '../support/folder.ts'

const FIRST: Migration = { number: 1, name: 'first', sql: 'CREATE TABLE notes (text)' }
const SECOND: Migration = { number: 2, name: 'second', sql: 'ALTER TABLE notes ADD COLUMN author' }

/** A database of the first version with one note in it, of `bytes`. */
function first(home: string, bytes: number): { db: Database; file: string; backup: string } {
  const file = join(home, 'daemon.db')
  const db = openDatabase(file)
  migrate(db, file, [FIRST])
  db.run('INSERT INTO notes VALUES (zeroblob(?))', [bytes])
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  return { db, file, backup: `${file}.v1.backup` }
}

function notesIn(file: string): number {
  const db = new Database(file, { readonly: true })
  try {
    return db.query<{ count: number }, []>('SELECT count(*) AS count FROM notes').get()!.count
  } finally {
    db.close()
  }
}

test('only its owner reads it, and what a kill left of one does no harm', () => {
  const { db, file, backup } = first(folder(), 10)
  writeFileSync(`${backup}.draft`, 'half')
  migrate(db, file, [FIRST, SECOND])
  db.close()
  expect(statSync(backup).mode & 0o777).toBe(0o600)
  expect(notesIn(backup)).toBe(1)
  expect(existsSync(`${backup}.draft`)).toBe(false)
})

test('an upgrade that fails half-way changes nothing', () => {
  const { db, file } = first(folder(), 10)
  const broken: Migration = { number: 3, name: 'third', sql: 'ALTER TABLE missing ADD COLUMN author' }
  expect(() => migrate(db, file, [FIRST, SECOND, broken])).toThrow('missing')
  expect(versionOf(db)).toBe(1)
  expect(db.query('SELECT * FROM notes').columnNames).toEqual(['text'])
  migrate(db, file, [FIRST, SECOND])
  expect(versionOf(db)).toBe(2)
  db.close()
})

test('opening a database that is up to date writes nothing', () => {
  const { db, file } = first(folder(), 10)
  db.close()
  const again = openDatabase(file)
  migrate(again, file, [FIRST])
  expect(statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
  expect(again.query('PRAGMA auto_vacuum').values()).toEqual([[2]])
  again.close()
})

const disk = smallDisk()
if (!disk) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')

test.skipIf(!disk)('one that found no space is made anew when there is', () => {
  using _ = disk!
  const { db, file, backup } = first(disk!.path, 1_000_000)
  disk!.fill(100_000)
  try {
    migrate(db, file, [FIRST, SECOND])
    expect.unreachable()
  } catch (error) {
    expect(isDiskError(error)).toBe(true)
  }
  expect([existsSync(backup), existsSync(`${backup}.draft`)]).toEqual([false, false])
  disk!.free()
  migrate(db, file, [FIRST, SECOND])
  db.close()
  expect(notesIn(backup)).toBe(1)
})
