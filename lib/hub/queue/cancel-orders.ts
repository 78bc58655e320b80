// Asks a run to end: in the queue at once, and on its daemon by an order.

import { and, eq, inArray } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import type { JsonObject } from '../../json.ts'
import { supersededBy } from '../../wire/concurrency.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import type { ReportedRun } from '../reports/runs.ts'
import { type KeyRow, markAsEnding, runsToCancel } from './concurrency-keys.ts'
import { enqueueJob } from './jobs.ts'
import { endUndeliverableRuns } from './run-ends.ts'

/** The job that started a tree. */
export async function firstJob({ store: { jobs } }: Hub, tx: Db, rootId: string): Promise<JobRow | undefined> {
  const [first] = await tx
    .select()
    .from(jobs)
    .where(and(eq(jobs.run_id, rootId), eq(jobs.kind, 'run')))
  return first
}

/** No daemon has the job of a run. */
export const isUnleased = (job: JobRow | undefined): boolean => job?.state === 'waiting' || job?.state === 'blocked'

/** A job that carries an order to a daemon. `waits`: it was given before, and its daemon has not answered it. */
export interface Order {
  job: JobRow
  waits: boolean
}

/** The orders of a kind about a run that no daemon has answered. */
export async function unansweredOrders({ store: { jobs } }: Hub, tx: Db, runId: string, kind: JobRow['kind']) {
  const open = and(eq(jobs.run_id, runId), eq(jobs.kind, kind), inArray(jobs.state, ['waiting', 'leased', 'held']))
  return tx.select().from(jobs).where(open)
}

/**
 * The order goes to the daemon that holds the run, even when the hub has not answered yet that the daemon may begin it. A daemon takes a
 * second order as one to stop the `always` phases too, so none is given before the first was answered: nobody can have
 * seen these phases run.
 */
export async function requestCancel(
  hub: Hub,
  tx: Db,
  row: ReportedRun,
  by: number,
  payload: JsonObject,
): Promise<Order> {
  const { realm_id, run_id, root_run_id, daemon_id, concurrency_key } = row
  const given = await unansweredCancel(hub, tx, row)
  if (given) return { job: given, waits: true }
  const first = await firstJob(hub, tx, root_run_id)
  const order = { realm_id, run_id, kind: 'cancel' as const, payload, created_by: by, asked_at: hub.now() }
  const target = { daemon_id: daemon_id ?? first?.leased_to ?? null }
  const job = await enqueueJob(hub.store, tx, { ...order, ...target }, hub.lived())
  if (concurrency_key !== null && run_id === root_run_id) await markAsEnding(hub, tx, run_id)
  if (isUnleased(first)) await endUndeliverableRuns(hub, tx, realm_id)
  return { job, waits: false }
}

/** An order to cancel a run, or one above it, that no daemon has answered. */
async function unansweredCancel(hub: Hub, tx: Db, row: ReportedRun): Promise<JobRow | undefined> {
  const { runs } = hub.store
  for (let run: ReportedRun | undefined = row; run; ) {
    const [job] = await unansweredOrders(hub, tx, run.run_id, 'cancel')
    if (job || run.parent_run_id === null) return job
    const above: ReportedRun[] = await tx.select().from(runs).where(eq(runs.run_id, run.parent_run_id))
    run = above[0]
  }
  return undefined
}

/** Asks the runs to end that are in the way of a run with `cancel_oldest`. */
export async function cancelOldestRuns(hub: Hub, tx: Db, keyRow: KeyRow, by: number): Promise<void> {
  const { runs } = hub.store
  for (const runId of await runsToCancel(hub, tx, keyRow)) {
    const [row] = await tx.select().from(runs).where(eq(runs.run_id, runId))
    await requestCancel(hub, tx, row!, by, { reason: supersededBy(keyRow.run_id) })
  }
}
