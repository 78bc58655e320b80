// Jobs that wait too long, are delivered too often, or are wanted no more, and when the next one does.

import { and, eq, exists, gt, gte, inArray, lte, or, type SQL, sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../db/hub/prepared.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import type { JobRow } from './queue.ts'

/** A job is given up after this many deliveries. */
export const MOST_DELIVERIES = 5
/** The job of a run, or of its resumption, that will never be accepted, with the reason to store in the run. */
export interface Lost {
  job: JobRow
  reason: string
  cancelled: boolean
}

/** No daemon has the job; a blocked one waits for the concurrency key of its run first. */
const IDLE: JobRow['state'][] = ['waiting', 'blocked']

/**
 * Gives up the jobs of a realm that waited longer than their `queue_timeout`, were delivered too often, or belong to a
 * run that was cancelled before any daemon accepted it. Returns the jobs among them that start or resume a run,
 * because nothing comes of those.
 */
export async function sweep(store: Store, tx: Db, realm: string, now: number): Promise<Lost[]> {
  const { jobs } = store
  const cancels = await cancelsOf(store, tx, { realm, now })
  const late = await lateJobs(store, tx, { realm, now })
  const tired = await tiredJobs(store, tx, { realm, now })
  const runs = JSON.stringify(cancels.map(({ run_id }) => run_id))
  const cancelled = cancels.length === 0 ? [] : await unbegun(store, tx, { runs, now })
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

const inRealm = ({ jobs }: Store, slot: Slot<'realm'>, ...states: JobRow['state'][]) =>
  and(eq(jobs.realm_id, slot('realm')), states.length === 1 ? eq(jobs.state, states[0]!) : inArray(jobs.state, states))

const lapses = (store: Store, slot: Slot<'realm' | 'now'>) =>
  and(inRealm(store, slot, 'leased'), lte(store.jobs.lease_until, slot('now')))

/** The orders to cancel that no daemon has taken. */
const cancelsOf = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { jobs } = store
  const cancels = (where: SQL | undefined) =>
    db
      .select({ run_id: jobs.run_id })
      .from(jobs)
      .where(and(where, eq(jobs.kind, 'cancel')))
  return cancels(inRealm(store, slot, 'waiting')).unionAll(cancels(lapses(store, slot)))
})

/** Jobs that waited longer than their `queue_timeout`. */
const waitedTooLong = (store: Store, slot: Slot<'realm' | 'now'>) =>
  and(inRealm(store, slot, ...IDLE), lte(store.jobs.expires_at, slot('now')))

const deliveredTooOften = (store: Store, slot: Slot<'realm' | 'now'>) =>
  and(lapses(store, slot), gte(store.jobs.deliveries, MOST_DELIVERIES))

const lateJobs = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db.select().from(store.jobs).where(waitedTooLong(store, slot)),
)

const tiredJobs = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db.select().from(store.jobs).where(deliveredTooOften(store, slot)),
)

/** The jobs of runs that no daemon has accepted, and none holds. */
const unbegun = prepared((store, db, slot: Slot<'runs' | 'now'>) => {
  const { jobs } = store
  const idle = or(inArray(jobs.state, IDLE), lte(jobs.lease_until, slot('now')))
  const open = and(inArray(jobs.state, [...IDLE, 'leased']), idle, eq(jobs.kind, 'run'))
  return db
    .select()
    .from(jobs)
    .where(and(isAmong(store, jobs.run_id, slot('runs')), open))
})

/** Whether a sweep would find a job that waited too long or was delivered too often. */
export async function hasOverdue(store: Store, realm: string, now: number): Promise<boolean> {
  return (await overdue(store, store.db, { realm, now })).length > 0
}

const overdue = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { jobs, realms } = store
  const found = (condition: SQL | undefined) => exists(db.select({ id: jobs.id }).from(jobs).where(condition))
  const any = or(found(waitedTooLong(store, slot)), found(deliveredTooOften(store, slot)))
  return db
    .select({ id: realms.id })
    .from(realms)
    .where(and(eq(realms.id, slot('realm')), any))
})

const deadlines = prepared((store, db, slot: Slot<'realm' | 'now'>) => {
  const { jobs, realms } = store
  const first = (column: typeof jobs.lease_until | typeof jobs.expires_at, state: JobRow['state']) => {
    const later = and(inRealm(store, slot, state), gt(column, slot('now')))
    return sql<string | number | null>`(SELECT ${column} FROM ${jobs} WHERE ${later} ORDER BY ${column} LIMIT 1)`
  }
  const lease = first(jobs.lease_until, 'leased')
  const [expiry, blocked] = [first(jobs.expires_at, 'waiting'), first(jobs.expires_at, 'blocked')]
  return db
    .select({ lease, expiry, blocked })
    .from(realms)
    .where(eq(realms.id, slot('realm')))
})

/** The next time after `now` at which a job of the realm changes because time passes, or null when there is none. */
export async function nextDeadline(store: Store, realm: string, now: number): Promise<number | null> {
  const [row] = await deadlines(store, store.db, { realm, now })
  const known = Object.values(row ?? {}).flatMap(time => (time === null ? [] : [Number(time)]))
  return known.length === 0 ? null : Math.min(...known)
}
