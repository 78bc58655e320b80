// Opens SQLite databases and migrates them: durable by default, one writer, numbered migrations.

import { constants, Database, SQLiteError } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CadreError } from '../lib/error.ts'

// Statements that are kept prepared, for each database. There are some three hundred; beyond Bun's twenty each would be
// prepared anew for most of its uses (measured: a fifth of the processor time of a delivery that starts a run).
Database.MAX_QUERY_CACHE_SIZE = 1_000

/** The SQL that migrates a database from version `number - 1` to `number`. */
export interface Migration {
  number: number
  name: string
  sql: string
}

/**
 * Reads `NNNN_name.sql` files, numbered from 0 or 1 without a gap, as migrations 1, 2, … A database knows only how many of
 * them it has, so nothing may ever come between two of them.
 */
export async function readMigrations(folder: string): Promise<Migration[]> {
  return Promise.all(
    namesIn(folder).map(async (name, index) => ({
      number: index + 1,
      name,
      sql: await Bun.file(`${folder}/${name}`).text(),
    })),
  )
}

/** The version that a database has once all of them were applied. */
export const countMigrations = (folder: string): number => namesIn(folder).length

function namesIn(folder: string): string[] {
  const names = [...new Bun.Glob('[0-9][0-9][0-9][0-9]_*.sql').scanSync(folder)].sort()
  const numberOf = (name: string) => Number(name.slice(0, 4))
  for (const [index, name] of names.entries()) {
    if (numberOf(name) === index + Math.min(numberOf(names[0]!), 1)) continue
    throw new Error(`${folder}/${name} has a number that is taken, or leaves one out`)
  }
  return names
}

/**
 * Opens `file`, which may be `:memory:`. `synchronous` is FULL instead of NORMAL, so that an acknowledged commit
 * survives a power cut. Bun's defaults (busy timeout 0, foreign keys off, rollback journal) do not suit us.
 */
export function openDatabase(file: string, options: { readonly?: boolean } = {}): Database {
  if (file !== ':memory:' && !options.readonly) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // Only the owner may read the database. SQLite gives its other files the same mode.
    closeSync(openSync(file, 'a', 0o600))
  }
  const db = new Database(file, options.readonly ? { readonly: true, strict: true } : { create: true, strict: true })
  db.run('PRAGMA busy_timeout = 5000')
  if (!options.readonly) {
    // Only a new database takes this mode. An old one would be written to, and synced, for nothing.
    if (isEmpty(db)) db.run('PRAGMA auto_vacuum = INCREMENTAL')
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = FULL')
  }
  db.run('PRAGMA foreign_keys = ON')
  return db
}

/**
 * Maximum page cache of a writer in KiB. A thousand runs that start at once write more than SQLite's default of 2 MiB,
 * which it then has to read again from its log (measured: 155 ms of processor time instead of 141 ms). A report of 4 MiB
 * to a hub writes the pages of its indexes again and again then (measured: 26,400 writes instead of 4,200).
 */
const CACHE_KIB = 16_384

/** Keeps in memory what large transactions change. */
export function keepChangesInMemory(db: Database): void {
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`)
  // SQLite keeps what the pages were that a savepoint, or a statement for many rows, changes. Once that has exceeded
  // 64 KiB, it would go to a temporary file from then on (measured, with a savepoint for each unit: 8,000 writes to it for
  // a thousand runs of three phases, twice as many as to the log).
  db.run('PRAGMA temp_store = MEMORY')
}

/** Slightly more than the size of the write-ahead log at a checkpoint (1,000 pages). */
const LOG_BYTES = 1_100 * 4_120

/** Opens and migrates a database that this process uses alone. Throws `unavailable` for one that is damaged. */
export function openRunDatabase(file: string, migrations: readonly Migration[]): Database {
  if (!existsSync(file)) createDatabase(file, migrations)
  const db = sound(file, () => {
    const opened = openDatabase(file)
    migrate(opened, file, migrations)
    return opened
  })
  keepChangesInMemory(db)
  return db
}

/**
 * Makes a database that has its name only when it is complete. Made in place, SQLite would sync each of its steps, eleven
 * times instead of once. The folder is not synced here: if the new name is lost, nothing is lost with it yet.
 */
function createDatabase(file: string, migrations: readonly Migration[]): void {
  const temporary = `${file}.draft`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  rmSync(temporary, { force: true })
  const handle = openSync(temporary, 'wx', 0o600)
  try {
    const db = new Database(temporary, { strict: true, readwrite: true })
    try {
      db.run('PRAGMA synchronous = OFF')
      db.run('PRAGMA auto_vacuum = INCREMENTAL')
      migrate(db, temporary, migrations)
      db.run('PRAGMA journal_mode = WAL')
    } finally {
      db.close()
    }
    fsyncSync(handle)
    // The log of an earlier database with this name, which somebody removed without it, would be read as the log of this.
    for (const end of ['-wal', '-shm', '-journal']) rmSync(file + end, { force: true })
    renameSync(temporary, file)
  } finally {
    closeSync(handle)
    rmSync(temporary, { force: true })
  }
}

/**
 * Gives the write-ahead log of an open database its full length and makes it keep it: a commit is cheaper when its sync
 * does not change the length of a file (measured on ext4: 82 µs instead of 154 µs). The log is filled with zeros, which
 * SQLite ignores behind the last frame. They are appended, wherever the end then is, so commits need not wait for them.
 */
export async function growLog(db: Database, file: string): Promise<void> {
  db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
  const log = await open(`${file}-wal`, 'a', 0o600)
  try {
    const missing = LOG_BYTES - (await log.stat()).size
    if (missing <= 0) return
    await log.appendFile(new Uint8Array(missing))
    await log.datasync()
  } catch (error) {
    // On a disk without enough space the log stays short.
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await log.close()
  }
}

/**
 * Opens `file` for reading, even on a disk that cannot be written. Readers share an index of the write-ahead log in a
 * separate file, which cannot be created on a full or read-only disk. Throws `unavailable` for a damaged database.
 */
export function openForReading(file: string): Database {
  try {
    return sound(file, () => readable(openDatabase(file, { readonly: true })))
  } catch (error) {
    if (!isDiskError(error)) throw error
  }
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false })
  if (!log || log.size === 0) {
    // No process has the database open, and it consists of this file alone.
    const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
    return readable(new Database(`${Bun.pathToFileURL(file)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI))
  }
  // A connection with an exclusive lock keeps the index in memory.
  const db = new Database(file, { readwrite: true, create: false, strict: true })
  db.run('PRAGMA locking_mode = EXCLUSIVE')
  return readable(db)
}

/** Runs `open`. When the file is damaged or is not a database, the error names it and says what to do. */
function sound(file: string, open: () => Database): Database {
  try {
    return open()
  } catch (error) {
    throw damageOf(error, file) ?? error
  }
}

/**
 * The error to report if `thrown` says that the database is damaged, and null otherwise. Damage is also found long after
 * the open, by the first statement that reads the damaged pages, and SQLite does not say of which file.
 */
export function damageOf(thrown: unknown, file: string): CadreError | null {
  if (!(thrown instanceof SQLiteError) || !/^SQLITE_(NOTADB|CORRUPT)/.test(thrown.code ?? '')) return null
  const advice = 'put it back from a copy, or move it away with its -wal file to begin with an empty one'
  return new CadreError('unavailable', `${file} is damaged (${thrown.message}): ${advice}`, { cause: thrown })
}

/** Runs a statement, so that an error is thrown now instead of at the first use. */
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

/** Whether the error was caused by the disk: it is full, read-only or broken. */
export function isDiskError(error: unknown): error is SQLiteError {
  return error instanceof SQLiteError && DISK_CODES.some(code => error.code?.startsWith(code))
}

export function versionOf(db: Database): number {
  return db.query<{ user_version: number }, []>('PRAGMA user_version').get()!.user_version
}

function isEmpty(db: Database): boolean {
  return db.query<{ page_count: number }, []>('PRAGMA page_count').get()!.page_count === 0
}

/**
 * Applies the missing migrations, all in one transaction. An existing database is first copied to
 * `<file>.v<version>.backup`. A database that is newer than the program is refused without any change.
 */
export function migrate(db: Database, file: string, migrations: readonly Migration[]): void {
  const version = versionOf(db)
  if (version > migrations.length) {
    throw new CadreError(
      'conflict',
      `${file} has schema version ${version}, but this program supports at most ${migrations.length}: start the newer program, or restore a backup made by this one`,
    )
  }
  if (version === migrations.length) return
  const backup = `${file}.v${version}.backup`
  if (version > 0 && file !== ':memory:' && !existsSync(backup)) copyTo(db, backup)
  db.transaction(() => {
    for (const { sql } of migrations.slice(version)) db.run(sql)
    db.run(`PRAGMA user_version = ${migrations.length}`)
  }).immediate()
}

/**
 * Copies the database. The copy gets its name only when it is complete, so that a partial copy after a full disk or a
 * kill is not mistaken for a backup.
 */
function copyTo(db: Database, backup: string): void {
  const temporary = `${backup}.draft`
  rmSync(temporary, { force: true })
  const handle = openSync(temporary, 'wx', 0o600)
  try {
    db.run('VACUUM INTO ?', [temporary])
    fsyncSync(handle)
    renameSync(temporary, backup)
  } finally {
    closeSync(handle)
    rmSync(temporary, { force: true })
  }
}
