// Orders about runs: to cancel, to resume, to decide a review.

import { eq } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import { findPackage } from '../packages/packages.ts'
import { type ReportedRun, readableRun } from '../reports/runs.ts'
import { firstJob, type Order, requestCancel, unansweredOrders } from './cancel-orders.ts'
import { enqueueJob } from './jobs.ts'
import { requestKeyAgain } from './key-requests.ts'

/**
 * Cancels or resumes a run, or has a review decided. This happens here while the run is still in the queue, and on its
 * daemon afterwards. `already_waits`: the same order was given before, and no daemon has answered it.
 */
export async function orderRun(
  hub: Hub,
  caller: UserCaller,
  runId: string,
  kind: 'cancel' | 'resume' | 'decide',
  payload: JsonObject,
): Promise<{ id: string; run_id: string; job_id: string; state: string; already_waits?: true }> {
  const { store } = hub
  const done = await caller.write(async tx => {
    const { row, realm } = await readableRun(hub, caller, runId, tx)
    const over = ENDED_RUN_STATES.includes(row.state)
    const isNamed = payload.from_phase !== undefined || payload.failed === true || payload.outputs === true
    const again = row.state !== 'completed' || isNamed
    if (kind === 'resume' ? !over || !again : over) {
      throw new CadreError('invalid_state', `run ${runId} is ${row.state}: there is nothing to ${kind}`)
    }
    if (kind === 'resume' && row.daemon_id === null) {
      throw new CadreError('invalid_state', `run ${runId} never reached a daemon; dispatch it again`)
    }
    const order =
      kind === 'cancel'
        ? await requestCancel(hub, tx, row, caller.user.id, payload)
        : await enqueueOrder(hub, tx, row, { kind, payload, created_by: caller.user.id })
    const action = kind === 'decide' ? 'reviews/decide' : `dispatch/${kind}`
    const target = kind === 'decide' ? `${payload.review_id}: ${payload.decision}, run ${runId}` : runId
    await record(hub, tx, caller, { action, target, org_id: realm.org_id, realm_id: realm.id })
    const [after] = await tx.select().from(store.runs).where(eq(store.runs.run_id, runId))
    return { ...order, state: after!.state, realmId: realm.id }
  })
  hub.notifier.notify(`realm ${done.realmId}`)
  const { job, state, waits } = done
  return { id: runId, run_id: runId, job_id: job.id, state, ...(waits && { already_waits: true }) }
}

async function enqueueOrder(
  hub: Hub,
  tx: Db,
  row: ReportedRun,
  order: { kind: 'resume' | 'decide'; payload: JsonObject; created_by: number },
): Promise<Order> {
  const given = order.kind === 'decide' ? await openDecision(hub, tx, row.run_id, order.payload) : undefined
  if (given) return { job: given, waits: true }
  const first = await firstJob(hub, tx, row.root_run_id)
  const { realm_id, run_id, daemon_id, concurrency_key } = row
  const target = { realm_id, run_id, daemon_id: daemon_id ?? first?.leased_to ?? null }
  const blocked = order.kind === 'resume' && concurrency_key !== null
  const job = await enqueueJob(hub.store, tx, { ...target, ...order, blocked, asked_at: hub.now() }, hub.lived())
  if (!blocked) return { job, waits: false }
  const team = String(first?.payload.team ?? `${row.team}@${row.version}`)
  await requestKeyAgain(hub, tx, row, await findPackage(hub.store, tx, team), job)
  return { job, waits: false }
}

/**
 * The order with the same decision that no daemon has answered. Throws `conflict` when the review was decided otherwise,
 * because the daemon would take the first decision and refuse this one.
 */
async function openDecision(hub: Hub, tx: Db, runId: string, wanted: JsonObject): Promise<JobRow | undefined> {
  const decisions = await unansweredOrders(hub, tx, runId, 'decide')
  const given = decisions.find(({ payload }) => payload.review_id === wanted.review_id)
  if (!given) return undefined
  const { decision, by, values = {} } = given.payload
  const isSame = decision === wanted.decision
  if (isSame && Bun.deepEquals(values, wanted.values ?? {})) return given
  throw new CadreError(
    'conflict',
    `${by} has decided ${decision}${isSame ? ' with other values' : ''}, and this decision waits for the daemon of the ` +
      'run: another one is taken only if that daemon refuses it',
  )
}
