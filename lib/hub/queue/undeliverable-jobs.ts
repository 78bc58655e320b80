// Jobs that wait too long, are delivered too often, or are wanted no more, and when the next one does. Whether there are
// any shows in the first entries of indexes, however many jobs wait.

import { and, eq, gt, gte, inArray, isNotNull, lte, or, type Placeholder, type SQL, sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { inState, isLapsed, type JobRow } from '../core/job-rows.ts'

/** A job is given up after this many deliveries. */
export const MOST_DELIVERIES = 5
/** How many jobs that waited too long are given up at once. */
export const MOST_AT_ONCE = 100

/** The job of a run, or of its resumption, that will never be accepted, with the reason to store in the run. */
export interface GivenUpJob {
  job: JobRow
  reason: string
  cancelled: boolean
}

/**
 * Gives up the jobs of a realm that waited longer than their `queue_timeout`, were delivered too often, or belong to a
 * run that was cancelled before any daemon accepted it. Returns the jobs among them that start or resume a run,
 * because nothing comes of those.
 */
export async function giveUpJobs(
  store: Store,
  tx: Db,
  realm: string,
  now: number,
  rounds = Number.POSITIVE_INFINITY,
): Promise<GivenUpJob[]> {
  const { jobs } = store
  const lost: GivenUpJob[] = []
  for (let round = 0; ; round++) {
    const some = await giveUpCandidates(store, tx, realm, now)
    if (some.length === 0 || round === rounds) return lost
    for (const { job, reason, cancelled } of some) {
      const state = cancelled ? 'cancelled' : 'dead'
      await tx.update(jobs).set({ state, error: reason, finished_at: now }).where(eq(jobs.id, job.id))
      if (job.kind !== 'run') continue
      const orders = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
      await tx.update(jobs).set({ state: 'cancelled', finished_at: now }).where(orders)
    }
    lost.push(...some.filter(({ job }) => job.kind === 'run' || job.kind === 'resume'))
  }
}

async function giveUpCandidates(store: Store, tx: Db, realm: string, now: number): Promise<GivenUpJob[]> {
  const [any] = await firstCandidates(store, tx, { realm, now })
  const lost = new Map<string, GivenUpJob>()
  const add = (jobs: JobRow[], reason: string, cancelled = false) => {
    for (const job of jobs) lost.set(job.id, { job, reason, cancelled })
  }
  if (any?.late) add(await expiredJobs(store, tx, { realm, now }), 'queue_timeout')
  if (any?.tired)
    add(await exhaustedJobs(store, tx, { realm, now }), `not accepted after ${MOST_DELIVERIES} deliveries`)
  if (any?.cancel || any?.lapsedCancel) {
    const runs = (await cancelOrders(store, tx, { realm, now })).map(({ run_id }) => run_id)
    add(await unacceptedRunJobs(store, tx, { runs: JSON.stringify(runs), now }), 'cancelled', true)
  }
  return [...lost.values()]
}

/** No daemon has the job; a blocked one waits for the concurrency key of its run first. */
const UNLEASED: ['waiting', 'blocked'] = ['waiting', 'blocked']

type Realm = Placeholder | Store['realms']['id']

/** Jobs that waited longer than their `queue_timeout`. */
const isExpired = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  and(eq(store.jobs.realm_id, realm), inState(store, ...UNLEASED), lte(store.jobs.expires_at, slot('now')))

const hasLapsedLease = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  and(eq(store.jobs.realm_id, realm), isLapsed(store, slot('now')))

const isExhausted = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  and(hasLapsedLease(store, realm, slot), gte(store.jobs.deliveries, MOST_DELIVERIES))

const ofKind = ({ jobs }: Store, kind: JobRow['kind']) => eq(jobs.kind, sql.raw(`'${kind}'`))

const waitingCancels = (store: Store, realm: Realm) =>
  and(eq(store.jobs.realm_id, realm), inState(store, 'waiting'), ofKind(store, 'cancel'))

const lapsedCancels = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  and(hasLapsedLease(store, realm, slot), ofKind(store, 'cancel'))

type OrderColumn = 'expires_at' | 'lease_until' | 'daemon_id'

/**
 * A column of the first of some jobs, in the order of their index. An EXISTS is not asked for: PostgreSQL would read the
 * table for it if it took most jobs for such ones.
 */
const first = <T>({ jobs }: Store, column: Store['jobs'][OrderColumn | 'id'], by: OrderColumn, where?: SQL) =>
  sql<T | null>`(SELECT ${column} FROM ${jobs} WHERE ${where} ORDER BY ${jobs[by]} LIMIT 1)`

const firstExpired = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  first<string>(store, store.jobs.id, 'expires_at', isExpired(store, realm, slot))

const firstExhausted = (store: Store, realm: Realm, slot: Slot<'now'>) =>
  first<string>(store, store.jobs.id, 'lease_until', isExhausted(store, realm, slot))

/** A job that waited too long and one that was delivered too often, or null. */
const firstOverdue = (store: Store, realm: Realm, slot: Slot<'now'>) => ({
  late: firstExpired(store, realm, slot),
  tired: firstExhausted(store, realm, slot),
})

/** A job of each kind that a sweep may give up. */
const firstCandidates = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { realms, jobs } = store
  const realm = slot('realm')
  return db
    .select({
      ...firstOverdue(store, realm, slot),
      cancel: first<string>(store, jobs.id, 'daemon_id', waitingCancels(store, realm)),
      lapsedCancel: first<string>(store, jobs.id, 'lease_until', lapsedCancels(store, realm, slot)),
    })
    .from(realms)
    .where(eq(realms.id, realm))
})

const expiredJobs = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db
    .select()
    .from(store.jobs)
    .where(isExpired(store, slot('realm'), slot))
    .orderBy(store.jobs.expires_at)
    .limit(MOST_AT_ONCE),
)

const exhaustedJobs = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db
    .select()
    .from(store.jobs)
    .where(isExhausted(store, slot('realm'), slot))
    .orderBy(store.jobs.lease_until),
)

/** The orders to cancel that no daemon has taken. */
const cancelOrders = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { jobs } = store
  const cancels = (where: SQL | undefined) => db.select({ run_id: jobs.run_id }).from(jobs).where(where)
  const realm = slot('realm')
  return cancels(waitingCancels(store, realm)).unionAll(cancels(lapsedCancels(store, realm, slot)))
})

/** The jobs of runs that no daemon has accepted, and none holds. */
const unacceptedRunJobs = prepared((store, db, slot: Slot<'runs' | 'now'>) => {
  const { jobs } = store
  const idle = or(inArray(jobs.state, UNLEASED), isLapsed(store, slot('now')))
  return db
    .select()
    .from(jobs)
    .where(and(isAmong(store, jobs.run_id, slot('runs')), idle, eq(jobs.kind, 'run')))
})

/** Whether a sweep would find a job that waited too long or was delivered too often. */
export async function hasUndeliverableJobs(store: Store, realm: string, now: number): Promise<boolean> {
  const [row] = await firstUndeliverable(store, store.db, { realm, now })
  return row !== undefined && (row.late !== null || row.tired !== null)
}

const firstUndeliverable = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { realms } = store
  const realm = slot('realm')
  return db
    .select(firstOverdue(store, realm, slot))
    .from(realms)
    .where(eq(realms.id, realm))
})

/** The realms in which a sweep would find such a job, or one whose lease has lapsed and whose run was cancelled. */
export async function realmsToSweep(store: Store, now: number): Promise<string[]> {
  const { db } = store
  const found = await realmsWithUndeliverable(store, db, { now })
  const begins = await lapsedRuns(store, db, { now })
  const cancels =
    begins.length === 0 ? [] : await cancelsAmong(store, db, { runs: JSON.stringify(begins.map(({ id }) => id)), now })
  return [...new Set([...found, ...cancels].map(({ realm_id }) => realm_id))]
}

const realmsWithUndeliverable = prepared((store, db, slot: Slot<'now'>) => {
  const { realms } = store
  const { late, tired } = firstOverdue(store, realms.id, slot)
  return db
    .select({ realm_id: realms.id })
    .from(realms)
    .where(or(isNotNull(late), isNotNull(tired)))
})

/** The runs of which a delivery has not been accepted in time. */
const lapsedRuns = prepared((store, db, slot: Slot<'now'>) => {
  const { jobs } = store
  return db
    .select({ id: jobs.run_id })
    .from(jobs)
    .where(and(isLapsed(store, slot('now')), ofKind(store, 'run')))
})

const cancelsAmong = prepared((store, db, slot: Slot<'runs' | 'now'>) => {
  const { jobs } = store
  const idle = and(or(inState(store, 'waiting'), isLapsed(store, slot('now'))), ofKind(store, 'cancel'))
  return db
    .select({ realm_id: jobs.realm_id })
    .from(jobs)
    .where(and(isAmong(store, jobs.run_id, slot('runs')), idle))
})

const nextDeadlines = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { jobs, realms } = store
  const of = (condition: SQL, column: 'expires_at' | 'lease_until') => {
    const later = and(eq(jobs.realm_id, slot('realm')), condition, gt(jobs[column], slot('now')))
    return first<string | number>(store, jobs[column], column, later)
  }
  return db
    .select({
      lease: of(inState(store, 'leased'), 'lease_until'),
      expiry: of(inState(store, ...UNLEASED), 'expires_at'),
    })
    .from(realms)
    .where(eq(realms.id, slot('realm')))
})

/** The next time after `now` at which a job of the realm changes because time passes, or null when there is none. */
export async function nextDeadline(store: Store, realm: string, now: number): Promise<number | null> {
  const [row] = await nextDeadlines(store, store.db, { realm, now })
  const known = Object.values(row ?? {}).flatMap(time => (time === null ? [] : [Number(time)]))
  return known.length === 0 ? null : Math.min(...known)
}
