// How a SQLite database is opened and brought up to date: durable by default, one writer, numbered migrations.

import { constants, Database, SQLiteError } from 'bun:sqlite'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CadreError } from '../lib/error.ts'

/** A numbered step: the SQL that brings a database from version `number - 1` to `number`. */
export interface Migration {
  number: number
  name: string
  sql: string
}

/** Reads `NNNN_name.sql` files (numbered from 0 or 1, without a gap) as migrations 1, 2, … */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = [...new Bun.Glob('[0-9][0-9][0-9][0-9]_*.sql').scanSync(folder)].sort()
  return Promise.all(
    names.map(async (name, index) => ({ number: index + 1, name, sql: await Bun.file(`${folder}/${name}`).text() })),
  )
}

/**
 * Opens `file` (`:memory:` too). FULL, not NORMAL: an acknowledged commit survives a power cut.
 * Bun's own defaults (busy timeout 0, foreign keys off, rollback journal) fit none of our uses.
 */
export function openDatabase(file: string, options: { readonly?: boolean } = {}): Database {
  if (file !== ':memory:' && !options.readonly) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // Only its owner reads it; the files that SQLite puts beside it take over the mode.
    closeSync(openSync(file, 'a', 0o600))
  }
  const db = new Database(file, options.readonly ? { readonly: true, strict: true } : { create: true, strict: true })
  db.run('PRAGMA busy_timeout = 5000')
  if (!options.readonly) {
    db.run('PRAGMA auto_vacuum = INCREMENTAL')
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = FULL')
  }
  db.run('PRAGMA foreign_keys = ON')
  return db
}

/**
 * KiB of pages that a run database keeps in memory as it needs them. A thousand runs that start at once write more than
 * SQLite's own 2 MiB, which it then has to read again from its log (measured: 155 against 141 ms of processor time).
 */
const CACHE_KIB = 16_384

/** What the write-ahead log holds before it is written back (1,000 pages), and a little more. */
const LOG_BYTES = 1_100 * 4_120

/**
 * Opens the database of a process that holds it alone, and brings it up to date. `grown`: its write-ahead log has the full
 * length from the start and keeps it, for a commit whose sync does not change the length of a file is cheaper (measured
 * on ext4: 82 instead of 154 µs).
 */
export function openRunDatabase(file: string, migrations: readonly Migration[], grown: boolean): Database {
  let db = openDatabase(file)
  migrate(db, file, migrations)
  if (grown) {
    db.close()
    growLog(file)
    db = openDatabase(file)
    db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
  }
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`)
  return db
}

/** SQLite takes zeros behind the last frame of its log for none. */
function growLog(file: string): void {
  const log = openSync(`${file}-wal`, 'a', 0o600)
  try {
    const missing = LOG_BYTES - fstatSync(log).size
    if (missing > 0) {
      writeSync(log, new Uint8Array(missing))
      fsyncSync(log)
    }
  } catch (error) {
    // A disk without that much room works with a short log.
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    closeSync(log)
  }
}

/**
 * Opens `file` for reading, also where nothing can be written. Readers share an index of the write-ahead log in a file of
 * its own; a full disk has no room for that file, and on a read-only disk it cannot be made.
 */
export function openForReading(file: string): Database {
  try {
    return readable(openDatabase(file, { readonly: true }))
  } catch (error) {
    if (!isDiskError(error)) throw error
  }
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false })
  if (!log || log.size === 0) {
    // Nobody has it open, and everything is in the one file.
    const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
    return readable(new Database(`${pathToFileURL(file)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI))
  }
  // A connection that keeps all others out has its index in memory.
  const db = new Database(file, { readwrite: true, create: false, strict: true })
  db.run('PRAGMA locking_mode = EXCLUSIVE')
  return readable(db)
}

/** Throws now what the first statement would throw. */
function readable(db: Database): Database {
  try {
    db.run('PRAGMA busy_timeout = 5000')
    versionOf(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

const DISK_CODES = ['SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_READONLY', 'SQLITE_CANTOPEN']

/** The disk did not do what was asked of it: it is full, read-only or broken. */
export function isDiskError(error: unknown): error is SQLiteError {
  return error instanceof SQLiteError && DISK_CODES.some(code => error.code?.startsWith(code))
}

export function versionOf(db: Database): number {
  return db.query<{ user_version: number }, []>('PRAGMA user_version').get()!.user_version
}

/**
 * Applies what is missing, each step in its own transaction; an existing database is copied to
 * `<file>.v<version>.backup` first. A database newer than the program is refused, untouched.
 */
export function migrate(db: Database, file: string, migrations: readonly Migration[]): void {
  const version = versionOf(db)
  if (version > migrations.length) {
    throw new CadreError(
      'conflict',
      `${file} has schema version ${version}, this program knows ${migrations.length}: start the newer program, or restore a backup made by this one`,
    )
  }
  if (version === migrations.length) return
  const backup = `${file}.v${version}.backup`
  if (version > 0 && file !== ':memory:' && !existsSync(backup)) copyTo(db, backup)
  for (const { number, sql } of migrations.slice(version)) {
    db.transaction(() => {
      db.run(sql)
      db.run(`PRAGMA user_version = ${number}`)
    }).immediate()
  }
}

/** A copy has its name only once it is whole: what a full disk or a kill left of one must not pass for a copy. */
function copyTo(db: Database, backup: string): void {
  const draft = `${backup}.draft`
  rmSync(draft, { force: true })
  const handle = openSync(draft, 'wx', 0o600)
  try {
    db.run('VACUUM INTO ?', [draft])
    fsyncSync(handle)
    renameSync(draft, backup)
  } finally {
    closeSync(handle)
    rmSync(draft, { force: true })
  }
}
