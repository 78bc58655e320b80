// Backup and restore of a hub's SQLite database: whole, checked, and never half a file under the final name.
// A backup is taken beside a running hub; a restore needs the hub stopped. PostgreSQL brings its own tools.

import { Database, SQLiteError } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { CadreError, messageOf } from '../../lib/error.ts'
import { openDatabase, readMigrations, versionOf } from '../open.ts'
import { isPostgres } from './store.ts'

/** Copies the database at `location` to `file`, which must not exist. Answers the size in bytes. */
export function backup(location: string, file: string): number {
  if (isPostgres(location)) throw useTools('pg_dump --format=custom --file', file)
  if (!existsSync(location)) throw new CadreError('not_found', `no database at ${location}; name it with --database`)
  if (existsSync(file)) throw exists(file)
  return copy(location, file, draft => {
    try {
      // Not a rename: a link never replaces what somebody else put there meanwhile.
      linkSync(draft, file)
    } catch (error) {
      throw (error as { code?: string }).code === 'EEXIST' ? exists(file) : error
    }
  })
}

/**
 * Makes `file` the database at `location`. One that is there is replaced only with `replace`, and only while nobody has
 * it open. Refuses what is no sound database of a hub, or of a newer program.
 */
export async function restore(location: string, file: string, { replace = false } = {}): Promise<number> {
  if (isPostgres(location)) throw useTools('pg_restore --clean --dbname', '<database>', file)
  if (!existsSync(file)) throw new CadreError('not_found', `no file ${file}`)
  const known = (await readMigrations(`${import.meta.dir}/migrations/sqlite`)).length
  const version = inspect(file, versionOf)
  if (version > known) {
    throw new CadreError('conflict', `${file} has schema version ${version}, this program knows ${known}: upgrade it`)
  }
  if (existsSync(location) && !replace) {
    throw new CadreError('conflict', `${location} exists: back it up, then restore with --replace`)
  }
  return copy(file, location, draft => {
    if (existsSync(location)) leaveAlone(location)
    // What is left of a log would be played into the restored database.
    for (const rest of ['-wal', '-shm', '-journal']) rmSync(location + rest, { force: true })
    renameSync(draft, location)
  })
}

/** Writes a checked copy of `from` under a name of its own, and lets `place` put it where it belongs. */
function copy(from: string, to: string, place: (draft: string) => void): number {
  const draft = `${resolve(to)}.${crypto.randomUUID()}.draft`
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    inspect(from, db => db.run('VACUUM INTO ?', [draft]))
    inspect(draft, db => {
      const [problem] = db.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
      if (problem?.integrity_check !== 'ok') throw new CadreError('conflict', `${from}: ${problem?.integrity_check}`)
    })
    chmodSync(draft, 0o600)
    synced(draft)
    place(draft)
    synced(dirname(draft))
    return statSync(to).size
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Reads a database of a hub. Throws `conflict` for any other file. */
function inspect<T>(file: string, read: (db: Database) => T): T {
  let db: Database | undefined
  try {
    db = openDatabase(file, { readonly: true })
    db.query('SELECT id FROM tokens LIMIT 1').get()
    return read(db)
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error
    throw new CadreError('conflict', `${file} is no sound database of a hub: ${messageOf(error)}`, { cause: error })
  } finally {
    db?.close()
  }
}

/** Leaving WAL takes the database for oneself alone, so it fails while a hub has it open, however idle. */
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

const exists = (file: string) => new CadreError('conflict', `${file} exists already; choose another name`)

function useTools(...command: string[]): CadreError {
  return new CadreError('invalid_request', `this hub is on PostgreSQL: use its own tools, as ${command.join(' ')}`)
}
