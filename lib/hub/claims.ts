// Which jobs a daemon gets, and which daemons have jobs that wait for them.
//
// The statements find jobs by an index, so that their cost does not grow with the number of jobs that wait. A waiting job
// is found by its kind, by the daemon that it is meant for and by what it needs (index `jobs_queue`, in the order in
// which jobs are delivered), a lapsed lease by its end (`jobs_lease`). What a job needs is decided once for all waiting
// jobs that need the same.

import { and, asc, desc, eq, exists, gt, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../db/hub/prepared.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import { type DaemonRow, ONLINE_MS } from './daemons.ts'
import { lacks, unready } from './needs.ts'
import { type JobRow, LEASE_MS } from './queue.ts'

/** The daemon that asks for jobs. */
export type Taker = Pick<DaemonRow, 'id' | 'realm_id' | 'labels' | 'agents' | 'workspaces' | 'paused'>

/** Jobs about existing runs take no slot. At most this many are delivered at once. */
const MOST_ORDERS = 50

/** Orders about runs that exist. They take no slot. */
const ORDERS: JobRow['kind'][] = ['cancel', 'decide']
const WORK: JobRow['kind'][] = ['run', 'resume']
/** Jobs about existing runs need nothing but their daemon. */
const NO_NEEDS = { needs: null, needs_key: '' }

/** Jobs of one kind that are meant for one daemon, or for any. */
interface Place {
  kind: JobRow['kind']
  meant: 'one' | 'any'
}

const placesOf = (kinds: JobRow['kind'][]): Place[] =>
  kinds.flatMap(kind => (['one', 'any'] as const).map(meant => ({ kind, meant })))

/** Something for each place, made when it is first asked for. */
function perPlace<T>(make: (place: Place) => T): (place: Place) => T {
  const known = new Map<string, T>()
  return place => {
    const key = `${place.kind} ${place.meant}`
    if (!known.has(key)) known.set(key, make(place))
    return known.get(key)!
  }
}

/**
 * An order waits until a daemon has accepted its run. A daemon that had it before could not know the run, and would
 * refuse the order while the run goes to another. A cancel keeps the run from being accepted meanwhile.
 */
function due({ db, jobs, runs }: Store): SQL {
  const accepted = and(eq(runs.run_id, jobs.run_id), isNotNull(runs.daemon_id))
  return or(eq(jobs.kind, 'run'), exists(db.select({ id: runs.run_id }).from(runs).where(accepted)))!
}

/** The waiting jobs of a place. */
function waiting(store: Store, slot: Slot<'realm' | 'daemon'>, { kind, meant }: Place): SQL {
  const { jobs } = store
  return and(
    eq(jobs.realm_id, slot('realm')),
    eq(jobs.state, 'waiting'),
    eq(jobs.kind, kind),
    meant === 'any' ? isNull(jobs.daemon_id) : eq(jobs.daemon_id, slot('daemon')),
    kind === 'run' ? undefined : due(store),
  )!
}

/** Jobs that were delivered and not accepted in time. */
const lapsed = (store: Store, slot: Slot<'realm' | 'now'>): SQL =>
  and(
    eq(store.jobs.realm_id, slot('realm')),
    eq(store.jobs.state, 'leased'),
    lte(store.jobs.lease_until, slot('now')),
    due(store),
  )!

const allLapsed = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db.select().from(store.jobs).where(lapsed(store, slot)),
)

/** Those of some kinds that are not meant for another daemon. */
const lapsedFor = prepared((store, db, slot: Slot<'realm' | 'now' | 'daemon' | 'kinds'>) => {
  const { jobs } = store
  const open = or(isNull(jobs.daemon_id), eq(jobs.daemon_id, slot('daemon')))
  return db
    .select()
    .from(jobs)
    .where(and(lapsed(store, slot), isAmong(store, jobs.kind, slot('kinds')), open))
})

type Needy = Pick<JobRow, 'needs' | 'needs_key'>

/**
 * The different needs of the waiting jobs of a place, each once. The index is asked for the next key after the last one,
 * so that the cost is that of the different needs, however many jobs wait.
 */
const needsAt = perPlace(place =>
  prepared((store, db, slot: Slot<'realm' | 'daemon'>) => {
    const { jobs } = store
    const those = waiting(store, slot, place)
    // PostgreSQL takes the index, and not the first rows of the table, only when the order is asked for.
    const first = (column: typeof jobs.needs | typeof jobs.needs_key, more: SQL) =>
      sql`(SELECT ${column} FROM ${jobs} WHERE ${and(those, more)} ORDER BY ${jobs.daemon_id}, ${jobs.needs_key} LIMIT 1)`
    const keys = sql`(
      WITH RECURSIVE found(needs_key) AS (
        SELECT ${first(jobs.needs_key, sql`true`)}
        UNION ALL
        SELECT ${first(jobs.needs_key, sql`${jobs.needs_key} > found.needs_key`)}
        FROM found WHERE found.needs_key IS NOT NULL
      )
      SELECT needs_key FROM found WHERE needs_key IS NOT NULL
    ) AS keys`
    return db
      .select({
        needs_key: sql<string>`keys.needs_key`,
        needs: sql<string | null>`${first(jobs.needs, sql`${jobs.needs_key} = keys.needs_key`)}`,
      })
      .from(keys)
  }),
)

async function differentNeeds(store: Store, db: Db, place: Place, realm: string, daemon: string): Promise<Needy[]> {
  const rows = await needsAt(place)(store, db, { realm, daemon })
  return rows.map(({ needs_key, needs }) => ({ needs_key, needs: needs === null ? null : JSON.parse(needs) }))
}

/** The waiting jobs of a place with the same needs, in the order in which they are delivered. */
const jobsAt = perPlace(place =>
  prepared((store, db, slot: Slot<'realm' | 'daemon' | 'key' | 'limit'>) => {
    const { jobs } = store
    return (
      db
        .select()
        .from(jobs)
        .where(and(waiting(store, slot, place), eq(jobs.needs_key, slot('key'))))
        // PostgreSQL uses the order of the index only when the daemon, the same for all rows, stands here too.
        .orderBy(asc(jobs.daemon_id), desc(jobs.priority), asc(jobs.created_at), asc(jobs.id))
        .limit(slot('limit'))
    )
  }),
)

/** Whether a job waits at a place. */
const waitsAt = perPlace(place =>
  prepared((store, db, slot: Slot<'realm' | 'daemon'>) => {
    const { jobs } = store
    return db
      .select({ id: jobs.id })
      .from(jobs)
      .where(waiting(store, slot, place))
      .orderBy(jobs.daemon_id, jobs.needs_key)
      .limit(1)
  }),
)

/**
 * Whether the daemon may take a job with these needs. Where an agent that phases name is not ready on it, the job is
 * left to a daemon that is online and has it ready, if there is one.
 */
async function mayTake(store: Store, db: Db, taker: Taker, { needs }: Needy, now: number): Promise<boolean> {
  if (lacks(needs, taker).length > 0) return false
  if (unready(needs, taker).length === 0) return true
  const { daemons } = store
  const online = and(
    eq(daemons.realm_id, taker.realm_id),
    isNull(daemons.removed_at),
    isNotNull(daemons.approved_at),
    eq(daemons.paused, false),
    gt(daemons.last_seen_at, now - ONLINE_MS),
  )
  const others = await db.select().from(daemons).where(online)
  return !others.some(other => lacks(needs, other).length === 0 && unready(needs, other).length === 0)
}

async function takeable<T extends Needy>(store: Store, db: Db, taker: Taker, all: T[], now: number): Promise<T[]> {
  const may = await Promise.all(all.map(each => mayTake(store, db, taker, each, now)))
  return all.filter((_, at) => may[at])
}

/** The kinds of jobs that the daemon gets now. A paused one finishes what it has. */
const workOf = (taker: Taker, slots: number) => (slots > 0 && !taker.paused ? WORK : [])

/** What waits in a realm: for which daemons, and the different needs of the runs that any daemon may take. */
export interface Waiting {
  pinned: { daemonId: string; takesSlot: boolean }[]
  needs: Needy[]
}

/** What could be claimed now. The cost is that of the different daemons and needs, however many jobs wait. */
export async function waitingJobs(store: Store, realm: string, now: number): Promise<Waiting> {
  const { db } = store
  const late = await allLapsed(store, db, { realm, now })
  const needs: Needy[] = late.filter(job => job.daemon_id === null)
  needs.push(...(await differentNeeds(store, db, { kind: 'run', meant: 'any' }, realm, '')))
  const pinned = late.flatMap(({ daemon_id, kind }) => (daemon_id === null ? [] : [{ kind, id: daemon_id }]))
  for (const kind of [...ORDERS, ...WORK]) {
    const meant = await meantDaemons({ kind, meant: 'one' })(store, db, { realm })
    for (const { id } of meant) pinned.push({ kind, id })
  }
  return { needs, pinned: pinned.map(({ kind, id }) => ({ daemonId: id, takesSlot: WORK.includes(kind) })) }
}

/** The daemons for which jobs of a kind wait, each once. The index is asked for the next one after the last. */
const meantDaemons = perPlace(({ kind }) =>
  prepared((store, db, slot: Slot<'realm'>) => {
    const { jobs } = store
    const next = (more: SQL) => {
      const those = and(eq(jobs.realm_id, slot('realm')), eq(jobs.state, 'waiting'), eq(jobs.kind, kind), more)
      const claimable = kind === 'run' ? those : and(those, due(store))
      return sql`(SELECT ${jobs.daemon_id} FROM ${jobs} WHERE ${claimable} ORDER BY ${jobs.daemon_id} LIMIT 1)`
    }
    const ids = sql`(
      WITH RECURSIVE found(id) AS (
        SELECT ${next(isNotNull(jobs.daemon_id))}
        UNION ALL
        SELECT ${next(sql`${jobs.daemon_id} > found.id`)} FROM found WHERE found.id IS NOT NULL
      )
      SELECT id FROM found WHERE id IS NOT NULL
    ) AS ids`
    return db.select({ id: sql<string>`ids.id` }).from(ids)
  }),
)

/** Whether a claim could find a job: a cheap check before the transaction. */
export async function hasWork(store: Store, taker: Taker, slots: number, now: number): Promise<boolean> {
  const { db } = store
  const place = { realm: taker.realm_id, daemon: taker.id }
  const kinds = [...ORDERS, ...workOf(taker, slots)]
  const needs: Needy[] = await lapsedFor(store, db, { ...place, now, kinds: JSON.stringify(kinds) })
  for (const each of placesOf(kinds)) {
    if (each.kind === 'run') needs.push(...(await differentNeeds(store, db, each, taker.realm_id, taker.id)))
    else if ((await waitsAt(each)(store, db, place)).length > 0) return true
  }
  return (await takeable(store, db, taker, needs, now)).length > 0
}

/**
 * Leases the jobs that `taker` may have: at most `slots` runs and resumptions, and in addition orders about its runs.
 */
export async function claim(store: Store, tx: Db, taker: Taker, slots: number, now: number): Promise<JobRow[]> {
  const { id: daemon, realm_id: realm } = taker
  const pick = async (kinds: JobRow['kind'][], limit: number) => {
    const late = await lapsedFor(store, tx, { realm, daemon, now, kinds: JSON.stringify(kinds) })
    const found = await takeable(store, tx, taker, late, now)
    for (const place of placesOf(kinds)) {
      const needs = place.kind === 'run' ? await differentNeeds(store, tx, place, realm, daemon) : [NO_NEEDS]
      for (const { needs_key: key } of await takeable(store, tx, taker, needs, now)) {
        found.push(...(await jobsAt(place)(store, tx, { realm, daemon, key, limit })))
      }
    }
    return found.sort(inTurn).slice(0, limit)
  }
  const orders = await pick(ORDERS, MOST_ORDERS)
  const kinds = workOf(taker, slots)
  const picked = [...orders, ...(kinds.length > 0 ? await pick(kinds, slots) : [])]
  if (picked.length === 0) return []
  // The lease of one delivery. A later delivery of the same job has another.
  const lease = { leased_to: taker.id, lease_id: crypto.randomUUID(), lease_until: now + LEASE_MS }
  await leaseJobs(store, tx, { ids: JSON.stringify(picked.map(({ id }) => id)), ...lease })
  return picked.map(job => ({ ...job, ...lease, state: 'leased', deliveries: job.deliveries + 1 }))
}

const leaseJobs = prepared((store, db, slot: Slot<'ids' | 'leased_to' | 'lease_id' | 'lease_until'>) => {
  const { jobs } = store
  return db
    .update(jobs)
    .set({
      state: 'leased',
      leased_to: sql`${slot('leased_to')}`,
      lease_id: sql`${slot('lease_id')}`,
      lease_until: sql`${slot('lease_until')}`,
      deliveries: sql`${jobs.deliveries} + 1`,
    })
    .where(isAmong(store, jobs.id, slot('ids')))
})

const inTurn = (a: JobRow, b: JobRow) =>
  b.priority - a.priority || a.created_at - b.created_at || (a.id < b.id ? -1 : 1)
