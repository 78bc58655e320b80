// The queue of jobs. A job waits, is then leased to one daemon at a time, and leaves the queue when a daemon accepts
// it. From then on the run belongs to that daemon, and later jobs of the run go only there. The time is a parameter,
// and every change happens in a transaction of the caller.

import { and, eq, inArray } from 'drizzle-orm'
import type { Tables } from '../../db/hub/schema.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Answer } from '../wire/protocol.ts'
import { type JobNeeds, keyOf } from './needs.ts'

export type JobRow = Tables['jobs']['$inferSelect']

export const LEASE_MS = 60_000

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
