// The queue of jobs. A job waits, is leased to one daemon at a time, and is over for the queue once it was accepted:
// from then on the run lives on that daemon, and later jobs of the run go only there.
// Time enters by parameter; every change is one transaction of the caller's.

import { and, asc, desc, eq, inArray, isNotNull, isNull, lte, or, type SQL } from 'drizzle-orm'
import type { Tables } from '../../db/hub/schema.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Answer } from '../wire/protocol.ts'

export type JobRow = Tables['jobs']['$inferSelect']

export const LEASE_MS = 60_000
/** Deliveries of one job before it is given up. */
export const MOST_DELIVERIES = 5
/** Jobs about runs that exist already take no slot; this many go out at once. */
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

/** Who asks for jobs. */
export interface Taker {
  id: string
  realm_id: string
  workspaces: readonly string[]
}

/** A run's job that will never be accepted, with the reason for its run. */
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

/** Jobs that `taker` may have: its realm's, waiting or with a lapsed lease, meant for it or for anyone. */
function eligible({ jobs }: Store, taker: Taker, now: number): SQL {
  const { workspaces } = taker
  return and(
    eq(jobs.realm_id, taker.realm_id),
    or(eq(jobs.state, 'waiting'), and(eq(jobs.state, 'leased'), lte(jobs.lease_until, now))),
    or(isNull(jobs.daemon_id), eq(jobs.daemon_id, taker.id)),
    or(isNull(jobs.workspace), workspaces.length > 0 ? inArray(jobs.workspace, [...workspaces]) : undefined),
  )!
}

/** Whether a claim could give something: a cheap look before the transaction. */
export async function hasWork(store: Store, taker: Taker, now: number): Promise<boolean> {
  const { jobs, db } = store
  const rows = await db
    .select({ id: jobs.id })
    .from(jobs)
    .where(eligible(store, taker, now))
    .limit(1)
  return rows.length > 0
}

/** Leases what `taker` may have: runs and resumptions up to `slots`, orders about its runs besides. */
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

/** Gives more time to jobs that `daemonId` holds and still works on accepting. */
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
 * What a daemon says of a job that it holds. Saying it twice is the same as once. Throws `conflict` for an old lease or
 * an answer that comes too late, `not_found` for a job of another realm.
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
  if (!job || job.realm_id !== given.realmId) throw new CadreError('not_found', `no job ${given.jobId}`)
  if (job.lease_id !== given.leaseId || job.leased_to !== given.daemonId) {
    throw new CadreError('conflict', `lease ${given.leaseId} of job ${job.id} is over`)
  }
  if (!MOVES[given.status].includes(job.state)) {
    throw new CadreError('conflict', `job ${job.id} is ${job.state} already`)
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
 * Gives up jobs of the realm that waited longer than their `queue_timeout`, were delivered too often, or whose run is
 * to be cancelled and was never accepted. Answers the run jobs among them: their runs are over.
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

/** When the next job of the realm may change by time alone; null when none. */
export async function nextDeadline({ jobs, db }: Store, realmId: string): Promise<number | null> {
  const open = and(eq(jobs.realm_id, realmId), inArray(jobs.state, ['waiting', 'leased']))
  const timed = or(isNotNull(jobs.lease_until), isNotNull(jobs.expires_at))
  const rows = await db.select({ lease: jobs.lease_until, expiry: jobs.expires_at }).from(jobs).where(and(open, timed))
  const times = rows.flatMap(({ lease, expiry }) => [lease, expiry].filter(time => time !== null))
  return times.length === 0 ? null : Math.min(...times)
}
