// runs/sync: applies what a daemon reports about its runs, exactly once and in order. A batch and the number of its
// last change are stored in one transaction. The hub does not trust the daemon: a daemon may report only its own runs,
// of teams on the realm's list. A change that does not fit is refused without delaying the others.

import { eq } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import { isObject, type Json } from '../../json.ts'
import { matches } from '../../schema/schema.ts'
import { endTurn } from '../../turns.ts'
import { jsonBytes, MAX_CHANGE_BYTES } from '../../wire/budget.ts'
import { gap } from '../../wire/protocol.ts'
import { CHANGES, type ChangeKind, RecordedFile, type SyncChange } from '../../wire/records/changes.ts'
import { Explanation } from '../../wire/records/run-records.ts'
import { StartedBy } from '../../wire/records/started-by.ts'
import { ENDED_RUN_STATES, RUN_STATES } from '../../wire/states.ts'
import { bounded } from '../../wire/why/explain.ts'
import { awaitsApproval, type DaemonRow, findDaemon, refuseAbsent } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import { starterColumns } from '../core/starters.ts'
import { type NamedRows, type QueueOutcome, Report } from './report.ts'
import type { RunFacts, RunReport } from './report-statements.ts'

/** The names of a watch's files are the longest. */
const MOST_STARTER_BYTES = 64 * 1024
/** The maximum length in bytes of a name in an index. PostgreSQL's index keys are limited to 2,704 bytes. */
const MAX_KEY = 2_400

export type Refusal = 'invalid_request' | 'forbidden' | 'conflict' | 'too_large' | 'not_found'

export interface Batch {
  epoch: string
  from_seq: number
  changes: readonly unknown[]
  /** The older copy for which the daemon has sent everything by now. */
  reported?: string
}

export interface Applied {
  acked_seq: number
  rejected: { seq: number; code: Refusal }[]
  /** The number of changes that were new, whether they were applied or rejected. */
  fresh: number
  /** The runs that changed, by their root run. */
  touched: Map<string, Set<string>>
  /** How many log lines were left out, because the realm has used up its quota. */
  cut_lines?: number
  /** What the queue has to do. */
  outcome: QueueOutcome
}

/** Applies the changes of `batch` that are new. Throws `conflict` when changes are missing in between. */
export async function applyBatch(
  hub: Hub,
  tx: Db,
  caller: Pick<DaemonRow, 'id' | 'realm_id'>,
  batch: Batch,
): Promise<Applied> {
  const { daemons } = hub.store
  const { id: daemonId } = caller
  const report = new Report(hub, tx, caller)
  const [daemon] = await together([findDaemon(hub, tx, daemonId), report.read(namedIn(batch.changes), endTurn)])
  refuseAbsent(daemonId, daemon)
  let acked = daemon.epoch === batch.epoch ? daemon.acked_seq : 0
  if (batch.from_seq > acked + 1) throw gap(acked, batch.from_seq)
  const known = Math.max(acked, batch.from_seq - 1)
  const rejected: Applied['rejected'] = []
  for (const [offset, change] of batch.changes.entries()) {
    await endTurn()
    const seq = batch.from_seq + offset
    if (!isObject(change) || change.seq !== seq) {
      throw new CadreError('invalid_request', `change ${offset} of the batch must have seq ${seq}`, {
        details: [{ path: `/changes/${offset}/seq`, message: `must be ${seq}` }],
      })
    }
    if (seq <= acked) continue
    const refusal = await applyChange(hub, tx, daemon, report, change)
    if (refusal) rejected.push({ seq, code: refusal })
    acked = seq
  }
  await report.write(endTurn)
  await tx.update(daemons).set({ epoch: batch.epoch, acked_seq: acked }).where(eq(daemons.id, daemonId))
  if (batch.reported !== undefined) await hub.lineage.recordFullReport(tx, daemon, batch.reported)
  const cut = report.lines.cut > 0 && { cut_lines: report.lines.cut }
  const fresh = Math.max(0, acked - known)
  return { acked_seq: acked, rejected, fresh, touched: report.changedRuns, outcome: report.outcome, ...cut }
}

/** The rows that these changes name, before it is known whether they have the form of changes. */
function namedIn(changes: readonly unknown[]): NamedRows {
  const runs = new Set<string>()
  const phases: [string, number][] = []
  const reviews: string[] = []
  for (const change of changes) {
    if (!isObject(change)) continue
    const { run_id, run, phase, review } = change
    if (!isId(run_id)) continue
    runs.add(run_id)
    if (isObject(run) && isId(run.parent_run_id)) runs.add(run.parent_run_id)
    if (isObject(phase) && Number.isSafeInteger(phase.index)) phases.push([run_id, Number(phase.index)])
    if (isObject(review) && isId(review.id)) reviews.push(review.id)
  }
  return { runs, phases, reviews, lines: changes.some(change => isObject(change) && change.kind === 'log') }
}

/** Whether it may be the id of a run or of a review. */
const isId = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f-]{36}$/.test(value)

const isRunState = (state: string): boolean => RUN_STATES.some(known => known === state)

const isKind = (kind: string): kind is ChangeKind => Object.hasOwn(CHANGES, kind)

async function applyChange(
  hub: Hub,
  tx: Db,
  daemon: DaemonRow,
  report: Report,
  change: Record<string, unknown>,
): Promise<Refusal | null> {
  const kind = String(change.kind)
  if (!isKind(kind)) return 'invalid_request'
  if (kind === 'run') {
    const clean = await checkChange(hub, tx, daemon, report, kind, change)
    return typeof clean === 'string' ? clean : applyRun(hub, daemon, report, clean)
  }
  const clean = await checkChange(hub, tx, daemon, report, kind, change)
  if (typeof clean === 'string') return clean
  const known = report.run(clean.run_id)
  if (!known) return 'not_found'
  report.noteChange(known)
  return applyDetail(report, known, kind, clean)
}

/** Checks a change. Returns it with the form of its kind, or the reason why it is refused. */
async function checkChange<K extends ChangeKind>(
  hub: Hub,
  tx: Db,
  daemon: DaemonRow,
  report: Report,
  kind: K,
  change: Record<string, unknown>,
): Promise<SyncChange<K> | Refusal> {
  const form = CHANGES[kind]
  const text = JSON.stringify(change)
  // PostgreSQL cannot store NUL in text.
  const clean = text.includes('\\u0000') ? withoutNul(change) : change
  if (kind === 'receipt' && isLongKey(clean.receipt)) return 'too_large'
  if (!matches(form, clean)) return 'invalid_request'
  if (Buffer.byteLength(text) > MAX_CHANGE_BYTES) return 'too_large'
  const known = report.run(String(change.run_id))
  if (known && !report.belongsToDaemon(known)) return 'forbidden'
  if (daemon.approved_at === null) await refuseDispatched(hub, tx, daemon, known?.root_run_id ?? rootIn(clean))
  if (known && Number(change.attempt) < known.attempt) return 'conflict'
  return clean
}

/** Whether an index cannot take the receipt. */
const isLongKey = (receipt: unknown): boolean =>
  isObject(receipt) && Buffer.byteLength(`${receipt.phase}${receipt.entry}`) > MAX_KEY

/** The root run that a change names for a run that is not stored yet. */
const rootIn = (change: Partial<SyncChange<'run'>>): string | undefined => change.run?.root_run_id

/**
 * Refuses for now what a daemon that is not approved reports about runs that the hub dispatched, because another
 * machine may have taken over its id. The daemon keeps these changes in its outbox and sends them once it is approved.
 */
export async function refuseDispatched(
  { store: { runs } }: Hub,
  tx: Db,
  daemon: DaemonRow,
  rootId: string | undefined,
): Promise<void> {
  if (rootId === undefined) return
  const [root] = await tx.select({ job_id: runs.job_id }).from(runs).where(eq(runs.run_id, rootId))
  if (root?.job_id == null) return
  throw new CadreError(
    'forbidden',
    `run ${rootId} was dispatched, so what became of it waits for ${awaitsApproval(daemon.name)}`,
  )
}

async function applyRun(
  hub: Hub,
  daemon: DaemonRow,
  report: Report,
  { run_id, attempt, run }: SyncChange<'run'>,
): Promise<Refusal | null> {
  if (run.run_id !== run_id) return 'invalid_request'
  const { started_at, completed_at, tree_key } = run
  // A run in a state that only its daemon knows has ended if it says when.
  const over = completed_at !== null
  if (isRunState(run.state) && ENDED_RUN_STATES.includes(run.state) !== over) return 'invalid_request'
  const found = report.run(run_id)
  // The report changes what it knows of a run in place.
  const known = found && { ...found }
  const { root_run_id, parent_run_id, parent_phase, call_path, call_depth } = known ?? run
  const reported: RunReport = {
    ...run,
    ...{ root_run_id, parent_run_id, parent_phase, call_path, call_depth },
    realm_id: daemon.realm_id,
    daemon_id: daemon.id,
    deliveries: run.deliveries ?? null,
    environment: run.environment ?? null,
    lived_ms: run.lived_ms ?? null,
    tolerated: run.tolerated ?? null,
    ...starterColumns(parent_run_id === null ? reportedStarter(run.started_by) : null),
    attempt,
    created_at: known?.created_at ?? run.created_at ?? started_at ?? hub.now(),
    // A clock may be set back, but in a record a run must not end before it starts.
    completed_at: completed_at !== null && started_at !== null ? Math.max(completed_at, started_at) : completed_at,
    kept_since: over ? hub.clock.keptSince() : null,
  }
  if (known) {
    const again = known.completed_at !== null && attempt === known.attempt
    if (again && (run.state !== known.state || reported.completed_at !== known.completed_at)) return 'conflict'
    if (!sameIdentity(known, run)) return 'conflict'
    if (tree_key !== known.tree_key && refusalOfSubRun(daemon, report, run)) return 'conflict'
  } else {
    const refusal = parent_run_id === null ? await refusalOfRoot(report, run) : refusalOfSubRun(daemon, report, run)
    if (refusal) return refusal
  }
  const { log, why } = run
  const isAdopted = known !== undefined && known.daemon_id === null && report.adoptRun(run_id)
  if (known && attempt > known.attempt) report.noteResumed(run_id)
  report.putRun(reported, log ? { log_lines: log.lines, log_ended: log.ended, log_kept: log.kept } : {})
  if (matches(Explanation, why)) {
    report.putExplanation({ run_id, attempt, state: run.state, why: bounded(why, Number.POSITIVE_INFINITY) })
  } else if (why === null && run.state === known?.state && attempt === known.attempt) {
    // What was to be explained has passed, in the same state.
    report.dropExplanation(run_id)
  }
  if (parent_run_id !== null) return null
  if (!known) report.noteUnknown(reported)
  if (over) report.noteEnd(run_id)
  if (run.state === known?.state && attempt === known.attempt) return null
  report.changeState(reported)
  if (known && known.concurrency_key !== null) {
    if (over) report.changeKey(known, false, isAdopted)
    else if (known.completed_at !== null || isAdopted) report.changeKey(known, true)
  }
  return null
}

/** What a daemon says started a run, if it is of a known form and not larger than a list has room for. */
function reportedStarter(given: Json | undefined): StartedBy | null {
  return given !== undefined && jsonBytes(given) <= MOST_STARTER_BYTES && matches(StartedBy, given) ? given : null
}

/** Whether the run has kept its parent and its team. Its item may move to another position in its map. */
function sameIdentity(known: RunFacts, run: SyncChange<'run'>['run']): boolean {
  return (
    known.root_run_id === run.root_run_id &&
    known.parent_run_id === run.parent_run_id &&
    known.parent_phase === run.parent_phase &&
    known.team === run.team
  )
}

/** Admits a run that was started on the daemon itself. Its team must be on the realm's list. */
async function refusalOfRoot(report: Report, run: SyncChange<'run'>['run']): Promise<Refusal | null> {
  const top = run.root_run_id === run.run_id && run.tree_key === '' && run.call_depth === 0
  if (!top || run.call_path.length !== 1 || run.parent_phase !== null) return 'invalid_request'
  return (await report.mayRunTeam(run.team)) ? null : 'forbidden'
}

/** Admits a sub-run. It must be directly below its parent, in the same tree and on the same daemon. */
function refusalOfSubRun(daemon: DaemonRow, report: Report, run: SyncChange<'run'>['run']): Refusal | null {
  const parent = report.run(run.parent_run_id)
  if (!parent) return 'not_found'
  if (parent.realm_id !== daemon.realm_id || parent.daemon_id !== daemon.id) return 'forbidden'
  const below =
    parent.root_run_id === run.root_run_id &&
    run.parent_phase !== null &&
    run.call_depth === parent.call_depth + 1 &&
    run.call_path.length === run.call_depth + 1 &&
    parent.call_path.every((name, depth) => run.call_path[depth] === name) &&
    run.tree_key.length === parent.tree_key.length + 9 &&
    run.tree_key.startsWith(parent.tree_key)
  return below ? null : 'invalid_request'
}

type DetailKind = Exclude<ChangeKind, 'run'>

function applyDetail<K extends DetailKind>(report: Report, run: RunFacts, kind: K, change: SyncChange<K>) {
  return DETAILS[kind](report, run, change)
}

// A record may have properties that its form does not name. Only columns are written, and those that the daemon may not
// set stand behind its record.
const DETAILS: {
  [K in DetailKind]: (report: Report, run: RunFacts, change: SyncChange<K>) => Refusal | null
} = {
  phase(report, { run_id }, { phase }) {
    const known = report.attemptOf(run_id, phase.index)
    if (known !== undefined && phase.attempt < known) return 'conflict'
    if (known !== undefined && phase.attempt > known) report.forgetArtifacts(run_id, phase.name)
    report.putPhase({ ...phase, run_id, files: [], turns: phase.turns?.length ? phase.turns : null })
    for (const file of phase.files) {
      if (!matches(RecordedFile, file) || Buffer.byteLength(file.path) > MAX_KEY) continue
      report.putArtifact({ ...file, run_id, phase: phase.name })
    }
    return null
  },
  log(report, run, change) {
    report.lines.add(run, change)
    return null
  },
  event(report, { run_id }, { event }) {
    report.addEvent({ ...event, run_id })
    return null
  },
  artifact(report, { run_id }, { artifact }) {
    if (Buffer.byteLength(artifact.path) > MAX_KEY) return 'too_large'
    report.putArtifact({ ...artifact, run_id })
    return null
  },
  receipt(report, { run_id }, { receipt }) {
    const { phase, entry, state, external_id = null, external_url = null } = receipt
    if (state === 'cleared') report.clearReceipt({ run_id, phase, entry })
    else report.putReceipt({ run_id, phase, entry, state, receipt: { external_id, external_url } })
    return null
  },
  review(report, { run_id, realm_id }, { review }) {
    const known = report.reviewOf(review.id)
    if (known && known.run_id !== run_id) return 'forbidden'
    if (known?.state === 'decided' && review.state !== 'decided') return 'conflict'
    const {
      comment = null,
      inputs = [],
      reviewers = [],
      next = null,
      shown = null,
      keeps_next = null,
      expires_at = null,
    } = review
    const left = { comment, inputs, reviewers, next, shown, keeps_next, expires_at }
    // The review of the start of a run has no phase.
    report.putReview({ ...review, ...left, phase: review.phase ?? '', run_id, realm_id })
    return null
  },
}

function withoutNul<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value, (_, each) => (typeof each === 'string' ? each.replaceAll('\0', '\ufffd') : each)),
  )
}
