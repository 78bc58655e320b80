// Migrates the hub's database in PostgreSQL, by a connection of its own, on which statements take as long as they need.
// They do not wait for a lock as long as they like, because all that needs the same table queues up behind such a statement:
// after five seconds it gives way, and the migration begins again.

import { drizzle } from 'drizzle-orm/bun-sql'
import { migrate } from 'drizzle-orm/bun-sql/migrator'
import { CadreError } from '../../lib/error.ts'
import type { Log } from '../../lib/log/log.ts'
import journal from './migrations/postgres/meta/_journal.json'
import type { Statements } from './postgres-pool.ts'
import { MIGRATIONS, sqlState } from './store.ts'

/** Held while the database is migrated. */
const LOCK = 'cadre_hub'
const LOCK_MS = 5_000
/** What the others get between two tries. */
const REST_MS = 1_000
/** How often it is looked what the migration waits for. */
const LOOK_MS = 1_000
/** A user or a database may have deadlines of its own. Not every version of PostgreSQL has that of transactions. */
const NO_DEADLINES = `
  SELECT set_config(name, '0', false) FROM pg_settings
  WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`
/** SQLSTATE of a lock that was not got in time. */
const NO_LOCK = '55P03'

/** How many migrations this program has. */
export const MIGRATIONS_KNOWN = journal.entries.length

type Warn = Pick<Log, 'warn'> | undefined

export async function migratePostgres(url: string, log: Warn): Promise<void> {
  while (!(await isMigrated(url, log))) await Bun.sleep(REST_MS)
}

/** Returns false when a lock was not to be had. What was migrated before is undone then. */
async function isMigrated(url: string, log: Warn): Promise<boolean> {
  const client = new Bun.SQL(url, { max: 1 })
  let look: { stop(): Promise<void> } | null = null
  try {
    await client.unsafe(`${NO_DEADLINES}; SET lock_timeout = ${LOCK_MS}`).simple()
    look = lookForWaits(url, (await client`SELECT pg_backend_pid() AS pid`)[0].pid, log)
    // Hubs that start at the same time migrate one after the other.
    await client`SELECT pg_advisory_lock(hashtext(${LOCK}))`
    await refuseNewer(client)
    const migrationsFolder = `${MIGRATIONS}/postgres`
    await migrate(drizzle({ client }), { migrationsFolder, migrationsSchema: 'public' })
    return true
  } catch (error) {
    if (sqlState(error) !== NO_LOCK) throw error
    return false
  } finally {
    await look?.stop()
    // This releases the lock, too.
    await client.close()
  }
}

/** Says in the log for whom the connection of the migration waits, once for each. */
function lookForWaits(url: string, pid: number, log: Warn): { stop(): Promise<void> } {
  const client = new Bun.SQL(url, { max: 1 })
  let told = ''
  let looking: Promise<void> | null = null
  const look = async () => {
    const holders = await client`
      SELECT a.pid, a.application_name AS application, a.client_addr::text AS address, a.state, a.xact_start AS since,
        (SELECT coalesce(l.relation::regclass::text, l.locktype) FROM pg_locks l WHERE l.pid = ${pid} AND NOT l.granted LIMIT 1) AS lock
      FROM pg_stat_activity a WHERE a.pid = ANY (pg_blocking_pids(${pid})) ORDER BY a.pid`
    if (holders.length === 0) return
    const [{ lock }] = holders
    const sessions = holders.map(({ lock: _, ...session }: { lock: string }) => session)
    const key = JSON.stringify([lock, sessions])
    if (key === told) return
    told = key
    log?.warn('the migration of the database waits for a lock that other sessions hold: end them to go on', {
      lock: lock === 'advisory' ? 'of another hub that migrates' : lock,
      sessions,
    })
  }
  const timer = setInterval(() => {
    looking ??= look()
      .catch(() => {})
      .finally(() => {
        looking = null
      })
  }, LOOK_MS)
  return {
    async stop() {
      clearInterval(timer)
      await looking
      await client.close()
    },
  }
}

/** Refuses a database that a newer program has migrated, without changing it. */
async function refuseNewer(client: Bun.SQL): Promise<void> {
  const [{ found }] = await client`SELECT to_regclass('public.__drizzle_migrations') AS found`
  if (found === null) return
  const applied = await appliedTo(client)
  if (applied <= MIGRATIONS_KNOWN) return
  throw new CadreError(
    'conflict',
    `the database has schema version ${applied}, but this program supports at most ${MIGRATIONS_KNOWN}: start the newer program, or restore a backup made by this one`,
  )
}

export async function appliedTo(client: Statements): Promise<number> {
  const [{ applied }] = await client.unsafe('SELECT count(*)::int AS applied FROM public.__drizzle_migrations')
  return applied
}
