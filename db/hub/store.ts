// The hub's database: SQLite in a file, or PostgreSQL. Queries are written once, with SQLite's types. Reads use `db`,
// and every change uses `write`, which runs one write at a time on SQLite and retries transactions on PostgreSQL.

import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { drizzle as drizzlePostgres } from 'drizzle-orm/bun-sql'
import { migrate as migratePostgres } from 'drizzle-orm/bun-sql/migrator'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { CadreError, messageOf } from '../../lib/error.ts'
import { ROOT } from '../../lib/program/install-root.ts'
import { keepChangesInMemory, migrate, openDatabase, readMigrations, versionOf } from '../open.ts'
import { type Channel, openChannel } from './channel.ts'
import { postgres, sqlite } from './columns.ts'
import { Commits, HIGHEST_COUNT, IdentityChanged, PostgresCounter, postgresIdentity } from './commits.ts'
import { Disk } from './disk.ts'
import { GroupCommit } from './group-commit.ts'
import { MarkFile } from './mark-file.ts'
import journal from './migrations/postgres/meta/_journal.json'
import { type Tables, tables } from './schema.ts'

export type Db = Omit<BunSQLiteDatabase, 'transaction' | 'run' | 'all' | 'get' | 'values' | '$client'>

export interface Store extends Tables {
  readonly dialect: 'sqlite' | 'postgres'
  /** For reads. */
  readonly db: Db
  /**
   * Runs `work` in one transaction that sees every earlier write. `work` may await only statements of `tx` or the next
   * turn of the event loop, because all other writes wait for it. It may be run again when its transaction was lost.
   */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T>
  /**
   * Like `write`, for a chore that many transactions must not wait for or fail by: on PostgreSQL it reads at the level READ
   * COMMITTED. `work` begins with the change of a row, which keeps all others that change it waiting until it ends.
   */
  writeAfter<T>(work: (tx: Db) => Promise<T>): Promise<T>
  /**
   * A query of a transaction whose rows of the table `of` nobody else changes until the transaction ends. On SQLite that
   * holds for all rows.
   */
  hold<Q>(query: Q, of: object): Q
  /**
   * A query of a transaction whose rows of the table `of` this transaction is about to change. Those that another one is
   * about to change are left out. On SQLite there is no other.
   */
  claim<Q>(query: Q, of: object): Q
  /**
   * A number that changes with every commit of any process. Data that was read is current as long as it does not
   * change. Null when the database has no such number.
   */
  epoch(): number | null
  /**
   * Sends notifications to every process that uses the database; null for SQLite, which serves one process.
   */
  readonly channel: Channel | null
  readonly commits: Commits
  /** What a copy of the database does not have in common with it; empty where the engine does not say. */
  identity(): Promise<string>
  /** The highest count that is stored. */
  storedCount(): Promise<number>
  /** Like `write`, whatever the identity of the database is. */
  writeUnchecked<T>(work: (tx: Db) => Promise<T>): Promise<T>
  /** The file beside a SQLite database; null for PostgreSQL. */
  readonly markFile: MarkFile | null
  /** What keeps the database from being used now, or null. Throws when it does not answer. */
  problem(): Promise<string | null>
  close(): Promise<void>
}

/** The connection of each transaction of PostgreSQL. */
const connections = new WeakMap<Db, Bun.TransactionSQL>()

export const connectionOf = (tx: Db): Bun.TransactionSQL | undefined => connections.get(tx)

const afterwards = new WeakMap<Db, (() => void)[]>()

/** Runs `then` after the transaction of `tx` has been committed. It does not run after a rollback. */
export function afterCommit(tx: Db, then: () => void): void {
  afterwards.get(tx)!.push(then)
}

/** A folder for each dialect. */
export const MIGRATIONS = `${ROOT}/db/hub/migrations`

/**
 * Opens and migrates the database at `postgres://…` or at the path of a SQLite file. Throws `unavailable` when that does
 * not work.
 */
export async function openStore(location: string): Promise<Store> {
  try {
    return await (isPostgres(location) ? openPostgres(location) : openSqlite(location))
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

export function isPostgres(location: string): boolean {
  return /^postgres(ql)?:\/\//.test(location)
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
      afterwards.set(tx, committed)
      return { result: await work(tx), committed }
    })
    for (const then of committed) then()
    return result
  }

  return {
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
    commits,
    identity: async () => identityOfFile(file),
    storedCount: async () => Number(reader.query<{ count: number | null }, []>(HIGHEST_COUNT).get()!.count ?? 0),
    writeUnchecked: write,
    markFile: new MarkFile(file),
    problem: async () => behindSchema(versionOf(reader), migrations.length) ?? (await disk.problem()),
    async close() {
      await writes.close()
      reader.close()
      writer.close()
    },
  }
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

/**
 * PostgreSQL's database with the types of SQLite's. Drizzle has no type for both dialects; the store's tests run on
 * both databases.
 */
const asDb = (db: object): Db => db as Db

/** The SQLSTATEs of a serialization failure and of a deadlock. The transaction was rolled back and may be retried. */
const RETRIED = new Set(['40001', '40P01'])
const TRIES = 10
/** Held while the database is migrated. */
const LOCK = 'cadre_hub'

/**
 * PostgreSQL may keep the plan that it made for a statement when a table was small. Without this it would go on to read
 * the whole table when that has grown. It then takes what it cannot avoid for very costly, and would compile it.
 */
const PLANNING = { enable_seqscan: 'off', jit: 'off' }

async function openPostgres(url: string): Promise<Store> {
  const client = new Bun.SQL(url, { connection: PLANNING })
  const db = drizzlePostgres({ client })
  try {
    await oneAtATime(client, async () => {
      await refuseNewer(client)
      const migrationsFolder = `${MIGRATIONS}/postgres`
      await migratePostgres(db, { migrationsFolder, migrationsSchema: 'public' })
    })
  } catch (error) {
    await client.close()
    throw error
  }
  const channel = await openChannel(client)
  const commits = new Commits()
  commits.identity = await postgresIdentity(client)
  const counter = new PostgresCounter(commits)
  const writing =
    (level: 'serializable' | 'read committed', unchecked = false) =>
    async <T>(work: (tx: Db) => Promise<T>): Promise<T> => {
      for (let attempt = 1; ; attempt++) {
        const committed: (() => void)[] = []
        try {
          // Drizzle's own transaction would send the level as a statement of its own.
          const done = await client.begin(`isolation level ${level}`, async connection => {
            const tx = asDb(drizzlePostgres({ client: connection }))
            connections.set(tx, connection)
            afterwards.set(tx, committed)
            const inside = () => work(tx)
            return unchecked ? { result: await inside() } : await counter.runCounted(connection, inside)
          })
          if ('writer' in done) counter.committed(done)
          for (const then of committed) then()
          return done.result
        } catch (error) {
          if (error instanceof IdentityChanged && attempt < TRIES) {
            await commits.onIdentityChange()
            continue
          }
          if (!RETRIED.has(sqlState(error))) throw error
          if (attempt === TRIES)
            throw new CadreError('unavailable', 'the database is busy; try again', { retryAfter: 1 })
          await Bun.sleep(Math.random() * 10 * 2 ** attempt)
        }
      }
    }
  return {
    ...tables(postgres),
    dialect: 'postgres',
    db: asDb(db),
    write: writing('serializable'),
    writeAfter: writing('read committed'),
    // Drizzle's types are those of SQLite, which has no such clause.
    hold: (query, of) => (query as Locking<typeof query>).for('share', { of }),
    claim: (query, of) => (query as Locking<typeof query>).for('update', { of, skipLocked: true }),
    epoch: () => null,
    channel,
    commits,
    identity: () => postgresIdentity(client),
    storedCount: async () => Number((await client.unsafe(HIGHEST_COUNT))[0].count ?? 0),
    writeUnchecked: writing('serializable', true),
    markFile: null,
    problem: async () => behindSchema(await appliedTo(client), journal.entries.length),
    async close() {
      await channel.close()
      await client.close()
    },
  }
}

/** What Drizzle has of PostgreSQL's FOR. */
interface Locking<Q> {
  for(strength: 'share' | 'update', which: object): Q
}

/** Refuses a database that a newer program has migrated, without changing it. */
async function refuseNewer(client: Bun.SQL): Promise<void> {
  const [{ found }] = await client`SELECT to_regclass('public.__drizzle_migrations') AS found`
  if (found === null) return
  const applied = await appliedTo(client)
  const known = journal.entries.length
  if (applied <= known) return
  throw new CadreError(
    'conflict',
    `the database has schema version ${applied}, but this program supports at most ${known}: start the newer program, or restore a backup made by this one`,
  )
}

async function appliedTo(client: Bun.SQL): Promise<number> {
  const [{ applied }] = await client`SELECT count(*)::int AS applied FROM public.__drizzle_migrations`
  return applied
}

/** A database that is ahead is usable: a newer hub has migrated it beside this one, which is about to be replaced. */
function behindSchema(version: number, needed: number): string | null {
  return version >= needed ? null : `the database has schema version ${version}, but this program needs ${needed}`
}

/** Makes hubs that start at the same time migrate one after the other. */
async function oneAtATime(client: Bun.SQL, work: () => Promise<void>): Promise<void> {
  const connection = await client.reserve()
  try {
    await connection`SELECT pg_advisory_lock(hashtext(${LOCK}))`
    await work()
  } finally {
    await connection`SELECT pg_advisory_unlock(hashtext(${LOCK}))`
    connection.release()
  }
}

function sqlState(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const { errno, code } = cause as { errno?: unknown; code?: unknown }
  return String(errno ?? code)
}

/** Whether the database refused a value or a row, so that nothing of the transaction was done (SQLSTATE 22 and 23). */
export function isRefusedValue(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const { code } = cause as { code?: unknown }
  return /^2[23]/.test(sqlState(error)) || /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH)/.test(String(code))
}

/** Whether `error` is a violation of a unique index, on either database. */
export function isDuplicate(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const { code } = cause as { code?: unknown }
  return code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY' || sqlState(error) === '23505'
}
