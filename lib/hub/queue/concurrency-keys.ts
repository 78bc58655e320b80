// Concurrency keys of a realm: which dispatched runs hold a key, and which wait for it, in the order in which they came.
// The job of a run that waits is `blocked`, so that claims never look at it. Every change of a key happens in the
// transaction of what caused it; on PostgreSQL these are serializable, so that two hubs never grant a key beyond its limit.

import { and, asc, count, eq, gte, inArray, isNull, lt, max, ne, or, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import { turnOf, type WhenFull, waitsForKey } from '../../wire/concurrency.ts'
import { CRASHED_MS } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'

export type KeyRow = Tables['concurrencyKeys']['$inferSelect']

/** The key of one run, evaluated. */
export interface RequestedKey {
  text: string
  limit: number
  whenFull: WhenFull
}

type RunOfKey = Pick<KeyRow, 'run_id' | 'realm_id'>

/**
 * Puts a run behind the other runs of its key, and lets its job, which is `blocked`, wait for a daemon if the key is free.
 * Returns the row of the run, which may still wait.
 */
export async function requestKey(
  hub: Hub,
  tx: Db,
  { run_id, realm_id }: RunOfKey,
  asked: RequestedKey,
): Promise<KeyRow> {
  const { concurrencyKeys, runs } = hub.store
  const { text: key, limit: most, whenFull: when_full } = asked
  const since = await lastTurn(hub, tx, realm_id, key)
  const fresh = { key, most, when_full, state: 'waits' as const, since, ending: false }
  await tx
    .insert(concurrencyKeys)
    .values({ run_id, realm_id, ...fresh })
    .onConflictDoUpdate({ target: concurrencyKeys.run_id, set: fresh })
  const begins = and(eq(runs.run_id, run_id), eq(runs.state, 'queued'))
  await tx
    .update(runs)
    .set({ reason: waitsForKey(key) })
    .where(begins)
  await grantKey(hub, tx, realm_id, key)
  const [row] = await tx.select().from(concurrencyKeys).where(eq(concurrencyKeys.run_id, run_id))
  return row!
}

/** Grants a key to the runs that wait for it, first come, first served, up to its limit. */
async function grantKey(hub: Hub, tx: Db, realmId: string, key: string): Promise<void> {
  const { concurrencyKeys } = hub.store
  for (;;) {
    const waiting = rowsOfKey(hub, realmId, key, ['waits'])
    const [first] = await tx
      .select()
      .from(concurrencyKeys)
      .where(waiting)
      .orderBy(...inOrder(hub))
      .limit(1)
    if (!first || (await countHolders(hub, tx, realmId, key)) >= first.most) return
    await startHolding(hub, tx, first)
  }
}

async function startHolding({ store, notifier }: Hub, tx: Db, { run_id, realm_id }: RunOfKey): Promise<void> {
  const { jobs, concurrencyKeys, runs } = store
  await tx.update(concurrencyKeys).set({ state: 'holds' }).where(eq(concurrencyKeys.run_id, run_id))
  const blocked = and(eq(jobs.run_id, run_id), eq(jobs.state, 'blocked'))
  // One that waited in an older copy may have been executed since.
  const next = sql`CASE WHEN ${jobs.copy_id} IS NULL THEN 'waiting' ELSE 'held' END`
  await tx.update(jobs).set({ state: next }).where(blocked)
  const queued = and(eq(runs.run_id, run_id), eq(runs.state, 'queued'), isNull(runs.daemon_id))
  await tx.update(runs).set({ reason: null }).where(queued)
  afterCommit(tx, () => notifier.notify(`realm ${realm_id}`))
}

/** How many runs hold a key. A run whose daemon is silent counts again when the daemon is back. */
async function countHolders(hub: Hub, db: Db, realmId: string, key: string): Promise<number> {
  const { daemons, concurrencyKeys, runs } = hub.store
  const isHeldNow = or(isNull(runs.daemon_id), gte(daemons.last_seen_at, silentBefore(hub)))
  const [row] = await db
    .select({ many: count() })
    .from(concurrencyKeys)
    .innerJoin(runs, eq(runs.run_id, concurrencyKeys.run_id))
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(and(rowsOfKey(hub, realmId, key, ['holds']), isHeldNow))
  return Number(row!.many)
}

/** While a hub was away, no daemon could call it, so it judges none before it has listened for long enough. */
function silentBefore({ lived, startedAt }: Hub): number {
  return lived() - startedAt < CRASHED_MS ? 0 : lived() - CRASHED_MS
}

/** What puts a run behind all others of its key, whatever the clock said when those came. */
async function lastTurn(hub: Hub, tx: Db, realmId: string, key: string): Promise<number> {
  const { concurrencyKeys } = hub.store
  const [row] = await tx
    .select({ since: max(concurrencyKeys.since) })
    .from(concurrencyKeys)
    .where(rowsOfKey(hub, realmId, key, ['waits', 'holds']))
  return Math.max(hub.lived(), Number(row?.since ?? 0) + 1)
}

/** Releases the key of a run that has ended. `waiting` says that the run may not have begun. */
export async function releaseKey(hub: Hub, tx: Db, run: Run, waiting = false): Promise<void> {
  if (run.concurrency_key === null) return
  const { concurrencyKeys } = hub.store
  const open = waiting ? ne(concurrencyKeys.state, 'ended') : eq(concurrencyKeys.state, 'holds')
  const left = await tx
    .update(concurrencyKeys)
    .set({ state: 'ended' })
    .where(and(eq(concurrencyKeys.run_id, run.run_id), open))
    .returning()
  if (left.length > 0) await grantKey(hub, tx, run.realm_id, run.concurrency_key)
}

type Run = Pick<Tables['runs']['$inferSelect'], 'run_id' | 'realm_id' | 'concurrency_key'>

/** A run that had ended runs again, because it was resumed on its own machine: it counts without having waited. */
export async function holdKeyAgain(hub: Hub, tx: Db, run: Run): Promise<void> {
  if (run.concurrency_key === null) return
  const { concurrencyKeys } = hub.store
  const fresh = { since: await lastTurn(hub, tx, run.realm_id, run.concurrency_key), ending: false }
  const away = and(eq(concurrencyKeys.run_id, run.run_id), ne(concurrencyKeys.state, 'holds'))
  const [back] = await tx.update(concurrencyKeys).set(fresh).where(away).returning()
  if (back) await startHolding(hub, tx, back)
}

/** The run was asked to end, so nobody has to ask it again for a newer run. */
export async function markAsEnding({ store: { concurrencyKeys } }: Hub, tx: Db, runId: string): Promise<void> {
  await tx.update(concurrencyKeys).set({ ending: true }).where(eq(concurrencyKeys.run_id, runId))
}

/** The runs that must end before the run of `row` has its turn with `cancel_oldest`: the oldest that were not asked to end. */
export async function runsToCancel(hub: Hub, tx: Db, row: KeyRow): Promise<string[]> {
  const { concurrencyKeys } = hub.store
  const others = and(
    rowsOfKey(hub, row.realm_id, row.key, ['waits', 'holds']),
    eq(concurrencyKeys.ending, false),
    ne(concurrencyKeys.run_id, row.run_id),
  )
  const rows = await tx
    .select({ id: concurrencyKeys.run_id })
    .from(concurrencyKeys)
    .where(others)
    .orderBy(...inOrder(hub))
  return rows.slice(0, Math.max(0, rows.length + 1 - row.most)).map(({ id }) => id)
}

/** What the run of a blocked job waits for, in words that follow "waits for". */
export async function describeKeyWait(hub: Hub, db: Db, runId: string): Promise<string | null> {
  const { concurrencyKeys } = hub.store
  const [row] = await db.select().from(concurrencyKeys).where(eq(concurrencyKeys.run_id, runId))
  if (row?.state !== 'waits') return null
  const { realm_id, key, since } = row
  const holders = await holdersOfKey(hub, db, row)
  const before = or(
    lt(concurrencyKeys.since, since),
    and(eq(concurrencyKeys.since, since), lt(concurrencyKeys.run_id, runId)),
  )
  const [ahead] = await db
    .select({ many: count() })
    .from(concurrencyKeys)
    .where(and(rowsOfKey(hub, realm_id, key, ['waits']), before))
  return turnOf(key, holders, Number(ahead!.many))
}

/** The runs that hold a key, oldest first. */
export async function holdersOfKey(hub: Hub, db: Db, { realm_id, key }: KeyRow): Promise<string[]> {
  const { concurrencyKeys } = hub.store
  const holding = rowsOfKey(hub, realm_id, key, ['holds'])
  const rows = await db
    .select({ id: concurrencyKeys.run_id })
    .from(concurrencyKeys)
    .where(holding)
    .orderBy(...inOrder(hub))
  return rows.map(({ id }) => id)
}

/** Lets runs begin that wait for runs whose daemons have fallen silent. */
export async function* grantKeysOfSilentDaemons(hub: Hub): AsyncGenerator<void> {
  const { daemons, db, concurrencyKeys, runs } = hub.store
  const silent = await db
    .selectDistinct({ realm_id: concurrencyKeys.realm_id, key: concurrencyKeys.key })
    .from(concurrencyKeys)
    .innerJoin(runs, eq(runs.run_id, concurrencyKeys.run_id))
    .innerJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(and(eq(concurrencyKeys.state, 'holds'), lt(daemons.last_seen_at, silentBefore(hub))))
  for (const { realm_id, key } of silent) {
    const waiting = rowsOfKey(hub, realm_id, key, ['waits'])
    const [any] = await db.select({ id: concurrencyKeys.run_id }).from(concurrencyKeys).where(waiting).limit(1)
    if (any) await hub.store.write(tx => grantKey(hub, tx, realm_id, key))
    yield
  }
}

function rowsOfKey({ store: { concurrencyKeys } }: Hub, realmId: string, key: string, states: KeyRow['state'][]): SQL {
  return and(
    inArray(concurrencyKeys.state, states),
    eq(concurrencyKeys.realm_id, realmId),
    eq(concurrencyKeys.key, key),
  )!
}

const inOrder = ({ store: { concurrencyKeys } }: Hub) => [asc(concurrencyKeys.since), asc(concurrencyKeys.run_id)]
