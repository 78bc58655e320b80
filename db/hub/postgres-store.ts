// The hub's database in PostgreSQL: transactions, and what only PostgreSQL has.

import { drizzle } from 'drizzle-orm/bun-sql'
import { CadreError } from '../../lib/error.ts'
import { openChannel } from './channel.ts'
import { postgres } from './columns.ts'
import { Commits, HIGHEST_COUNT, IdentityChanged, PostgresCounter, postgresIdentity } from './commits.ts'
import { openNews } from './news.ts'
import { appliedTo, MIGRATIONS_KNOWN, migratePostgres } from './postgres-migration.ts'
import { PostgresPool, type Statements } from './postgres-pool.ts'
import { isLost } from './postgres-refusals.ts'
import { type Level, transact } from './postgres-transaction.ts'
import { tables } from './schema.ts'
import { findSessions } from './sessions.ts'
import {
  behindSchema,
  type Db,
  keepForAfter,
  RETRIED,
  type Store,
  type StoreOptions,
  sqlState,
  withItself,
} from './store.ts'

/** The connection of each transaction. */
const connections = new WeakMap<Db, Statements>()

export const connectionOf = (tx: Db): Statements | undefined => connections.get(tx)

/**
 * PostgreSQL's database with the types of SQLite's. Drizzle has no type for both dialects; the store's tests run on
 * both databases. Of a client, Drizzle calls `unsafe` alone, as long as its own transactions are not used.
 */
const asDb = (client: Statements): Db => drizzle({ client: client as Bun.SQL }) as object as Db

const TRIES = 10
/** How often a transaction is begun again because its connection ended before the commit. */
const LOST_TRIES = 3
/** A standby, or a server or database that was told to take no changes. */
const READ_ONLY = `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS closed`
/** Most chores take a moment, so a few that wait for locks leave connections to the others. */
const CHORE_CONNECTIONS = 4
const CHORE_STATEMENT_MS = 30_000

export async function openPostgres(location: string, options: StoreOptions): Promise<Store> {
  const { pool: size, statementMs, log } = options
  const { url, lack } = options.isPooled ? { url: location, lack: null } : await findSessions(location)
  const polling = options.isPooled || lack !== null ? { noticed: lack } : null
  await migratePostgres(url, log)
  const commits = new Commits()
  const isPooled = polling !== null
  const pool = new PostgresPool(url, { size, statementMs, isPooled })
  const chores = new PostgresPool(url, { size: CHORE_CONNECTIONS, statementMs: CHORE_STATEMENT_MS, isPooled })
  const closePools = () => Promise.all([pool.close(), chores.close()])
  try {
    commits.identity = await postgresIdentity(pool.reads)
    const channel = polling ? openNews(pool.reads) : await openChannel(url, pool)
    const shared = {
      ...tables(postgres),
      dialect: 'postgres' as const,
      // Drizzle's types are those of SQLite, which has no such clause.
      hold: <Q>(query: Q, of: object) => (query as Locking<Q>).for('share', { of }),
      claim: <Q>(query: Q, of: object) => (query as Locking<Q>).for('update', { of, skipLocked: true }),
      epoch: () => null,
      channel,
      polling,
      commits,
      markFile: null,
      async close() {
        await channel.close()
        await closePools()
      },
    }
    const counter = new PostgresCounter(commits)
    const forChores = withItself({ ...shared, ...storeOn(chores, counter, commits) })
    return { ...shared, ...storeOn(pool, counter, commits), forChores }
  } catch (error) {
    await closePools()
    throw error
  }
}

/** What reads and writes by the connections of a pool. */
function storeOn(pool: PostgresPool, counter: PostgresCounter, commits: Commits) {
  const writing =
    (level: Level, unchecked = false) =>
    async <T>(work: (tx: Db) => Promise<T>): Promise<T> => {
      for (let attempt = 1; ; attempt++) {
        const committed: (() => void)[] = []
        let isDone = false
        try {
          const begun = async (statements: Statements) => {
            const tx = asDb(statements)
            connections.set(tx, statements)
            keepForAfter(tx, committed)
            const inside = () => work(tx)
            return unchecked ? { result: await inside() } : counter.runCounted(statements, inside)
          }
          const done = await pool.use(connection =>
            transact(connection, level, pool.limits, begun, () => {
              isDone = true
            }),
          )
          if ('writer' in done) counter.committed(done)
          for (const then of committed) then()
          return done.result
        } catch (error) {
          if (error instanceof IdentityChanged && attempt < TRIES) {
            await commits.onIdentityChange()
            continue
          }
          // Whether a commit was done whose answer was lost is not known.
          if (!isDone && isLost(error) && attempt < LOST_TRIES) continue
          if (!RETRIED.has(sqlState(error))) throw error
          if (attempt === TRIES)
            throw new CadreError('unavailable', 'the database is busy; try again', { retryAfter: 1 })
          await Bun.sleep(Math.random() * 10 * 2 ** attempt)
        }
      }
    }
  return {
    db: asDb(pool.reads),
    write: writing('serializable'),
    writeAfter: writing('read committed'),
    writeUnchecked: writing('serializable', true),
    identity: () => postgresIdentity(pool.reads),
    storedCount: async () => Number((await pool.reads.unsafe(HIGHEST_COUNT))[0].count ?? 0),
    problem: async () => behindSchema(await appliedTo(pool.reads), MIGRATIONS_KNOWN),
    async degraded() {
      const [{ closed }] = await pool.reads.unsafe(READ_ONLY)
      return closed ? ('database_read_only' as const) : pool.isFull ? ('database_full' as const) : null
    },
    connections: () => pool.figures,
  }
}

/** What Drizzle has of PostgreSQL's FOR. */
interface Locking<Q> {
  for(strength: 'share' | 'update', which: object): Q
}
