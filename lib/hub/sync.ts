// runs/sync: applies what a daemon reports about its runs, exactly once and in order. A batch and the number of its
// last change are stored in one transaction. The hub does not trust the daemon: a daemon may report only its own runs,
// of teams on the realm's list. A change that does not fit is refused without delaying the others.

import { and, eq, inArray } from 'drizzle-orm'
import type { Db } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import { isObject } from '../json.ts'
import { matches } from '../schema.ts'
import { takeTurns } from '../turns.ts'
import { CHANGES, type ChangeKind, MAX_CHANGE_BYTES, type SyncChange } from '../wire/changes.ts'
import { gap } from '../wire/protocol.ts'
import { ENDED_RUN_STATES } from '../wire/states.ts'
import { awaitsApproval, type DaemonRow } from './daemons.ts'
import type { Hub } from './hub.ts'
import { withLines } from './log-state.ts'
import { giveUpPlace, rejoin } from './places.ts'
import { lastRev, type ReportedRun } from './runs.ts'
import { listedTeams } from './team-list.ts'
import { tellRunState } from './webhooks.ts'

/** The maximum length in bytes of a name in an index. PostgreSQL's index keys are limited to 2,704 bytes. */
const MAX_KEY = 2_400

export type Refusal = 'invalid_request' | 'forbidden' | 'conflict' | 'too_large' | 'not_found'

export interface Batch {
  epoch: string
  from_seq: number
  changes: readonly unknown[]
}

export interface Applied {
  acked_seq: number
  rejected: { seq: number; code: Refusal }[]
  /** The number of changes that were new, whether they were applied or rejected. */
  fresh: number
  /** The runs that changed, by their root run. */
  touched: Map<string, Set<string>>
}

/** Applies the changes of `batch` that are new. Throws `conflict` when changes are missing in between. */
export async function applyBatch(hub: Hub, tx: Db, daemonId: string, batch: Batch): Promise<Applied> {
  const { daemons } = hub.store
  const [daemon] = await tx.select().from(daemons).where(eq(daemons.id, daemonId))
  if (!daemon || daemon.removed_at !== null) {
    throw new CadreError('not_found', `there is no daemon ${daemonId}; register it`)
  }
  let acked = daemon.epoch === batch.epoch ? daemon.acked_seq : 0
  if (batch.from_seq > acked + 1) throw gap(acked, batch.from_seq)
  const known = Math.max(acked, batch.from_seq - 1)
  const rejected: Applied['rejected'] = []
  const touched: Applied['touched'] = new Map()
  const endTurn = takeTurns()
  for (const [offset, change] of batch.changes.entries()) {
    await endTurn()
    const seq = batch.from_seq + offset
    if (!isObject(change) || change.seq !== seq) {
      throw new CadreError('invalid_request', `change ${offset} of the batch must have seq ${seq}`, {
        details: [{ path: `/changes/${offset}/seq`, message: `must be ${seq}` }],
      })
    }
    if (seq <= acked) continue
    const refusal = await apply(hub, tx, daemon, change, touched)
    if (refusal) rejected.push({ seq, code: refusal })
    acked = seq
  }
  for (const [root, ids] of touched) {
    await endTurn()
    await renumber(hub, tx, root, [...ids])
  }
  await tx.update(daemons).set({ epoch: batch.epoch, acked_seq: acked }).where(eq(daemons.id, daemonId))
  return { acked_seq: acked, rejected, fresh: Math.max(0, acked - known), touched }
}

/**
 * Gives one new revision to everything that changed in a tree. A stream that follows the tree finds these runs by it.
 */
async function renumber({ store }: Hub, tx: Db, rootId: string, ids: string[]): Promise<void> {
  const { runs } = store
  const next = (await lastRev(store, tx, rootId)) + 1
  for (let i = 0; i < ids.length; i += 500) {
    await tx
      .update(runs)
      .set({ rev: next })
      .where(inArray(runs.run_id, ids.slice(i, i + 500)))
  }
}

const isKind = (kind: string): kind is ChangeKind => Object.hasOwn(CHANGES, kind)

async function apply(
  hub: Hub,
  tx: Db,
  daemon: DaemonRow,
  change: Record<string, unknown>,
  touched: Applied['touched'],
): Promise<Refusal | null> {
  const kind = String(change.kind)
  if (!isKind(kind)) return 'invalid_request'
  const touch = (root: string, id: string) => touched.set(root, (touched.get(root) ?? new Set()).add(id))
  if (kind !== 'run') {
    const admitted = await admit(hub, tx, daemon, kind, change)
    if (typeof admitted === 'string') return admitted
    if (!admitted.known) return 'not_found'
    touch(admitted.known.root_run_id, admitted.known.run_id)
    return applyDetail(hub, tx, admitted.known, kind, admitted.clean)
  }
  const admitted = await admit(hub, tx, daemon, kind, change)
  if (typeof admitted === 'string') return admitted
  const { clean, known } = admitted
  const refusal = await applyRun(hub, tx, daemon, clean, known)
  if (!refusal) touch(clean.run.root_run_id, clean.run_id)
  return refusal
}

/**
 * Checks a change. Returns it with the form of its kind and the run that it is about, if the run exists, or the reason
 * why it is refused.
 */
async function admit<K extends ChangeKind>(
  hub: Hub,
  tx: Db,
  daemon: DaemonRow,
  kind: K,
  change: Record<string, unknown>,
): Promise<{ clean: SyncChange<K>; known: ReportedRun | undefined } | Refusal> {
  const form = CHANGES[kind]
  const text = JSON.stringify(change)
  // PostgreSQL cannot store NUL in text.
  const clean = text.includes('\\u0000') ? withoutNul(change) : change
  if (!matches(form, clean)) return 'invalid_request'
  if (Buffer.byteLength(text) > MAX_CHANGE_BYTES) return 'too_large'
  const [known] = await tx
    .select()
    .from(hub.store.runs)
    .where(eq(hub.store.runs.run_id, String(change.run_id)))
  if (known && !(await speaksFor(hub, tx, daemon, known))) return 'forbidden'
  if (daemon.approved_at === null) await refuseDispatched(hub, tx, daemon, known?.root_run_id ?? rootIn(clean))
  if (known && Number(change.attempt) < known.attempt) return 'conflict'
  return { clean, known }
}

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

/** Whether the run belongs to this daemon: the run is pinned to it, or is not pinned and the daemon holds its job. */
async function speaksFor({ store }: Hub, tx: Db, daemon: DaemonRow, run: ReportedRun): Promise<boolean> {
  if (run.realm_id !== daemon.realm_id) return false
  if (run.daemon_id !== null) return run.daemon_id === daemon.id
  const { jobs } = store
  const [job] = await tx
    .select()
    .from(jobs)
    .where(and(eq(jobs.run_id, run.run_id), eq(jobs.kind, 'run')))
  return job?.leased_to === daemon.id
}

async function applyRun(
  hub: Hub,
  tx: Db,
  daemon: DaemonRow,
  { run_id, attempt, run }: SyncChange<'run'>,
  known: ReportedRun | undefined,
): Promise<Refusal | null> {
  const { runs, jobs } = hub.store
  if (run.run_id !== run_id) return 'invalid_request'
  const { started_at, completed_at } = run
  const told = {
    run_name: run.run_name,
    team: run.team,
    version: run.version,
    state: run.state,
    reason: run.reason,
    error: run.error,
    inputs: run.inputs,
    outputs: run.outputs,
    workspace: run.workspace,
    attempt,
    started_at,
    // A clock may be set back, but in a record a run must not end before it starts.
    completed_at: completed_at !== null && started_at !== null ? Math.max(completed_at, started_at) : completed_at,
    ...(run.deliveries && { deliveries: run.deliveries }),
    daemon_id: daemon.id,
    ...(run.log && { log_lines: run.log.lines, log_ended: run.log.ended, log_kept: run.log.kept }),
  }
  const over = ENDED_RUN_STATES.includes(run.state)
  if (over !== (completed_at !== null)) return 'invalid_request'
  if (known) {
    const again = ENDED_RUN_STATES.includes(known.state) && attempt === known.attempt
    if (again && (run.state !== known.state || told.completed_at !== known.completed_at)) return 'conflict'
    if (!sameIdentity(known, run)) return 'conflict'
    const { tree_key } = run
    if (tree_key !== known.tree_key && (await admitSubRun(hub, tx, daemon, run))) return 'conflict'
    await tx
      .update(runs)
      .set({ ...told, tree_key })
      .where(eq(runs.run_id, run_id))
  } else {
    const refusal =
      run.parent_run_id === null ? await admitRoot(hub, tx, daemon, run) : await admitSubRun(hub, tx, daemon, run)
    if (refusal) return refusal
    const { root_run_id, parent_run_id, parent_phase, call_path, call_depth, tree_key } = run
    const place = { root_run_id, parent_run_id, parent_phase, call_path, call_depth, tree_key }
    const created_at = run.created_at ?? started_at ?? hub.now()
    await tx.insert(runs).values({ run_id, realm_id: daemon.realm_id, ...place, ...told, created_at })
  }
  if (run.parent_run_id !== null) return null
  if (run.state !== known?.state || attempt !== known.attempt) {
    const created_at = known?.created_at ?? run.created_at ?? started_at ?? hub.now()
    await tellRunState(hub, tx, { ...told, run_id, realm_id: daemon.realm_id, created_at })
  }
  if (known && known.concurrency_key !== null && (run.state !== known.state || attempt !== known.attempt)) {
    if (over) await giveUpPlace(hub, tx, known)
    else if (ENDED_RUN_STATES.includes(known.state)) await rejoin(hub, tx, known)
  }
  if (over) {
    const held = and(eq(jobs.run_id, run_id), eq(jobs.kind, 'run'), eq(jobs.state, 'accepted'))
    await tx.update(jobs).set({ state: 'done', finished_at: hub.now() }).where(held)
  }
  return null
}

/** Whether the run has kept its parent and its team. Its item may move to another position in its map. */
function sameIdentity(known: ReportedRun, run: SyncChange<'run'>['run']): boolean {
  return (
    known.root_run_id === run.root_run_id &&
    known.parent_run_id === run.parent_run_id &&
    known.parent_phase === run.parent_phase &&
    known.team === run.team
  )
}

/** Admits a run that was started on the daemon itself. Its team must be on the realm's list. */
async function admitRoot(
  { store }: Hub,
  tx: Db,
  daemon: DaemonRow,
  run: SyncChange<'run'>['run'],
): Promise<Refusal | null> {
  const top = run.root_run_id === run.run_id && run.tree_key === '' && run.call_depth === 0
  if (!top || run.call_path.length !== 1 || run.parent_phase !== null) return 'invalid_request'
  const [listed] = await listedTeams(store, tx, daemon.realm_id, run.team)
  return listed?.lent ? null : 'forbidden'
}

/** Admits a sub-run. It must be directly below its parent, in the same tree and on the same daemon. */
async function admitSubRun(
  { store }: Hub,
  tx: Db,
  daemon: DaemonRow,
  run: SyncChange<'run'>['run'],
): Promise<Refusal | null> {
  const { runs } = store
  const [parent] = await tx.select().from(runs).where(eq(runs.run_id, run.parent_run_id!))
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

function applyDetail<K extends DetailKind>(hub: Hub, tx: Db, run: ReportedRun, kind: K, change: SyncChange<K>) {
  return DETAILS[kind](hub, tx, run, change)
}

const DETAILS: {
  [K in DetailKind]: (hub: Hub, tx: Db, run: ReportedRun, change: SyncChange<K>) => Promise<Refusal | null>
} = {
  async phase({ store: { phases, artifacts } }, tx, { run_id }, { phase }) {
    const [known] = await tx
      .select({ attempt: phases.attempt })
      .from(phases)
      .where(and(eq(phases.run_id, run_id), eq(phases.index, phase.index)))
    if (known && phase.attempt < known.attempt) return 'conflict'
    if (known && phase.attempt > known.attempt) {
      // A new attempt writes its files again.
      await tx.delete(artifacts).where(and(eq(artifacts.run_id, run_id), eq(artifacts.phase, phase.name)))
    }
    const { index, name, type, agent, action, state, reason, attempt, depends_on, error, ok, text, data, files } = phase
    const { started_at, completed_at } = phase
    const told = { name, type, agent, action, state, reason, attempt, depends_on, error, ok, text, data, files }
    const row = { ...told, started_at, completed_at }
    await tx
      .insert(phases)
      .values({ run_id, index, ...row })
      .onConflictDoUpdate({ target: [phases.run_id, phases.index], set: row })
    return null
  },
  async log({ store: { logs, runs } }, tx, run, change) {
    const { run_id } = run
    const { lines } = change
    const rows = lines.map(({ seq, phase, at, stream, text }) => ({ run_id, seq, phase, at, stream, text }))
    for (let i = 0; i < rows.length; i += 500) {
      await tx
        .insert(logs)
        .values(rows.slice(i, i + 500))
        .onConflictDoNothing()
    }
    await tx.update(runs).set(withLines(run, change)).where(eq(runs.run_id, run_id))
    return null
  },
  async event({ store: { events } }, tx, { run_id }, { event: { name, phase, at, data } }) {
    await tx.insert(events).values({ run_id, name, phase, at, data })
    return null
  },
  async artifact({ store: { artifacts } }, tx, { run_id }, { artifact: { path, phase, name, bytes, sha256 } }) {
    if (Buffer.byteLength(path) > MAX_KEY) return 'too_large'
    const row = { phase, name, bytes, sha256 }
    await tx
      .insert(artifacts)
      .values({ run_id, path, ...row })
      .onConflictDoUpdate({ target: [artifacts.run_id, artifacts.path], set: row })
    return null
  },
  async receipt({ store: { receipts } }, tx, { run_id }, { receipt }) {
    const { phase, entry, state, external_id = null, external_url = null } = receipt
    if (Buffer.byteLength(phase + entry) > MAX_KEY) return 'too_large'
    if (state === 'cleared') {
      const cleared = and(eq(receipts.run_id, run_id), eq(receipts.phase, phase), eq(receipts.entry, entry))
      await tx.delete(receipts).where(cleared)
      return null
    }
    const row = { state, receipt: { external_id, external_url } }
    await tx
      .insert(receipts)
      .values({ run_id, phase, entry, ...row })
      .onConflictDoUpdate({ target: [receipts.run_id, receipts.phase, receipts.entry], set: row })
    return null
  },
  async review({ store: { reviews } }, tx, { run_id, realm_id }, { review }) {
    const [known] = await tx.select().from(reviews).where(eq(reviews.id, review.id))
    if (known && known.run_id !== run_id) return 'forbidden'
    if (known?.state === 'decided' && review.state !== 'decided') return 'conflict'
    const { id, run_name, phase, entries, kind, reason, prompt, state, decision, decided_by, created_at, decided_at } =
      review
    const told = { run_name, phase, entries, reason, prompt, state, decision, decided_by, decided_at }
    const row = {
      ...told,
      kind,
      comment: review.comment ?? null,
      inputs: review.inputs ?? [],
      reviewers: review.reviewers ?? [],
      created_at,
    }
    await tx
      .insert(reviews)
      .values({ id, run_id, realm_id, ...row })
      .onConflictDoUpdate({ target: reviews.id, set: row })
    return null
  },
}

function withoutNul<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value, (_, each) => (typeof each === 'string' ? each.replaceAll('\0', '\ufffd') : each)),
  )
}
