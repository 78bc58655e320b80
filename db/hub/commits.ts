// How much this process has committed, by a count that is stored with each commit and only grows. A copy of the database
// has a lower one. On PostgreSQL each transaction also names the identity of the database that this process knows, so that
// nothing is written after a failover before it is known what was lost.

import { CadreError } from '../../lib/error.ts'
import type { Statements } from './postgres-pool.ts'

export class Commits {
  /** The highest count of a commit that this process knows of. */
  known = 0
  /** The identity that the database must have at every write. */
  identity = ''
  /** The last count that each writer of this process has committed. */
  readonly lastCounts = new Map<string, number>()
  /** Called when a write finds a database with another identity. The write is made again when this resolves. */
  onIdentityChange: () => Promise<void> = async () => {
    throw new CadreError('unavailable', 'the database is another one than before; try again')
  }

  /** Notes what a writer has committed. */
  noteCommit(writer: string, count: number): void {
    this.lastCounts.set(writer, count)
    this.noteCount(count)
  }

  noteCount(count: number): void {
    if (count > this.known) this.known = count
  }
}

/** The database has another identity than the one that this process knows. */
export class IdentityChanged extends Error {}

/** The highest count that is stored. */
export const HIGHEST_COUNT = 'SELECT max(count) AS count FROM memory_counts'

/**
 * The server, its timeline, the database, and the table `memory`, whose number changes when it is dropped and restored. No
 * other database has all four.
 */
const IDENTITY = `(SELECT system_identifier FROM pg_control_system())::text || '/' ||
  left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
  (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/' ||
  to_regclass('memory')::oid::text`

/**
 * The numbers of transactions are shared by all writers and grow, which saves looking for the highest count. Each writer
 * has a row of its own, so that none waits for another.
 */
const COUNT_COMMIT = `INSERT INTO memory_counts (lane, count)
  SELECT $1, coalesce((SELECT base FROM memory WHERE id = 1), 0) + txid_current() WHERE ${IDENTITY} = $2
  ON CONFLICT (lane) DO UPDATE SET count = excluded.count RETURNING count`

/** The same for a server on which the identity cannot be read. */
const COUNT_WITHOUT_IDENTITY = `INSERT INTO memory_counts (lane, count)
  SELECT $1, greatest(coalesce((SELECT base FROM memory WHERE id = 1), 0), $2::bigint) + 1
  ON CONFLICT (lane) DO UPDATE SET count = excluded.count RETURNING count`

/** Classes of SQLSTATEs: there is no such function, it may not be called, or the server lacks what the function reads. */
const UNKNOWN = /^(42|0A|XX|58)/

/** The identity of a database, empty where the server does not say it. */
export async function postgresIdentity(client: Statements): Promise<string> {
  try {
    const [{ identity }] = await client.unsafe(`SELECT ${IDENTITY} AS identity, txid_current()`)
    return identity
  } catch (error) {
    if (UNKNOWN.test(String((error as { errno?: unknown }).errno))) return ''
    throw error
  }
}

/** Counts the transactions of PostgreSQL. */
export class PostgresCounter {
  readonly #commits: Commits
  /** Writers that run no transaction now. Each has a row of its own. */
  readonly #freeWriters: string[] = []
  readonly #process = crypto.randomUUID()
  #writers = 0

  constructor(commits: Commits) {
    this.#commits = commits
  }

  /**
   * Runs the work of a transaction, which is rolled back with `IdentityChanged` when the database has another identity.
   */
  async runCounted<T>(
    client: Statements,
    work: () => Promise<T>,
  ): Promise<{ result: T; writer: string; count: number }> {
    const { identity, known } = this.#commits
    const writer = this.#freeWriters.pop() ?? `${this.#process} ${this.#writers++}`
    try {
      // A query is sent when it is waited for, so the work does not begin before this one is on its way.
      const counting = client
        .unsafe<{ count: string }[]>(identity === '' ? COUNT_WITHOUT_IDENTITY : COUNT_COMMIT, [
          writer,
          identity === '' ? known : identity,
        ])
        .execute()
      const [count, done] = await Promise.allSettled([counting, work()])
      if (count.status === 'rejected') throw count.reason
      if (done.status === 'rejected') throw done.reason
      if (count.value.length === 0) throw new IdentityChanged()
      return { result: done.value, writer, count: Number(count.value[0]!.count) }
    } catch (error) {
      this.#freeWriters.push(writer)
      throw error
    }
  }

  /** The transaction is committed. */
  committed({ writer, count }: { writer: string; count: number }): void {
    this.#commits.noteCommit(writer, count)
    this.#freeWriters.push(writer)
  }
}
