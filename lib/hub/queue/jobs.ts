// The queue of jobs. A job waits, is then leased to one daemon at a time, and leaves the queue when a daemon accepts
// it. From then on the run belongs to that daemon, and later jobs of the run go only there. The time is a parameter, in
// lived time, and every change happens in a transaction of the caller.

import { and, eq, inArray, type Placeholder, type SQL, sql } from 'drizzle-orm'
import { batchWriter } from '../../../db/hub/batch-writer.ts'
import { isAmong, prepared, rowsFrom, type Slot } from '../../../db/hub/prepared.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import type { Answer } from '../../wire/calls/daemon-link.ts'
import { isUuid } from '../core/bodies.ts'
import type { JobRow } from '../core/job-rows.ts'
import { type JobNeeds, needsKeyOf } from './job-needs.ts'

export const LEASE_MS = 60_000

export interface NewJob {
  /** Given by callers that name the job in its run. */
  id?: string
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
  request_mark?: string | null
  /** Whether its run waits for a concurrency key. */
  blocked?: boolean
  /** When it was asked for, by the clock. */
  asked_at?: number
}

export async function enqueueJob(store: Store, tx: Db, job: NewJob, now: number): Promise<JobRow> {
  const [row] = await enqueueJobs(store, tx, [job], now)
  return row!
}

export async function enqueueJobs(store: Store, tx: Db, jobs: readonly NewJob[], now: number): Promise<JobRow[]> {
  const rows = jobs.map(({ blocked = false, ...given }): JobRow => {
    const { needs = null } = given
    return {
      ...{ id: crypto.randomUUID(), daemon_id: null, workspace: null, expires_at: null, idempotency_key: null },
      ...{ leased_to: null, lease_id: null, lease_until: null, finished_at: null, error: null, copy_id: null },
      ...{ priority: 0, deliveries: 0, created_at: now, asked_at: null, request_mark: null },
      ...given,
      state: blocked ? 'blocked' : 'waiting',
      needs,
      needs_key: needsKeyOf(needs),
    }
  })
  await insertJobs(store, tx, rows)
  return rows
}

const insertJobs = batchWriter(({ jobs }) => jobs)

/** The jobs among `ids` that a daemon holds and has not accepted yet. */
const leasedAmong = (store: Store, slot: Slot<'ids' | 'daemon'>): SQL => {
  const { id, leased_to, state } = store.jobs
  return and(isAmong(store, id, slot('ids')), eq(leased_to, slot('daemon')), eq(state, 'leased'))!
}

const firstLeased = prepared((store, db, slot: Slot<'ids' | 'daemon'>) =>
  db.select({ id: store.jobs.id }).from(store.jobs).where(leasedAmong(store, slot)).limit(1),
)

/** Whether `renew` would extend a lease. */
export async function holdsLeases(store: Store, daemonId: string, ids: readonly string[]): Promise<boolean> {
  return (await firstLeased(store, store.db, { ids: JSON.stringify(ids), daemon: daemonId })).length > 0
}

const setLeaseEnd = prepared((store, db, slot: Slot<'ids' | 'daemon' | 'until'>) =>
  db
    .update(store.jobs)
    .set({ lease_until: sql`${slot('until')}` })
    .where(leasedAmong(store, slot)),
)

/** Extends the leases of jobs that `daemonId` holds and has not accepted yet. */
export async function renewLeases(
  store: Store,
  tx: Db,
  daemonId: string,
  ids: readonly string[],
  now: number,
): Promise<void> {
  await setLeaseEnd(store, tx, { ids: JSON.stringify(ids), daemon: daemonId, until: now + LEASE_MS })
}

const ANSWERABLE_STATES: Record<Answer, JobRow['state'][]> = {
  accepted: ['leased', 'accepted'],
  done: ['leased', 'accepted', 'done'],
  failed: ['leased', 'accepted', 'failed'],
}

/** What a daemon says about a job that it holds. */
export interface JobAnswer {
  jobId: string
  leaseId: string
  status: Answer
  error?: string | undefined
}

/** A job as an answer has left it, and its state before; or why the answer is refused. */
export type AnswerResult = { job: JobRow; before: JobRow['state'] } | CadreError

/**
 * Records answers of a daemon about jobs, with as many statements for many as for one. Repeating an answer has no further
 * effect. A run that somebody has cancelled is not accepted any more: its job becomes `cancelled`. An answer is refused
 * with `conflict` when the lease has been replaced or the answer comes too late, and with `not_found` for a job of
 * another realm. A refused answer does not keep the others from being recorded. `mayNot`: why the daemon may accept no
 * job now, which is asked for at the same time as the jobs; null: it may.
 */
export async function recordAnswers(
  store: Store,
  tx: Db,
  daemon: { id: string; realm_id: string },
  given: readonly JobAnswer[],
  now: number,
  mayNot: string | null | Promise<string | null> = null,
): Promise<AnswerResult[]> {
  const idsOf = (some: readonly JobAnswer[]) => JSON.stringify(some.map(({ jobId }) => jobId).filter(isUuid))
  const asked = given.filter(({ status }) => status === 'accepted')
  const [rows, cancels, reason] = await together([
    jobsById(store, tx, { ids: idsOf(given) }),
    asked.length === 0 ? [] : waitingCancels(store, tx, { ids: idsOf(asked) }),
    mayNot,
  ])
  const known = new Map(rows.map(job => [job.id, job]))
  const cancelled = new Set(cancels.map(({ run_id }) => run_id))
  const verdicts = given.map(each => {
    if (reason !== null && each.status === 'accepted') {
      return new CadreError('conflict', `job ${each.jobId} waits for ${reason}`)
    }
    const verdict = judgeAnswer(known.get(each.jobId), daemon, each, cancelled, now)
    if (!(verdict instanceof CadreError)) known.set(verdict.job.id, verdict.job)
    return verdict
  })
  await writeResults(store, tx, daemon.id, verdicts, now)
  return verdicts
}

function judgeAnswer(
  job: JobRow | undefined,
  daemon: { id: string; realm_id: string },
  { jobId, leaseId, status, error }: JobAnswer,
  cancelled: ReadonlySet<string>,
  now: number,
): AnswerResult {
  if (!job || job.realm_id !== daemon.realm_id) return new CadreError('not_found', `there is no job ${jobId}`)
  if (job.lease_id !== leaseId || job.leased_to !== daemon.id) {
    return new CadreError('conflict', `lease ${leaseId} of job ${job.id} is over`)
  }
  const before = job.state
  if (!ANSWERABLE_STATES[status].includes(before))
    return new CadreError('conflict', `job ${job.id} is already ${before}`)
  if (status === 'accepted') {
    const unwanted = job.kind === 'run' && before === 'leased' && cancelled.has(job.run_id)
    return { before, job: { ...job, ...(unwanted ? { state: 'cancelled', finished_at: now } : { state: status }) } }
  }
  return { before, job: { ...job, state: status, finished_at: job.finished_at ?? now, error: error ?? job.error } }
}

/** Writes verdicts, and what follows from them for other jobs of the same runs. */
async function writeResults(store: Store, tx: Db, daemonId: string, verdicts: readonly AnswerResult[], now: number) {
  const jobs = verdicts.flatMap(verdict => (verdict instanceof CadreError ? [] : [verdict.job]))
  if (jobs.length === 0) return
  const last = new Map(jobs.map(job => [job.id, job]))
  // A text that is not Unicode would be refused by PostgreSQL.
  const rows = [...last.values()].map(({ id, state, finished_at, error }) => [
    ...[id, state, finished_at, error?.toWellFormed()],
  ])
  await writeJobs(store, tx, { rows: JSON.stringify(rows) })
  const runsOf = (state: JobRow['state'][]) =>
    jobs.filter(job => job.kind === 'run' && state.includes(job.state)).map(({ run_id }) => run_id)
  const over = runsOf(['cancelled', 'failed'])
  if (over.length > 0) await cancelJobs(store, tx, { runs: JSON.stringify(over), now })
  const accepted = runsOf(['accepted'])
  if (accepted.length > 0) await pinJobs(store, tx, { runs: JSON.stringify(accepted), daemonId })
}

const jobsById = prepared((store, db, slot: Slot<'ids'>) =>
  db
    .select()
    .from(store.jobs)
    .where(isAmong(store, store.jobs.id, slot('ids'))),
)

const UNACCEPTED: JobRow['state'][] = ['waiting', 'leased']

/** Jobs of runs that no daemon has accepted or refused. */
const unacceptedJobs = (store: Store, runs: Placeholder) =>
  and(isAmong(store, store.jobs.run_id, runs), inArray(store.jobs.state, UNACCEPTED))

/** The orders to cancel the runs of these jobs. */
const waitingCancels = prepared((store, db, slot: Slot<'ids'>) => {
  const { jobs } = store
  const those = db
    .select({ run_id: jobs.run_id })
    .from(jobs)
    .where(isAmong(store, jobs.id, slot('ids')))
  return db
    .select({ run_id: jobs.run_id })
    .from(jobs)
    .where(and(inArray(jobs.run_id, those), inArray(jobs.state, UNACCEPTED), eq(jobs.kind, 'cancel')))
})

const writeJobs = prepared((store, db, slot: Slot<'rows'>) =>
  db
    .update(store.jobs)
    .set({
      state: sql`t.value->>1`,
      finished_at: sql`CAST(t.value->>2 AS bigint)`,
      error: sql`t.value->>3`,
    })
    .from(rowsFrom(store, slot('rows')))
    .where(eq(store.jobs.id, sql`t.value->>0`)),
)

const cancelJobs = prepared((store, db, slot: Slot<'runs' | 'now'>) =>
  db
    .update(store.jobs)
    .set({ state: 'cancelled', finished_at: sql`${slot('now')}` })
    .where(unacceptedJobs(store, slot('runs'))),
)

const pinJobs = prepared((store, db, slot: Slot<'runs' | 'daemonId'>) =>
  db
    .update(store.jobs)
    .set({ daemon_id: sql`${slot('daemonId')}` })
    .where(unacceptedJobs(store, slot('runs'))),
)
