// Moves a run to another daemon.

import { eq } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import type { Dispatched } from '../../wire/records/hub-records.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import type { UserCaller } from '../access/callers.ts'
import { findDaemon } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import { findPackage } from '../packages/packages.ts'
import { runWithLargeValues } from '../reports/large-values.ts'
import { readableRun } from '../reports/runs.ts'
import { firstJob, requestCancel } from './cancel-orders.ts'
import { traceparentIn } from './job-answers.ts'
import { concurrencyKeyOf } from './key-requests.ts'
import { queueRun } from './queue-runs.ts'

/**
 * Starts a new run of the same team with the same inputs on another daemon. The old run is cancelled when its daemon
 * comes back.
 */
export async function moveRun(
  hub: Hub,
  caller: UserCaller,
  request: { run_id: string; daemon_id: string; force?: boolean },
): Promise<Dispatched & { moved_from: string }> {
  const { store } = hub
  const { receipts, runs } = store
  await hub.runIds.look()
  const queued = await caller.write(async tx => {
    const { row, realm } = await readableRun(hub, caller, request.run_id, tx)
    if (row.run_id !== row.root_run_id)
      throw new CadreError('invalid_state', 'only a top run can be moved; move the top run of this tree instead')
    if (ENDED_RUN_STATES.includes(row.state))
      throw new CadreError('invalid_state', `run ${row.run_id} is already ${row.state}`)
    const daemon = await findDaemon(hub, tx, request.daemon_id)
    if (!daemon || daemon.removed_at !== null || daemon.realm_id !== realm.id) {
      throw new CadreError('not_found', `no daemon ${request.daemon_id} in the realm of the run`)
    }
    if (daemon.id === row.daemon_id) throw new CadreError('conflict', 'the run is already on that daemon')
    const written = await tx
      .select({ entry: receipts.entry })
      .from(receipts)
      .innerJoin(runs, eq(runs.run_id, receipts.run_id))
      .where(eq(runs.root_run_id, row.run_id))
      .limit(1)
    if (written.length > 0 && !request.force) {
      throw new CadreError(
        'conflict',
        'the run has already written to outside systems and would do so again; to accept that, move it with `force`',
      )
    }
    const first = await firstJob(hub, tx, row.run_id)
    const isHeld = first?.state === 'held' || (row.daemon_id !== null && hub.lineage.awaitsDaemon(row.daemon_id))
    if (isHeld && !request.force) {
      throw new CadreError(
        'conflict',
        'the hub is on an older copy of its database and does not know yet what was executed of the run since; to execute that again, move it with `force`',
      )
    }
    const found = await findPackage(store, tx, String(first?.payload.team ?? `${row.team}@${row.version}`))
    if (!found) throw new CadreError('conflict', `${row.team} is not published; start it on the daemon itself`)
    await requestCancel(hub, tx, row, caller.user.id, {})
    const { inputs } = await runWithLargeValues(store, tx, row)
    const key = concurrencyKeyOf(found, inputs, row.environment)
    return queueRun(hub, tx, {
      caller,
      realm,
      found,
      inputs,
      // The new run waits for the end of the old one, which was asked for just now.
      key: key && { ...key, whenFull: 'queue' },
      runName: row.run_name,
      workspace: row.workspace,
      environment: row.environment,
      needs: first?.needs ?? null,
      daemonId: daemon.id,
      priority: first?.priority ?? 0,
      expiresAt: null,
      once: null,
      action: 'dispatch/move',
      startedBy: { kind: 'move', run_id: row.run_id, by: caller.user.username },
      traceparent: first ? traceparentIn(first.payload) : null,
    })
  })
  hub.notifier.notify(`realm ${queued.job.realm_id}`)
  const { id: job_id, run_id } = queued.job
  return { run_id, job_id, state: 'queued', moved_from: request.run_id }
}
