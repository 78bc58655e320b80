// Opens the hub's database: SQLite in a file, or PostgreSQL (postgres-store.ts).

import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { CadreError, messageOf } from '../../lib/error.ts'
import { keepChangesInMemory, migrate, openDatabase, readMigrations, versionOf } from '../open.ts'
import { sqlite } from './columns.ts'
import { Commits, HIGHEST_COUNT } from './commits.ts'
import { Disk } from './disk.ts'
import { GroupCommit } from './group-commit.ts'
import { MarkFile } from './mark-file.ts'
import { openPostgres } from './postgres-store.ts'
import { tables } from './schema.ts'
import {
  behindSchema,
  type Db,
  isPostgres,
  keepForAfter,
  MIGRATIONS,
  type Store,
  type StoreOptions,
  withItself,
} from './store.ts'

const OPTIONS: StoreOptions = { pool: 10, statementMs: 5_000, isPooled: false }

/**
 * Opens and migrates the database at `postgres://…` or at the path of a SQLite file. Throws `unavailable` when that does
 * not work.
 */
export async function openStore(location: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  try {
    return await (isPostgres(location) ? openPostgres(location, { ...OPTIONS, ...options }) : openSqlite(location))
  } catch (cause) {
    throw cause instanceof CadreError ? cause : unopened(location, cause)
  }
}

/** The error that the database at `location` cannot be opened. */
export function unopened(location: string, cause: unknown): CadreError {
  const why = messageOf(cause).split('\n', 1)[0]
  return new CadreError('unavailable', `the database ${shownLocation(location)} cannot be opened: ${why}`, { cause })
}

/** Without the password, which an address may contain. */
function shownLocation(location: string): string {
  const url = isPostgres(location) ? URL.parse(location) : null
  if (!url) return isPostgres(location) ? 'postgres://…' : location
  return `postgres://${url.host}${url.pathname}`
}

async function openSqlite(file: string): Promise<Store> {
  const writer = openDatabase(file)
  const migrations = await readMigrations(`${MIGRATIONS}/sqlite`)
  migrate(writer, file, migrations)
  keepChangesInMemory(writer)
  const reader = openDatabase(file, { readonly: true })
  const tx: Db = drizzle({ client: cachingStatements(writer) })
  const version = reader.query<{ data_version: number }, []>('PRAGMA data_version')
  // The epoch is needed several times per request, so it is read once per turn of the event loop.
  let epoch: number | null = null
  const commits = new Commits()
  const counted = counter(writer)
  let count: number | null = null
  const writes = new GroupCommit(
    writer,
    () => {
      epoch = null
      if (count !== null) commits.noteCommit('', count)
    },
    () => {
      count = counted()
    },
  )
  const disk = new Disk(file)
  const written = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await writes.write(work)
    } catch (error) {
      disk.failed(error)
      throw error
    }
  }

  const write = async <T>(work: (tx: Db) => Promise<T>): Promise<T> => {
    const { result, committed } = await written(async () => {
      const committed: (() => void)[] = []
      keepForAfter(tx, committed)
      return { result: await work(tx), committed }
    })
    for (const then of committed) then()
    return result
  }

  const store: Omit<Store, 'forChores'> = {
    ...tables(sqlite),
    dialect: 'sqlite',
    db: drizzle({ client: cachingStatements(reader) }),
    write,
    writeAfter: write,
    hold: query => query,
    claim: query => query,
    epoch() {
      if (epoch !== null) return epoch
      setImmediate(() => {
        epoch = null
      })
      epoch = version.get()!.data_version
      return epoch
    },
    channel: null,
    polling: null,
    commits,
    identity: async () => identityOfFile(file),
    storedCount: async () => Number(reader.query<{ count: number | null }, []>(HIGHEST_COUNT).get()!.count ?? 0),
    writeUnchecked: write,
    markFile: new MarkFile(file),
    problem: async () => behindSchema(versionOf(reader), migrations.length) ?? (await disk.problem()),
    degraded: async () => null,
    connections: () => null,
    async close() {
      await writes.close()
      reader.close()
      writer.close()
    },
  }
  return withItself(store)
}

/** Counts the transactions of SQLite that change something. Called at the end of one. Returns null when nothing has changed. */
function counter(db: Database): () => number | null {
  const changes = db.query<{ changes: number }, []>('SELECT total_changes() AS changes')
  const count = db.query<{ count: number }, []>(
    `INSERT INTO memory_counts (lane, count) SELECT '', 1 WHERE true
     ON CONFLICT (lane) DO UPDATE SET count = count + 1 RETURNING count`,
  )
  let before = changes.get()!.changes
  return () => {
    if (changes.get()!.changes === before) return null
    const counted = count.get()!.count
    before = changes.get()!.changes
    return counted
  }
}

/**
 * The inode of the file and its time of birth: a copy has others, wherever it is put. A system that does not know the time
 * of birth gives the last change of the inode instead.
 */
function identityOfFile(file: string): string {
  const { ino, birthtimeNs, ctimeNs } = statSync(file, { bigint: true })
  return `${ino}/${birthtimeNs === ctimeNs ? '' : birthtimeNs}`
}

/**
 * Makes a database keep the statements that Drizzle prepares. Drizzle prepares each query anew, and a hub asks the same
 * questions all the time.
 */
function cachingStatements(db: Database): Database {
  db.prepare = db.query.bind(db) as Database['prepare']
  return db
}
