// How dispatched runs end that no daemon executes: nobody took them in time, a daemon refused them, somebody cancelled
// them, or their concurrency key was full.

import { and, eq, inArray, sql } from 'drizzle-orm'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import type { skippedFor } from '../../wire/concurrency.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { countEndOfWait } from '../access/quotas.ts'
import { recordEnds } from '../chains/ends.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import type { ReportedRun } from '../reports/runs.ts'
import { queueRunMessages } from '../webhooks/webhooks.ts'
import { releaseKey } from './concurrency-keys.ts'
import { giveUpJobs, MOST_AT_ONCE, realmsToSweep } from './undeliverable-jobs.ts'

/**
 * Gives up the jobs of a realm that cannot be delivered, and ends the runs that waited for them: all, or those of `rounds`.
 * Returns how many jobs of runs these were.
 */
export async function endUndeliverableRuns(hub: Hub, tx: Db, realmId: string, rounds?: number): Promise<number> {
  const { store, now, lived } = hub
  const lost = await giveUpJobs(store, tx, realmId, lived(), rounds)
  await countEndOfWait(hub, tx, realmId, lost.filter(({ job }) => job.kind === 'run').length)
  for (const { job, reason, cancelled } of lost) {
    if (job.kind === 'resume') {
      await releaseKeyOfEndedRun(hub, tx, job.run_id)
      continue
    }
    const state = cancelled ? 'cancelled' : 'failed'
    const error = cancelled ? null : { code: 'not_delivered', message: `no daemon took the run: ${reason}` }
    await endQueuedRun(hub, tx, job.run_id, { state, reason, error, completed_at: now() })
  }
  return lost.length
}

/** Does the same in every realm where a deadline has passed, for realms whose daemons do not ask for jobs. */
export async function* endUndeliverableRunsOfAllRealms(hub: Hub): AsyncGenerator<void> {
  const { store, lived } = hub
  for (const realmId of await realmsToSweep(store, lived())) {
    while ((await store.write(tx => endUndeliverableRuns(hub, tx, realmId, 1))) >= MOST_AT_ONCE) yield
    yield
  }
}

/**
 * Ends the run of a job that `daemon`, by its name, refused, unless the run was already started and has changes of its
 * own.
 */
export async function failRefusedRun(hub: Hub, tx: Db, job: JobRow, daemon: string): Promise<void> {
  const why = job.error === null ? '' : `: ${job.error}`
  const error = { code: 'refused', message: `daemon ${daemon} refused the run${why}` }
  await endQueuedRun(hub, tx, job.run_id, { state: 'failed', reason: 'refused', error, completed_at: hub.now() })
}

/** Ends a run that was cancelled before any daemon could begin it. */
export async function cancelQueuedRun(hub: Hub, tx: Db, job: JobRow): Promise<void> {
  await endQueuedRun(hub, tx, job.run_id, { state: 'cancelled', reason: 'cancelled', completed_at: hub.now() })
}

/** Ends a run at once that found its key full and does not wait. */
export async function skipQueuedRun(hub: Hub, tx: Db, job: JobRow, end: ReturnType<typeof skippedFor>): Promise<void> {
  const { jobs } = hub.store
  const over = { state: 'cancelled' as const, error: end.error.message, finished_at: hub.lived() }
  await tx.update(jobs).set(over).where(eq(jobs.id, job.id))
  await countEndOfWait(hub, tx, job.realm_id, 1)
  await endQueuedRun(hub, tx, job.run_id, { state: 'cancelled', ...end, completed_at: hub.now() })
}

/** Releases the concurrency key of an ended run that was to be resumed and was not. */
export async function releaseKeyOfEndedRun(hub: Hub, tx: Db, runId: string): Promise<void> {
  const { runs } = hub.store
  const over = and(eq(runs.run_id, runId), inArray(runs.state, [...ENDED_RUN_STATES]))
  const [run] = await tx.select().from(runs).where(over)
  if (run) await releaseKey(hub, tx, run, true)
}

async function endQueuedRun(hub: Hub, tx: Db, runId: string, end: Partial<ReportedRun>): Promise<void> {
  const { runs } = hub.store
  const queued = and(eq(runs.run_id, runId), eq(runs.state, 'queued'))
  const [ended] = await tx
    .update(runs)
    .set({ ...end, kept_since: hub.clock.keptSince(), rev: sql`${runs.rev} + 1` })
    .where(queued)
    .returning()
  if (ended) {
    afterCommit(tx, () => hub.counts.runs.ended(ended))
    await queueRunMessages(hub, tx, ended.realm_id, [ended])
    await recordEnds(hub, tx, ended.realm_id, [ended])
    await releaseKey(hub, tx, ended, true)
  }
  afterCommit(tx, () => hub.notifier.notify(`run ${runId}`))
}
