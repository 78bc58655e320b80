// Jobs that wait too long, are delivered too often, or are wanted no more, and when the next one does.

import { and, eq, exists, gt, gte, inArray, isNotNull, lte, or, type SQL, sql } from 'drizzle-orm'
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
