// The queue of jobs. A job waits, is then leased to one daemon at a time, and leaves the queue when a daemon accepts
// it. From then on the run belongs to that daemon, and later jobs of the run go only there. The time is a parameter,
// and every change happens in a transaction of the caller.

import { and, asc, desc, eq, inArray, isNotNull, isNull, lte, or, type SQL } from 'drizzle-orm'
import type { Tables } from '../../db/hub/schema.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Answer } from '../wire/protocol.ts'

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
  priority?: number
  expires_at?: number | null
  idempotency_key?: string | null
}

/** The daemon that asks for jobs. */
export interface Taker {
  id: string
  realm_id: string
  workspaces: readonly string[]
}

/** The job of a run that will never be accepted, with the reason to store in the run. */
export interface Lost {
  job: JobRow
  reason: string
  cancelled: boolean
}

export async function enqueue({ jobs }: Store, tx: Db, job: NewJob, now: number): Promise<JobRow> {
  const [row] = await tx
    .insert(jobs)
    .values({ id: crypto.randomUUID(), state: 'waiting', deliveries: 0, priority: 0, created_at: now, ...job })
    .returning()
  return row!
}

/**
 * The jobs that `taker` may have: jobs of its realm that wait or whose lease has expired, meant for it or for any
 * daemon.
 */
function eligible({ jobs }: Store, taker: Taker, now: number): SQL {
  const { workspaces } = taker
  return and(
    eq(jobs.realm_id, taker.realm_id),
    or(eq(jobs.state, 'waiting'), and(eq(jobs.state, 'leased'), lte(jobs.lease_until, now))),
    or(isNull(jobs.daemon_id), eq(jobs.daemon_id, taker.id)),
    or(isNull(jobs.workspace), workspaces.length > 0 ? inArray(jobs.workspace, [...workspaces]) : undefined),
  )!
}

/** Whether a claim could find a job: a cheap check before the transaction. */
export async function hasWork(store: Store, taker: Taker, now: number): Promise<boolean> {
  const { jobs, db } = store
  const rows = await db
    .select({ id: jobs.id })
    .from(jobs)
    .where(eligible(store, taker, now))
    .limit(1)
  return rows.length > 0
}

/**
 * Leases the jobs that `taker` may have: at most `slots` runs and resumptions, and in addition orders about its runs.
 */
export async function claim(store: Store, tx: Db, taker: Taker, slots: number, now: number): Promise<JobRow[]> {
  const { jobs } = store
  const pick = (kinds: JobRow['kind'][], limit: number) =>
    tx
      .select()
      .from(jobs)
      .where(and(eligible(store, taker, now), inArray(jobs.kind, kinds)))
      .orderBy(desc(jobs.priority), asc(jobs.created_at), asc(jobs.id))
      .limit(limit)
  const orders = await pick(['cancel', 'decide'], MOST_ORDERS)
  const work = slots > 0 ? await pick(['run', 'resume'], slots) : []
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
 * Records a daemon's answer about a job that it holds. Repeating an answer has no further effect. Throws `conflict`
 * when the lease has been replaced or the answer comes too late, and `not_found` for a job of another realm.
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
  const [row] = await tx
    .update(jobs)
    .set({
      state: given.status,
      ...(given.status !== 'accepted' && { finished_at: job.finished_at ?? now }),
      ...(given.error !== undefined && { error: given.error }),
    })
    .where(eq(jobs.id, job.id))
    .returning()
  if (given.status === 'accepted' && job.kind === 'run') {
    const later = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    await tx.update(jobs).set({ daemon_id: given.daemonId }).where(later)
  }
  return row!
}

/**
 * Gives up the jobs of a realm that waited longer than their `queue_timeout`, were delivered too often, or belong to a
 * run that was cancelled before any daemon accepted it. Returns the jobs among them that start a run, because those
 * runs are over.
 */
export async function sweep({ jobs }: Store, tx: Db, realmId: string, now: number): Promise<Lost[]> {
  const idle = or(eq(jobs.state, 'waiting'), and(eq(jobs.state, 'leased'), lte(jobs.lease_until, now)))
  const rows = await tx
    .select()
    .from(jobs)
    .where(and(eq(jobs.realm_id, realmId), idle))
  const cancelled = new Set(rows.filter(job => job.kind === 'cancel').map(job => job.run_id))
  const lost: Lost[] = []
  for (const job of rows) {
    const verdict = verdictOn(job, cancelled, now)
    if (!verdict) continue
    const state = verdict.cancelled ? 'cancelled' : 'dead'
    await tx.update(jobs).set({ state, error: verdict.reason, finished_at: now }).where(eq(jobs.id, job.id))
    if (job.kind !== 'run') continue
    const orders = and(eq(jobs.run_id, job.run_id), inArray(jobs.state, ['waiting', 'leased']))
    await tx.update(jobs).set({ state: 'cancelled', finished_at: now }).where(orders)
    lost.push({ job, ...verdict })
  }
  return lost
}

function verdictOn(job: JobRow, cancelled: Set<string>, now: number): { reason: string; cancelled: boolean } | null {
  if (job.kind === 'run' && cancelled.has(job.run_id)) return { reason: 'cancelled', cancelled: true }
  if (job.expires_at !== null && job.expires_at <= now && job.deliveries === 0) {
    return { reason: 'queue_timeout', cancelled: false }
  }
  if (job.deliveries < MOST_DELIVERIES) return null
  return { reason: `not accepted after ${MOST_DELIVERIES} deliveries`, cancelled: false }
}

/** The time at which the next job of the realm can change because time passes, or null when there is none. */
export async function nextDeadline({ jobs, db }: Store, realmId: string): Promise<number | null> {
  const open = and(eq(jobs.realm_id, realmId), inArray(jobs.state, ['waiting', 'leased']))
  const timed = or(isNotNull(jobs.lease_until), isNotNull(jobs.expires_at))
  const rows = await db.select({ lease: jobs.lease_until, expiry: jobs.expires_at }).from(jobs).where(and(open, timed))
  const times = rows.flatMap(({ lease, expiry }) => [lease, expiry].filter(time => time !== null))
  return times.length === 0 ? null : Math.min(...times)
}
