import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import type { Log } from '../../lib/log/log.ts'
import { ROOT } from '../../lib/program/install-root.ts'
import type { Channel } from './channel.ts'
import type { Commits } from './commits.ts'
import type { MarkFile } from './mark-file.ts'
import type { PoolFigures } from './postgres-pool.ts'
import type { Tables } from './schema.ts'

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
  /** How the words of other hubs come without sessions; null where they come at once, and for SQLite. */
  readonly polling: Polling | null
  readonly commits: Commits
  /** What a copy of the database does not have in common with it; empty where the engine does not say. */
  identity(): Promise<string>
  /** The highest count that is stored. */
  storedCount(): Promise<number>
  /** Like `write`, whatever the identity of the database is. */
  writeUnchecked<T>(work: (tx: Db) => Promise<T>): Promise<T>
  /** The file beside a SQLite database; null for PostgreSQL. */
  readonly markFile: MarkFile | null
  /** The same database for chores: on PostgreSQL by connections of their own, on which statements may take longer. */
  readonly forChores: Store
  /** What keeps the database from being used now, or null. Throws when it does not answer. */
  problem(): Promise<string | null>
  /** Why the database of PostgreSQL takes no changes now, while it answers reads; null while it does. */
  degraded(): Promise<'database_read_only' | 'database_full' | null>
  /** The connections of calls to PostgreSQL, and the calls that wait for one; null for SQLite. */
  connections(): PoolFigures | null
  close(): Promise<void>
}

/** That hubs look for each other's words, because connections to the database keep no sessions. */
export interface Polling {
  /** By what the hub has noticed that; null: it was told (`CADRE_HUB_POOLER`). */
  noticed: string | null
}

const afterwards = new WeakMap<Db, (() => void)[]>()

/** Where `afterCommit` puts what a transaction does after it. */
export const keepForAfter = (tx: Db, committed: (() => void)[]) => afterwards.set(tx, committed)

/** Runs `then` after the transaction of `tx` has been committed. It does not run after a rollback. */
export function afterCommit(tx: Db, then: () => void): void {
  afterwards.get(tx)!.push(then)
}

/** For PostgreSQL. */
export interface StoreOptions {
  /** How many connections calls have at most (`CADRE_HUB_POOL`). Chores have four more. */
  pool: number
  /** How long a statement of a call may take, in milliseconds (`CADRE_HUB_STATEMENT_SECONDS`). */
  statementMs: number
  /** That no connection keeps a session (`CADRE_HUB_POOLER=transaction`). Without it the hub finds out. */
  isPooled: boolean
  /** Says what a migration waits for. */
  log?: Pick<Log, 'warn'>
}

/** A folder for each dialect. */
export const MIGRATIONS = `${ROOT}/db/hub/migrations`

export function isPostgres(location: string): boolean {
  return /^postgres(ql)?:\/\//.test(location)
}

/** A store that is its own one for chores. */
export const withItself = (store: Omit<Store, 'forChores'>): Store =>
  Object.defineProperty(store, 'forChores', { get: () => store, enumerable: true }) as Store

/** A database that is ahead is usable: a newer hub has migrated it beside this one, which is about to be replaced. */
export function behindSchema(version: number, needed: number): string | null {
  return version >= needed ? null : `the database has schema version ${version}, but this program needs ${needed}`
}

export function sqlState(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const { errno, code } = cause as { errno?: unknown; code?: unknown }
  return String(errno ?? code)
}

/** The SQLSTATEs of a serialization failure and of a deadlock. The transaction was rolled back and may be retried. */
export const RETRIED: ReadonlySet<string> = new Set(['40001', '40P01'])

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
