// daemons/ack: what a daemon says about jobs that it holds, and what becomes of their runs. A call brings one answer or
// many; all of them are recorded in one transaction, and each is taken or refused for itself.

import { sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import { CadreError } from '../../error.ts'
import { runSpanOf, spanIdOf, traceOf } from '../../log/trace.ts'
import { record } from '../access/audit.ts'
import { orgOf, type RealmCaller } from '../access/callers.ts'
import { awaitsApproval, type DaemonRow, findDaemon, uniqueName } from '../access/daemons.ts'
import { countEndOfWait } from '../access/quotas.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import { answerTells } from '../tells/tell-jobs.ts'
import { type AnswerResult, type JobAnswer, recordAnswers } from './jobs.ts'
import { cancelQueuedRun, failRefusedRun, releaseKeyOfEndedRun } from './run-ends.ts'

/** The jobs as the answers have left them, or why an answer is refused, in the order of the answers. */
export async function recordJobAnswers(
  hub: Hub,
  caller: RealmCaller,
  daemon: DaemonRow,
  given: readonly JobAnswer[],
): Promise<({ id: string } | CadreError)[]> {
  const verdicts = await caller.write(async tx => {
    const approving = given.some(isAccept)
      ? findDaemon(hub, tx, daemon.id).then(now => (now?.approved_at == null ? awaitsApproval(daemon.name) : null))
      : null
    const judged = await recordAnswers(hub.store, tx, daemon, given, hub.lived(), approving)
    await applyResults(hub, tx, caller, daemon, judged)
    const others = given.filter((_, at) => isUnknown(judged[at]!))
    const told = others.length === 0 ? new Map<string, never>() : await answerTells(hub, tx, caller, daemon, others)
    return given.map((each, at): AnswerResult | { id: string } => told.get(each.jobId) ?? judged[at]!)
  })
  hub.notifier.notify(`realm ${daemon.realm_id}`)
  return verdicts.map(verdict => {
    if (verdict instanceof CadreError || 'id' in verdict) return verdict
    const { job, before } = verdict
    if (job.state === 'cancelled') {
      return new CadreError('conflict', `run ${job.run_id} was cancelled before it began`)
    }
    if (job.kind === 'run' && job.state === 'accepted' && before === 'leased') {
      hub.counts.runs.waited((hub.lived() - job.created_at) / 1_000)
      traceQueueWait(hub, job, daemon)
    }
    return job
  })
}

/** The hub's part of the trace of a dispatched run: how long it waited for a daemon. Its daemon exports the rest. The span
 * lies below that of the run, which begins later. */
function traceQueueWait({ telemetry, now, lived }: Hub, job: JobRow, daemon: DaemonRow): void {
  if (!telemetry?.tracer) return
  const { id: trace, sampled } = traceOf(job.run_id, traceparentIn(job.payload))
  if (!sampled) return
  const end = now()
  const name = String(job.payload.team).replace(/(.)@.*$/, '$1')
  telemetry.tracer.add({
    trace,
    id: spanIdOf('dispatch', job.run_id),
    parent: runSpanOf(job.run_id, 1),
    name: `dispatch ${name}`,
    kind: 'producer',
    start: Math.min(end, job.asked_at ?? end - (lived() - job.created_at)),
    end,
    failed: false,
    attributes: {
      'cicd.pipeline.name': name,
      'cicd.pipeline.run.id': job.run_id,
      'cicd.pipeline.run.state': 'pending',
      'cicd.worker.id': daemon.id,
      'cicd.worker.name': daemon.name,
      'cadre.realm.id': daemon.realm_id,
    },
  })
}

/** The header of the call that asked for the run, if it had one. */
export function traceparentIn({ traceparent }: JobRow['payload']): string | null {
  return typeof traceparent === 'string' ? traceparent : null
}

/** The answer is about no job of a run. */
const isUnknown = (verdict: AnswerResult): boolean => verdict instanceof CadreError && verdict.code === 'not_found'

const isAccept = ({ status }: JobAnswer): boolean => status === 'accepted'

/** Records who answered, and what the answers mean for the runs. */
async function applyResults(
  hub: Hub,
  tx: Parameters<typeof record>[1],
  caller: RealmCaller,
  daemon: DaemonRow,
  verdicts: readonly AnswerResult[],
): Promise<void> {
  const { id: daemonId, realm_id } = daemon
  const jobs = verdicts.flatMap(verdict => (verdict instanceof CadreError ? [] : [verdict.job]))
  const common = { action: 'daemons/ack', realm_id, org_id: orgOf(caller, realm_id) }
  const entries = jobs.map(job => ({
    ...common,
    target: `${job.state} ${job.kind} job ${job.id}, run ${job.run_id}${reasonOf(job)}`,
  }))
  await record(hub, tx, caller, ...entries)
  const begun = jobs.filter(({ kind, state }) => kind === 'run' && state === 'accepted').map(({ run_id }) => run_id)
  if (begun.length > 0) await pinRuns(hub.store, tx, { runs: JSON.stringify(begun), daemonId })
  const begins = verdicts.filter(each => !(each instanceof CadreError) && each.job.kind === 'run' && endsWait(each))
  await countEndOfWait(hub, tx, realm_id, begins.length)
  for (const job of jobs) {
    if (job.kind === 'resume' && job.state === 'failed') await releaseKeyOfEndedRun(hub, tx, job.run_id)
    if (job.kind === 'run' && job.state === 'cancelled') await cancelQueuedRun(hub, tx, job)
    if (job.kind === 'run' && job.state === 'failed')
      await failRefusedRun(hub, tx, job, await uniqueName(hub, tx, daemon))
  }
}

/** Whether the answer is the one with which a run waits no longer. */
const endsWait = ({ job, before }: Exclude<AnswerResult, CadreError>) => before === 'leased' && job.state !== 'leased'

/** Why an order was refused, which stands nowhere else for people; why a run was, stands in the run. */
function reasonOf({ kind, error }: JobRow): string {
  // A text that is not Unicode would be refused by PostgreSQL.
  return kind === 'run' || error === null ? '' : `: ${error.toWellFormed()}`
}

const pinRuns = prepared((store, db, slot: Slot<'runs' | 'daemonId'>) =>
  db
    .update(store.runs)
    .set({ daemon_id: sql`${slot('daemonId')}` })
    .where(isAmong(store, store.runs.run_id, slot('runs'))),
)
