// How much this process has committed, by a count that is stored with each commit and only grows. A copy of the database
// has a lower one. On PostgreSQL each transaction also names the place of the database as this process knows it, so that
// nothing is written after a failover before it is known what was lost.

import { CadreError } from '../../lib/error.ts'

export class Commits {
  /** The highest count of a commit that this process knows of. */
  known = 0
  /** The place where every write must find the database. */
  place = ''
  /** The last count that each writer of this process has committed. */
  readonly lanes = new Map<string, number>()
  /** Called when a write finds the database elsewhere. The write is made again when this resolves. */
  changed: () => Promise<void> = async () => {
    throw new CadreError('unavailable', 'the database is another one than before; try again')
  }

  /** Notes what a writer has committed. */
  committed(lane: string, count: number): void {
    this.lanes.set(lane, count)
    this.learn(count)
  }

  learn(count: number): void {
    if (count > this.known) this.known = count
  }
}

/** The database is not where this process knows it. */
export class PlaceChanged extends Error {}

/** The highest count that is stored. */
export const HIGHEST = 'SELECT max(count) AS count FROM memory_counts'

/**
 * What no other server, no other database of it and no other course of its history has in common with this one, nor the
 * same database after its tables were dropped and restored.
 */
const PLACE = `(SELECT system_identifier FROM pg_control_system())::text || '/' ||
  left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
  (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/' ||
  to_regclass('memory')::oid::text`

/**
 * The numbers of transactions are shared by all writers and grow, which saves looking for the highest count. Each writer
 * has a row of its own, so that none waits for another.
 */
const COUNT = `INSERT INTO memory_counts (lane, count)
  SELECT $1, coalesce((SELECT base FROM memory WHERE id = 1), 0) + txid_current() WHERE ${PLACE} = $2
  ON CONFLICT (lane) DO UPDATE SET count = excluded.count RETURNING count`

/** The same where the server does not say these things. */
const PLAIN_COUNT = `INSERT INTO memory_counts (lane, count)
  SELECT $1, greatest(coalesce((SELECT base FROM memory WHERE id = 1), 0), $2::bigint) + 1
  ON CONFLICT (lane) DO UPDATE SET count = excluded.count RETURNING count`

/** Classes of SQLSTATEs: there is no such function, it may not be called, or the server does not have what it tells. */
const UNKNOWN = /^(42|0A|XX|58)/

/** The place of a database, empty where the server does not tell it. */
export async function postgresPlace(client: Bun.SQL): Promise<string> {
  try {
    const [{ place }] = await client.unsafe(`SELECT ${PLACE} AS place, txid_current()`)
    return place
  } catch (error) {
    if (UNKNOWN.test(String((error as { errno?: unknown }).errno))) return ''
    throw error
  }
}

function isAborted(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return String((cause as { errno?: unknown }).errno) === '25P02'
}

/** Counts the transactions of PostgreSQL. */
export class PostgresCounter {
  readonly #commits: Commits
  readonly #free: string[] = []
  readonly #process = crypto.randomUUID()
  #lanes = 0

  constructor(commits: Commits) {
    this.#commits = commits
  }

  /** Runs the work of a transaction, which is rolled back with `PlaceChanged` when the database is elsewhere. */
  async during<T>(
    client: Bun.TransactionSQL,
    work: () => Promise<T>,
  ): Promise<{ result: T; lane: string; count: number }> {
    const { place, known } = this.#commits
    const lane = this.#free.pop() ?? `${this.#process} ${this.#lanes++}`
    try {
      // A query is sent when it is waited for, so the work does not begin before this one is on its way.
      const counting = client
        .unsafe<{ count: string }[]>(place === '' ? PLAIN_COUNT : COUNT, [lane, place === '' ? known : place])
        .execute()
      const [count, done] = await Promise.allSettled([counting, work()])
      const failures = [count, done].flatMap(each => (each.status === 'rejected' ? [each.reason] : []))
      // Of two, the other one only says that a statement before it has failed.
      if (failures.length > 0) throw failures.find(each => !isAborted(each)) ?? failures[0]
      if (count.status === 'rejected' || done.status === 'rejected') throw failures[0]
      if (count.value.length === 0) throw new PlaceChanged()
      return { result: done.value, lane, count: Number(count.value[0]!.count) }
    } catch (error) {
      this.#free.push(lane)
      throw error
    }
  }

  /** The transaction is committed. */
  committed({ lane, count }: { lane: string; count: number }): void {
    this.#commits.committed(lane, count)
    this.#free.push(lane)
  }
}
