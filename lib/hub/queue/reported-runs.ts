// runs/sync for the queue: what a daemon has reported of its runs ends their jobs and frees their concurrency keys, in the
// transaction of the report.

import { and, eq, inArray, isNotNull, or, sql } from 'drizzle-orm'
import { inParts, isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db } from '../../../db/hub/store.ts'
import type { DaemonRow } from '../access/daemons.ts'
import { countEndOfWait } from '../access/quotas.ts'
import type { Hub } from '../core/hub.ts'
import { isAdoptable } from '../core/job-rows.ts'
import type { QueueOutcome } from '../reports/report.ts'
import { type Applied, applyBatch, type Batch } from '../reports/sync.ts'
import { holdKeyAgain, releaseKey } from './concurrency-keys.ts'

/** Applies a batch of changes, as `applyBatch` says, and does what follows for the queue. */
export async function takeReport(
  hub: Hub,
  tx: Db,
  daemon: Pick<DaemonRow, 'id' | 'realm_id'>,
  batch: Batch,
): Promise<Omit<Applied, 'outcome'> & Pick<QueueOutcome, 'unknown'>> {
  const { store } = hub
  const { id: daemonId, realm_id } = daemon
  const { outcome, ...applied } = await applyBatch(hub, tx, daemon, batch)
  const { adopted, resumed, ended, keys, unknown } = outcome
  const now = hub.lived()
  for (const runs of inParts([...adopted])) await adoptJobs(store, tx, { runs, daemonId })
  await countEndOfWait(hub, tx, realm_id, adopted.size)
  for (const runs of inParts([...resumed])) await endResumptions(store, tx, { runs, now })
  for (const ids of inParts([...ended])) await endJobs(store, tx, { ids, now })
  for (const { run, holds, waited } of keys) {
    if (holds) await holdKeyAgain(hub, tx, run)
    else await releaseKey(hub, tx, run, waited)
  }
  return { ...applied, unknown }
}

/** Ends the jobs of runs that have ended. */
const endJobs = prepared((store, db, slot: Slot<'ids' | 'now'>) => {
  const { jobs } = store
  const held = and(isAmong(store, jobs.run_id, slot('ids')), eq(jobs.kind, 'run'), eq(jobs.state, 'accepted'))
  return db
    .update(jobs)
    .set({ state: 'done', finished_at: sql`${slot('now')}` })
    .where(held)
})

/** Gives a daemon the jobs of runs that it has executed, and the orders about them that waited. */
const adoptJobs = prepared((store, db, slot: Slot<'runs' | 'daemonId'>) => {
  const { jobs } = store
  const isRun = eq(jobs.kind, 'run')
  const those = or(and(isRun, isAdoptable(store)), inArray(jobs.state, ['held', 'waiting']))
  const daemon = sql`${slot('daemonId')}`
  return db
    .update(jobs)
    .set({
      daemon_id: daemon,
      state: sql`CASE WHEN ${isRun} THEN 'accepted' ELSE ${jobs.state} END`,
      leased_to: sql`CASE WHEN ${isRun} THEN ${daemon} ELSE ${jobs.leased_to} END`,
      finished_at: null,
    })
    .where(and(isAmong(store, jobs.run_id, slot('runs')), those))
})

/** Ends the held orders to resume runs that were resumed. */
const endResumptions = prepared((store, db, slot: Slot<'runs' | 'now'>) => {
  const { jobs } = store
  const held = and(isNotNull(jobs.copy_id), inArray(jobs.state, ['held', 'blocked']), eq(jobs.kind, 'resume'))
  return db
    .update(jobs)
    .set({ state: 'done', finished_at: sql`${slot('now')}` })
    .where(and(isAmong(store, jobs.run_id, slot('runs')), held))
})
