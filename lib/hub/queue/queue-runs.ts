// What dispatched runs become in the database: the run, its job, and the entry in the audit log, many at once.

import { batchWriter } from '../../../db/hub/batch-writer.ts'
import { type Db, isRefusedValue } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import type { Once } from '../../wire/once.ts'
import type { RunOrder } from '../../wire/records/jobs.ts'
import type { Quotas } from '../../wire/records/quotas.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import { type ActsForOwner, recordAll } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { refuseEnded } from '../access/live-token.ts'
import { countDispatches } from '../access/quotas.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import { starterColumns } from '../core/starters.ts'
import type { PackageRow } from '../packages/packages.ts'
import { ownerOf, RUN_LIMITS, splitLargeValues, writeLargeValues } from '../reports/large-values.ts'
import { LOG_COLUMNS } from '../reports/log-state.ts'
import { Batcher } from './batcher.ts'
import type { RequestedKey } from './concurrency-keys.ts'
import type { JobNeeds } from './job-needs.ts'
import { enqueueJobs } from './jobs.ts'
import { requestKeyForJob } from './key-requests.ts'

export interface NewRun<Caller extends UserCaller | ActsForOwner = UserCaller | ActsForOwner> {
  caller: Caller
  realm: { id: string; slug: string; org_id: number; quotas: Quotas | null }
  found: Pick<PackageRow, 'name' | 'version' | 'sha256'>
  inputs: JsonObject
  key: RequestedKey | null
  runName: string | null
  workspace: string | null
  environment: string | null
  needs: JobNeeds | null
  daemonId: string | null
  priority: number
  expiresAt: number | null
  once: Once | null
  /** The route that queues it. */
  action: string
  startedBy: StartedBy
  /** Where its trace begins; null where that is with the run. */
  traceparent?: string | null
}

export interface QueuedRun {
  job: JobRow
  /** The state of the run. */
  state: string
}

export type RunQueue = Batcher<NewRun<UserCaller>, QueuedRun>

/** Transactions that PostgreSQL does side by side. SQLite has one writer. */
const CONCURRENCY = 3
/** Most runs that one transaction queues. */
const MOST = 50

/** Queues runs of any callers in shared transactions, each as `UserCaller.write` does it for one. */
export function createRunQueue(hub: Hub): RunQueue {
  const { store } = hub
  const work = (runs: NewRun<UserCaller>[]) =>
    store.write(async tx => {
      const tokens = new Map(runs.map(({ caller: { token } }) => [`${token.hash} ${token.user.siteAdmin}`, token]))
      for (const token of tokens.values()) await refuseEnded(hub, tx, token)
      return queueRuns(hub, tx, runs)
    })
  const isOfOne = (error: unknown) =>
    (error instanceof CadreError && error.code !== 'unavailable') || isRefusedValue(error)
  return new Batcher({ maxSize: MOST, concurrency: store.dialect === 'postgres' ? CONCURRENCY : 1, work, isOfOne })
}

/** `hub.runIds.look` has to be awaited before the transaction. */
export async function queueRun(hub: Hub, tx: Db, run: NewRun): Promise<QueuedRun> {
  const [queued] = await queueRuns(hub, tx, [run])
  return queued!
}

async function queueRuns(hub: Hub, tx: Db, runs: readonly NewRun[]): Promise<QueuedRun[]> {
  const { store } = hub
  const now = hub.now()
  for (const some of Map.groupBy(runs, ({ realm }) => realm.id).values()) {
    await countDispatches(hub, tx, some[0]!.realm, some.length)
  }
  // The id of a run is made here, so that a second delivery of its job cannot start a second run. Jobs of one moment are
  // delivered in the order of their ids, which are made in the order in which the runs were asked for.
  const all = runs.map(run => ({ ...run, runId: hub.runIds.next(), jobId: hub.runIds.next() }))
  const rows = all.map(({ runId, jobId, realm, found, inputs, key, runName, workspace, environment, startedBy }) => {
    const row = {
      run_id: runId,
      realm_id: realm.id,
      job_id: jobId,
      run_name: runName,
      root_run_id: runId,
      call_path: [found.name],
      call_depth: 0,
      tree_key: '',
      team: found.name,
      version: found.version,
      state: 'queued',
      inputs,
      concurrency_key: key?.text ?? null,
      workspace,
      environment,
      ...starterColumns(startedBy),
      attempt: 0,
      created_at: now,
    }
    return splitLargeValues(row, ownerOf.run, { inputs: RUN_LIMITS.inputs })
  })
  await insertRuns(
    store,
    tx,
    rows.map(({ row }) => row),
  )
  for (const value of rows.flatMap(({ large }) => large)) await writeLargeValues(store, tx, [value])
  const jobs = await enqueueJobs(
    store,
    tx,
    all.map(
      ({ caller, runId, jobId, realm, found, inputs, key, runName, workspace, environment, startedBy, ...run }) => ({
        id: jobId,
        realm_id: realm.id,
        run_id: runId,
        kind: 'run',
        payload: {
          team: versionOf(found),
          sha256: found.sha256,
          inputs,
          run_name: runName,
          workspace,
          ...(environment !== null && { environment }),
          started_by: startedBy,
          ...(run.traceparent && { traceparent: run.traceparent }),
        } satisfies RunOrder,
        created_by: caller.token.user.id,
        daemon_id: run.daemonId,
        workspace,
        needs: run.needs,
        priority: run.priority,
        expires_at: run.expiresAt,
        idempotency_key: run.once?.key ?? null,
        request_mark: run.once?.mark ?? null,
        blocked: key !== null,
        asked_at: now,
      }),
    ),
    hub.lived(),
  )
  await recordAll(
    hub,
    tx,
    all.map(({ caller, action, found, runId, realm }) => ({
      by: caller,
      entry: { action, target: `${versionOf(found)} as ${runId}`, org_id: realm.org_id, realm_id: realm.id },
    })),
  )
  const queued: QueuedRun[] = []
  for (const [at, job] of jobs.entries()) {
    const { key } = all[at]!
    queued.push(key === null ? { job, state: 'queued' } : await requestKeyForJob(hub, tx, job, key))
  }
  return queued
}

const versionOf = ({ name, version }: NewRun['found']) => `${name}@${version}`

/** What a daemon will report, and what the hub counts from that. */
const insertRuns = batchWriter(({ runs }) => runs, {
  left: [
    ...(['daemon_id', 'parent_run_id', 'parent_phase', 'started_at', 'completed_at', 'kept_since', 'rev'] as const),
    ...(['lived_ms', 'tolerated', 'reason', 'error', 'outputs', 'deliveries', ...LOG_COLUMNS] as const),
  ],
})
