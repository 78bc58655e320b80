// Backup and restore of a hub's SQLite database. Copies are complete and checked, and a partial file never has the
// final name. A backup can be made while the hub runs; a restore requires that it is stopped. PostgreSQL has its own
// tools.

import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { CadreError, messageOf } from '../../lib/error.ts'
import { openDatabase, readMigrations, versionOf } from '../open.ts'
import { isPostgres, MIGRATIONS } from './store.ts'

/** Copies the database at `location` to `file`, which must not exist. Returns the size in bytes. */
export function backup(location: string, file: string): number {
  if (isPostgres(location)) throw useTools('pg_dump --format=custom --file', file)
  if (!existsSync(location))
    throw new CadreError('not_found', `there is no database at ${location}; set the path with --database`)
  if (existsSync(file)) throw exists(file)
  return copy(location, file, temporary => {
    try {
      // A link instead of a rename, because a link never replaces a file that was created there in the meantime.
      linkSync(temporary, file)
    } catch (error) {
      throw (error as { code?: string }).code === 'EEXIST' ? exists(file) : error
    }
  })
}

/**
 * Makes `file` the database at `location`. An existing database is replaced only with `replace`, and only if no process
 * has it open. A file that is not a valid database of a hub, or that belongs to a newer version, is refused.
 * `revokeTokens` ends the tokens of people that count in it: one that was revoked since the copy would count again.
 */
export async function restore(
  location: string,
  file: string,
  { replace = false, revokeTokens = false } = {},
): Promise<number> {
  if (isPostgres(location)) throw useTools('pg_restore --clean --dbname', '<database>', file)
  if (!existsSync(file)) throw new CadreError('not_found', `there is no file ${file}`)
  const known = (await readMigrations(`${MIGRATIONS}/sqlite`)).length
  const version = inspect(file, versionOf)
  if (version > known) {
    throw new CadreError(
      'conflict',
      `${file} has schema version ${version}, but this program supports at most ${known}: upgrade cadre first`,
    )
  }
  if (existsSync(location) && !replace) {
    throw new CadreError('conflict', `${location} already exists: back it up, then restore with --replace`)
  }
  return copy(file, location, temporary => {
    if (existsSync(location)) leaveAlone(location)
    if (revokeTokens) endTokens(temporary)
    // SQLite would apply a remaining log to the restored database.
    for (const rest of ['-wal', '-shm', '-journal']) rmSync(location + rest, { force: true })
    renameSync(temporary, location)
  })
}

/** Writes a checked copy of `from` to a temporary file, which `install` then moves to its final name. */
function copy(from: string, to: string, install: (temporary: string) => void): number {
  const temporary = `${resolve(to)}.${crypto.randomUUID()}.draft`
  try {
    closeSync(openSync(temporary, 'wx', 0o600))
    inspect(from, db => db.run('VACUUM INTO ?', [temporary]))
    inspect(temporary, db => {
      const [problem] = db.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
      if (problem?.integrity_check !== 'ok') throw new CadreError('conflict', `${from}: ${problem?.integrity_check}`)
    })
    chmodSync(temporary, 0o600)
    synced(temporary)
    install(temporary)
    synced(dirname(temporary))
    return statSync(to).size
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Opens and reads a database of a hub. Throws `conflict` for any other file. */
function inspect<T>(file: string, read: (db: Database) => T): T {
  let db: Database | undefined
  try {
    db = openDatabase(file, { readonly: true })
    db.query('SELECT id FROM tokens LIMIT 1').get()
    return read(db)
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error
    if (error.code === 'SQLITE_FULL') {
      const what = `no room for a copy of ${file}: free some space where it goes, or name another place`
      throw new CadreError('unavailable', what, { cause: error })
    }
    throw new CadreError('conflict', `${file} must be a valid database of a hub: ${messageOf(error)}`, { cause: error })
  } finally {
    db?.close()
  }
}

function endTokens(file: string): void {
  const db = new Database(file)
  try {
    db.run("UPDATE tokens SET revoked_at = ? WHERE type = 'user' AND revoked_at IS NULL", [Date.now()])
  } finally {
    db.close()
  }
  synced(file)
}

/** Leaving WAL mode needs exclusive access, so it fails while a hub has the database open, even if the hub is idle. */
function leaveAlone(location: string): void {
  const db = new Database(location)
  try {
    db.run('PRAGMA journal_mode = DELETE')
  } catch (error) {
    throw new CadreError('conflict', `${location} is in use: stop the hub, then restore`, { cause: error })
  } finally {
    db.close()
  }
}

function synced(path: string): void {
  const handle = openSync(path, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

const exists = (file: string) => new CadreError('conflict', `${file} already exists; choose another name`)

function useTools(...command: string[]): CadreError {
  return new CadreError(
    'invalid_request',
    `this hub uses PostgreSQL: use PostgreSQL's own tools, for example ${command.join(' ')}`,
  )
}
