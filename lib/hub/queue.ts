// The queue of jobs. A job waits, is then leased to one daemon at a time, and leaves the queue when a daemon accepts
// it. From then on the run belongs to that daemon, and later jobs of the run go only there. The time is a parameter,
// and every change happens in a transaction of the caller.

import { and, asc, desc, eq, exists, gt, gte, inArray, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../db/hub/schema.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Answer } from '../wire/protocol.ts'
import { type DaemonRow, ONLINE_MS } from './daemons.ts'
import { type JobNeeds, keyOf, lacks, unready } from './needs.ts'

export type JobRow = Tables['jobs']['$inferSelect']

export const LEASE_MS = 60_000
/** A job is given up after this many deliveries. */
export const MOST_DELIVERIES = 5
/** Jobs about existing runs take no slot. At most this many are delivered at once. */
const MOST_ORDERS = 50

export interface NewJob {
  realm_id: string
  run_id: string
  kind: JobRow['kind']
  payload: JsonObject
  created_by: number
  daemon_id?: string | null
  workspace?: string | null
  needs?: JobNeeds | null
  priority?: number
  expires_at?: number | null
  idempotency_key?: string | null
  /** Whether its run waits for a concurrency key. */
  blocked?: boolean
}

/** The daemon that asks for jobs. */
export type Taker = Pick<DaemonRow, 'id' | 'realm_id' | 'labels' | 'agents' | 'workspaces' | 'paused'>

/** The job of a run, or of its resumption, that will never be accepted, with the reason to store in the run. */
export interface Lost {
  job: JobRow
  reason: string
  cancelled: boolean
}

export async function enqueue(
  { jobs }: Store,
  tx: Db,
  { blocked = false, ...job }: NewJob,
  now: number,
): Promise<JobRow> {
  const [row] = await tx
    .insert(jobs)
    .values({
      id: crypto.randomUUID(),
      state: blocked ? 'blocked' : 'waiting',
      deliveries: 0,
      priority: 0,
      created_at: now,
      ...job,
      needs_key: keyOf(job.needs ?? null),
    })
    .returning()
  return row!
}

// The statements below find jobs by an index, so that their cost does not grow with the number of jobs that wait. A
// waiting job is found by its kind, by the daemon that it is meant for and by what it needs (index `jobs_queue`, in the
// order in which jobs are delivered), a lapsed lease by its end (`jobs_lease`), and a queue_timeout by its end
// (`jobs_expiry`). What a job needs is decided once for all waiting jobs that need the same.

/** Orders about runs that exist. They take no slot. */
const ORDERS: JobRow['kind'][] = ['cancel', 'decide']
const WORK: JobRow['kind'][] = ['run', 'resume']
/** Jobs about existing runs need nothing but their daemon. */
const NO_NEEDS = { needs: null, needs_key: '' }

/**
 * An order waits until a daemon has accepted its run. A daemon that had it before could not know the run, and would
 * refuse the order while the run goes to another. A cancel keeps the run from being accepted meanwhile.
 */
function due({ db, jobs, runs }: Store): SQL {
  const accepted = and(eq(runs.run_id, jobs.run_id), isNotNull(runs.daemon_id))
  return or(eq(jobs.kind, 'run'), exists(db.select({ id: runs.run_id }).from(runs).where(accepted)))!
}

/** Waiting jobs of one kind that are meant for one daemon, or for any daemon (null). */
function waiting(store: Store, realmId: string, kind: JobRow['kind'], meant: string | null): SQL {
  const { jobs } = store
  return and(
    eq(jobs.realm_id, realmId),
    eq(jobs.state, 'waiting'),
    eq(jobs.kind, kind),
    meant === null ? isNull(jobs.daemon_id) : eq(jobs.daemon_id, meant),
    kind === 'run' ? undefined : due(store),
  )!
}

/** Jobs that were delivered and not accepted in time, and that are not meant for another daemon. */
function lapsed(store: Store, taker: Taker, kinds: JobRow['kind'][], now: number): SQL {
  const { jobs } = store
  return and(
    eq(jobs.realm_id, taker.realm_id),
    eq(jobs.state, 'leased'),
    lte(jobs.lease_until, now),
    inArray(jobs.kind, kinds),
    or(isNull(jobs.daemon_id), eq(jobs.daemon_id, taker.id)),
    due(store),
  )!
}

type Needy = Pick<JobRow, 'needs' | 'needs_key'>

/**
 * The different needs of these waiting jobs, each once. The index is asked for the next key after the last one, so that
 * the cost is that of the different needs, however many jobs wait.
 */
async function differentNeeds({ jobs }: Store, db: Db, jobsOf: SQL): Promise<Needy[]> {
  // PostgreSQL takes the index, and not the first rows of the table, only when the order is asked for.
  const first = (column: typeof jobs.needs | typeof jobs.needs_key, more: SQL) =>
    sql`(SELECT ${column} FROM ${jobs} WHERE ${and(jobsOf, more)} ORDER BY ${jobs.daemon_id}, ${jobs.needs_key} LIMIT 1)`
  const keys = sql`(
    WITH RECURSIVE found(needs_key) AS (
      SELECT ${first(jobs.needs_key, sql`true`)}
      UNION ALL
      SELECT ${first(jobs.needs_key, sql`${jobs.needs_key} > found.needs_key`)}
      FROM found WHERE found.needs_key IS NOT NULL
    )
    SELECT needs_key FROM found WHERE needs_key IS NOT NULL
  ) AS keys`
  const rows = await db
    .select({
      needs_key: sql<string>`keys.needs_key`,
      needs: sql<string | null>`${first(jobs.needs, sql`${jobs.needs_key} = keys.needs_key`)}`,
    })
    .from(keys)
  return rows.map(({ needs_key, needs }) => ({ needs_key, needs: needs === null ? null : JSON.parse(needs) }))
}

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
export async function waitingJobs(store: Store, realmId: string, now: number): Promise<Waiting> {
  const { jobs, db } = store
  const late: JobRow[] = await db
    .select()
    .from(jobs)
    .where(and(eq(jobs.realm_id, realmId), eq(jobs.state, 'leased'), lte(jobs.lease_until, now), due(store)))
  const needs: Needy[] = late.filter(job => job.daemon_id === null)
  needs.push(...(await differentNeeds(store, db, waiting(store, realmId, 'run', null))))
  const pinned = late.flatMap(({ daemon_id, kind }) => (daemon_id === null ? [] : [{ kind, id: daemon_id }]))
  for (const kind of [...ORDERS, ...WORK]) {
    for (const id of await meantDaemons(store, realmId, kind)) pinned.push({ kind, id })
  }
  return { needs, pinned: pinned.map(({ kind, id }) => ({ daemonId: id, takesSlot: WORK.includes(kind) })) }
}

/** The daemons for which jobs of a kind wait, each once. The index is asked for the next one after the last. */
async function meantDaemons(store: Store, realmId: string, kind: JobRow['kind']): Promise<string[]> {
  const { jobs, db } = store
  const next = (more: SQL) => {
    const those = and(eq(jobs.realm_id, realmId), eq(jobs.state, 'waiting'), eq(jobs.kind, kind), more)
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
  const rows = await db.select({ id: sql<string>`ids.id` }).from(ids)
  return rows.map(({ id }) => id)
}

/** Whether a claim could find a job: a cheap check before the transaction. */
export async function hasWork(store: Store, taker: Taker, slots: number, now: number): Promise<boolean> {
  const { jobs, realms, db } = store
  const kinds = [...ORDERS, ...workOf(taker, slots)]
  const places = kinds.flatMap(kind =>
    [taker.id, null].map(meant => ({ kind, where: waiting(store, taker.realm_id, kind, meant) })),
  )
  const late = lapsed(store, taker, kinds, now)
  const lateJobs: JobRow[] = await db.select().from(jobs).where(late)
  const any = async (conditions: SQL[]) => {
    // EXISTS would drop the order, and PostgreSQL reads the whole table where it expects many jobs of a kind that has none.
    const order = sql`ORDER BY ${jobs.daemon_id}, ${jobs.needs_key}`
    const found = conditions.map(
      where => sql`(SELECT ${jobs.id} FROM ${jobs} WHERE ${where} ${order} LIMIT 1) IS NOT NULL`,
    )
    const rows = await db
      .select({ id: realms.id })
      .from(realms)
      .where(and(eq(realms.id, taker.realm_id), or(...found)))
    return rows.length > 0
  }
  if (lateJobs.length === 0 && !(await any(places.map(({ where }) => where)))) return false
  if (await any(places.filter(({ kind }) => kind !== 'run').map(({ where }) => where))) return true
  const needs: Needy[] = lateJobs
  for (const { kind, where } of places) if (kind === 'run') needs.push(...(await differentNeeds(store, db, where)))
  return (await takeable(store, db, taker, needs, now)).length > 0
}

/**
 * Leases the jobs that `taker` may have: at most `slots` runs and resumptions, and in addition orders about its runs.
 */
export async function claim(store: Store, tx: Db, taker: Taker, slots: number, now: number): Promise<JobRow[]> {
  const { jobs } = store
  const pick = async (kinds: JobRow['kind'][], limit: number) => {
    const wait = (condition: SQL, { needs_key }: Needy) =>
      tx
        .select()
        .from(jobs)
        .where(and(condition, eq(jobs.needs_key, needs_key)))
        // PostgreSQL uses the order of the index only when the daemon, the same for all rows, stands here too.
        .orderBy(asc(jobs.daemon_id), desc(jobs.priority), asc(jobs.created_at), asc(jobs.id))
        .limit(limit)
    const late = await tx
      .select()
      .from(jobs)
      .where(lapsed(store, taker, kinds, now))
    const found = await takeable(store, tx, taker, late, now)
    for (const kind of kinds) {
      for (const meant of [taker.id, null]) {
        const condition = waiting(store, taker.realm_id, kind, meant)
        const needs = kind === 'run' ? await differentNeeds(store, tx, condition) : [NO_NEEDS]
        for (const each of await takeable(store, tx, taker, needs, now)) found.push(...(await wait(condition, each)))
      }
    }
    return found.sort(inTurn).slice(0, limit)
  }
  const orders = await pick(ORDERS, MOST_ORDERS)
  const kinds = workOf(taker, slots)
  const work = kinds.length > 0 ? await pick(kinds, slots) : []
  const leased: JobRow[] = []
  for (const job of [...orders, ...work]) {
    const [row] = await tx
      .update(jobs)
      .set({
        state: 'leased',
        leased_to: taker.id,
        lease_id: crypto.randomUUID(),
        lease_until: now + LEASE_MS,
        deliveries: job.deliveries + 1,
      })
      .where(eq(jobs.id, job.id))
      .returning()
    leased.push(row!)
  }
  return leased
}

const inTurn = (a: JobRow, b: JobRow) =>
  b.priority - a.priority || a.created_at - b.created_at || (a.id < b.id ? -1 : 1)

/** Extends the leases of jobs that `daemonId` holds and has not accepted yet. */
export async function renew({ jobs }: Store, tx: Db, daemonId: string, ids: string[], now: number): Promise<void> {
  await tx
    .update(jobs)
    .set({ lease_until: now + LEASE_MS })
    .where(and(inArray(jobs.id, ids), eq(jobs.leased_to, daemonId), eq(jobs.state, 'leased')))
}

const MOVES: Record<Answer, JobRow['state'][]> = {
  accepted: ['leased', 'accepted'],
  done: ['leased', 'accepted', 'done'],
  failed: ['leased', 'accepted', 'failed'],
}

/**
 * Records a daemon's answer about a job that it holds. Repeating an answer has no further effect. A run that somebody
 * has cancelled is not accepted any more: its job becomes `cancelled`. Throws `conflict` when the lease has been
 * replaced or the answer comes too late, and `not_found` for a job of another realm.
 */
export async function answer(
  { jobs }: Store,
  tx: Db,
  given: {
    realmId: string
    daemonId: string
    jobId: string
    leaseId: string
    status: Answer
    error?: string | undefined
  },
  now: number,
): Promise<JobRow> {
  const [job] = await tx.select().from(jobs).where(eq(jobs.id, given.jobId))
  if (!job || job.realm_id !== given.realmId) throw new CadreError('not_found', `there is no job ${given.jobId}`)
  if (job.lease_id !== given.leaseId || job.leased_to !== given.daemonId) {
    throw new CadreError('conflict', `lease ${given.leaseId} of job ${job.id} is over`)
  }
  if (!MOVES[given.status].includes(job.state)) {
    throw new CadreError('conflict', `job ${job.id} is already ${job.state}`)
  }
  if (given.status === 'accepted' && job.kind === 'run' && job.state === 'leased') {
    const open = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    const cancels = await tx
      .select()
      .from(jobs)
      .where(and(open, eq(jobs.kind, 'cancel')))
      .limit(1)
    if (cancels.length > 0) {
      await tx.update(jobs).set({ state: 'cancelled', finished_at: now }).where(open)
      return { ...job, state: 'cancelled', finished_at: now }
    }
  }
  const [row] = await tx
    .update(jobs)
    .set({
      state: given.status,
      ...(given.status !== 'accepted' && { finished_at: job.finished_at ?? now }),
      ...(given.error !== undefined && { error: given.error }),
    })
    .where(eq(jobs.id, job.id))
    .returning()
  if (given.status === 'failed' && job.kind === 'run') {
    const orders = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    await tx.update(jobs).set({ state: 'cancelled', finished_at: now }).where(orders)
  }
  if (given.status === 'accepted' && job.kind === 'run') {
    const later = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    await tx.update(jobs).set({ daemon_id: given.daemonId }).where(later)
  }
  return row!
}

/** No daemon has the job; a blocked one waits for the concurrency key of its run first. */
const IDLE: JobRow['state'][] = ['waiting', 'blocked']

/**
 * Gives up the jobs of a realm that waited longer than their `queue_timeout`, were delivered too often, or belong to a
 * run that was cancelled before any daemon accepted it. Returns the jobs among them that start or resume a run,
 * because nothing comes of those.
 */
export async function sweep({ jobs }: Store, tx: Db, realmId: string, now: number): Promise<Lost[]> {
  const waits = and(eq(jobs.realm_id, realmId), eq(jobs.state, 'waiting'))
  const lapses = and(eq(jobs.realm_id, realmId), eq(jobs.state, 'leased'), lte(jobs.lease_until, now))
  const where = (condition: SQL | undefined) => tx.select().from(jobs).where(condition)
  const cancels = [
    ...(await where(and(waits, eq(jobs.kind, 'cancel')))),
    ...(await where(and(lapses, eq(jobs.kind, 'cancel')))),
  ].map(({ run_id }) => run_id)
  const idleHere = and(eq(jobs.realm_id, realmId), inArray(jobs.state, IDLE))
  const late = await where(and(idleHere, isNotNull(jobs.expires_at), lte(jobs.expires_at, now)))
  const tired = await where(and(lapses, gte(jobs.deliveries, MOST_DELIVERIES)))
  const idle = or(inArray(jobs.state, IDLE), lte(jobs.lease_until, now))
  const open = and(inArray(jobs.state, [...IDLE, 'leased']), idle, eq(jobs.kind, 'run'))
  const cancelled = cancels.length === 0 ? [] : await where(and(inArray(jobs.run_id, cancels), open))
  const verdicts = new Map<string, Lost>()
  for (const job of late) verdicts.set(job.id, { job, reason: 'queue_timeout', cancelled: false })
  const often = `not accepted after ${MOST_DELIVERIES} deliveries`
  for (const job of tired) verdicts.set(job.id, { job, reason: often, cancelled: false })
  for (const job of cancelled) verdicts.set(job.id, { job, reason: 'cancelled', cancelled: true })
  for (const { job, reason, cancelled } of verdicts.values()) {
    const state = cancelled ? 'cancelled' : 'dead'
    await tx.update(jobs).set({ state, error: reason, finished_at: now }).where(eq(jobs.id, job.id))
    if (job.kind !== 'run') continue
    const orders = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    await tx.update(jobs).set({ state: 'cancelled', finished_at: now }).where(orders)
  }
  return [...verdicts.values()].filter(({ job }) => job.kind === 'run' || job.kind === 'resume')
}

/** Whether a sweep would find a job that waited too long or was delivered too often. */
export async function hasOverdue({ jobs, realms, db }: Store, realmId: string, now: number): Promise<boolean> {
  const found = (condition: SQL | undefined) => exists(db.select({ id: jobs.id }).from(jobs).where(condition))
  const late = and(eq(jobs.realm_id, realmId), inArray(jobs.state, IDLE), lte(jobs.expires_at, now))
  const lapses = and(eq(jobs.realm_id, realmId), eq(jobs.state, 'leased'), lte(jobs.lease_until, now))
  const rows = await db
    .select({ id: realms.id })
    .from(realms)
    .where(and(eq(realms.id, realmId), or(found(late), found(and(lapses, gte(jobs.deliveries, MOST_DELIVERIES))))))
  return rows.length > 0
}

/** The next time after `now` at which a job of the realm changes because time passes, or null when there is none. */
export async function nextDeadline({ jobs, realms, db }: Store, realmId: string, now: number): Promise<number | null> {
  const first = (column: typeof jobs.lease_until | typeof jobs.expires_at, state: JobRow['state']) => {
    const later = and(eq(jobs.realm_id, realmId), eq(jobs.state, state), gt(column, now))
    return sql<string | number | null>`(SELECT ${column} FROM ${jobs} WHERE ${later} ORDER BY ${column} LIMIT 1)`
  }
  const [row] = await db
    .select({
      lease: first(jobs.lease_until, 'leased'),
      expiry: first(jobs.expires_at, 'waiting'),
      blocked: first(jobs.expires_at, 'blocked'),
    })
    .from(realms)
    .where(eq(realms.id, realmId))
  const known = Object.values(row ?? {}).flatMap(time => (time === null ? [] : [Number(time)]))
  return known.length === 0 ? null : Math.min(...known)
}
