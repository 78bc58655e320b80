// Migrates the hub's database in PostgreSQL in one transaction, by a connection of its own, on which statements take as long
// as they need. They do not wait for a lock as long as they like, because all that needs the same table queues up behind such
// a statement: after five seconds it gives way, and the migration begins again.
//
// Hubs that start at the same time migrate one after the other: the transaction holds a row. No lock of a session would do,
// because a pooler in transaction mode keeps no sessions, and not every engine has such locks. The server ends the transaction
// of a hub that has vanished.

import { readMigrationFiles } from 'drizzle-orm/migrator'
import { CadreError, messageOf } from '../../lib/error.ts'
import type { Log } from '../../lib/log/log.ts'
import { lookAgain } from './look-again.ts'
import journal from './migrations/postgres/meta/_journal.json'
import type { Statements } from './postgres-pool.ts'
import { isLost } from './postgres-refusals.ts'
import { MIGRATIONS, RETRIED, sqlState } from './store.ts'

/** The row that a migration holds, and the list of what was applied, which has the form that Drizzle gives it. */
const TABLES = `
  CREATE SCHEMA IF NOT EXISTS public;
  CREATE TABLE IF NOT EXISTS public.cadre_locks (name text PRIMARY KEY);
  INSERT INTO public.cadre_locks (name) VALUES ('migrations') ON CONFLICT DO NOTHING;
  CREATE TABLE IF NOT EXISTS public.__drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`
const HOLD = `SELECT name FROM public.cadre_locks WHERE name = 'migrations' FOR UPDATE`
const LOCK_MS = 5_000
/** How long a hub may say nothing in its migration: what it has done is undone then, and another one begins. */
const LEASE_MS = 60_000
/** What the others get between two tries. */
const REST_MS = 1_000
/** How often it is looked what the migration waits for. */
const LOOK_MS = 1_000
/** A user or a database may have deadlines of its own. Not every version of PostgreSQL has that of transactions. */
const LIMITS = `
  SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN '${LOCK_MS}'
    WHEN 'idle_in_transaction_session_timeout' THEN '${LEASE_MS}' ELSE '0' END, true)
  FROM pg_settings
  WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'lock_timeout')`
/** SQLSTATEs of a lock that was not got in time, and of a transaction that another one was in the way of. */
const NOT_NOW = new Set([...RETRIED, '55P03'])
/** SQLSTATEs of two that make the same table, or the type of its rows, at once: the other one has made it. */
const MADE = new Set(['23505', '42710', '42P06', '42P07'])

/** How many migrations this program has. */
export const MIGRATIONS_KNOWN = journal.entries.length

/** What a migration begins with that an engine may lack. */
const OPTIONAL = '-- optional:'

type Warn = Pick<Log, 'warn'> | undefined

export async function migratePostgres(url: string, log: Warn): Promise<void> {
  while (!(await isMigrated(url, log))) await Bun.sleep(REST_MS)
}

/** Returns false when it could not be done now. Nothing is changed then. */
async function isMigrated(url: string, log: Warn): Promise<boolean> {
  const client = new Bun.SQL(url, { max: 1, prepare: false })
  let look: { stop(): Promise<void> } | null = null
  try {
    if (await isUpToDate(client)) return true
    await makeTables(client)
    await client.begin(async tx => {
      await tx.unsafe(LIMITS)
      let isAlone = false
      const [{ pid }] = await tx.unsafe('SELECT pg_backend_pid() AS pid')
      look = lookForWaits(url, { pid, isAlone: () => isAlone }, log)
      await tx.unsafe(HOLD)
      isAlone = true
      if (!(await isUpToDate(tx))) await apply(tx, log)
    })
    return true
  } catch (error) {
    if (!NOT_NOW.has(sqlState(error))) throw error
    return false
  } finally {
    await (look as { stop(): Promise<void> } | null)?.stop()
    await client.close()
  }
}

/** Refuses a database that a newer program has migrated. */
async function isUpToDate(client: Statements): Promise<boolean> {
  const [{ found }] = await client.unsafe(`SELECT to_regclass('public.__drizzle_migrations') AS found`)
  const applied = found === null ? 0 : await appliedTo(client)
  if (applied <= MIGRATIONS_KNOWN) return applied === MIGRATIONS_KNOWN
  throw new CadreError(
    'conflict',
    `the database has schema version ${applied}, but this program supports at most ${MIGRATIONS_KNOWN}: start the newer program, or restore a backup made by this one`,
  )
}

async function makeTables(client: Bun.SQL): Promise<void> {
  for (;;) {
    try {
      return void (await client.unsafe(TABLES).simple())
    } catch (error) {
      if (!MADE.has(sqlState(error))) throw error
    }
  }
}

async function apply(tx: Statements, log: Warn): Promise<void> {
  const [{ last }] = await tx.unsafe('SELECT max(created_at) AS last FROM public.__drizzle_migrations')
  for (const { sql, folderMillis, hash } of readMigrationFiles({ migrationsFolder: `${MIGRATIONS}/postgres` })) {
    if (folderMillis <= Number(last ?? 0)) continue
    const text = sql.join(';\n')
    await (text.startsWith(OPTIONAL) ? applyIfPossible(tx, text, log) : tx.unsafe(text).simple())
    await tx.unsafe('INSERT INTO public.__drizzle_migrations (hash, created_at) VALUES ($1, $2)', [hash, folderMillis])
  }
}

/** Does nothing of a migration where the engine refuses some of it, which the hub then has to find out. */
async function applyIfPossible(tx: Statements, text: string, log: Warn): Promise<void> {
  await tx.unsafe('SAVEPOINT optional')
  try {
    await tx.unsafe(text).simple()
  } catch (error) {
    if (NOT_NOW.has(sqlState(error)) || isLost(error)) throw error
    await tx.unsafe('ROLLBACK TO SAVEPOINT optional')
    const [why] = text.slice(OPTIONAL.length).split('\n', 1)
    log?.warn(`the database refuses a part of the migration: ${why!.trim()}`, { error: messageOf(error) })
  }
}

interface Migrating {
  /** Of the server's process. */
  pid: number
  /** Whether it is the one hub that migrates now. */
  isAlone: () => boolean
}

/** Says in the log for whom a migration waits, once for each. */
function lookForWaits(url: string, { pid, isAlone }: Migrating, log: Warn): { stop(): Promise<void> } {
  const client = new Bun.SQL(url, { max: 1, prepare: false })
  let told = ''
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
      lock: isAlone() ? lock : 'of another hub that migrates',
      sessions,
    })
  }
  const looks = lookAgain(look, LOOK_MS)
  return {
    async stop() {
      await looks.stop()
      await client.close()
    },
  }
}

export async function appliedTo(client: Statements): Promise<number> {
  const [{ applied }] = await client.unsafe('SELECT count(*)::int AS applied FROM public.__drizzle_migrations')
  return applied
}
