// How a run gets into the queue, and how later orders about it do. The run id is created here, so that a second
// delivery of the same job cannot start a second run.

import { and, eq, isNull } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../db/hub/store.ts'
import { formatDuration, parseDuration } from '../duration.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { Recent } from '../recent.ts'
import { listed } from '../spelling.ts'
import { type HeldKey, inputsFor, keyFrom } from '../team/team.ts'
import { skippedFor } from '../wire/concurrency.ts'
import type { Dispatched } from '../wire/hub-records.ts'
import type { RunOrder } from '../wire/jobs.ts'
import { allNeeds, needsOf, type Requires } from '../wire/needs.ts'
import { ENDED_RUN_STATES } from '../wire/states.ts'
import { record } from './audit.ts'
import type { UserCaller } from './callers.ts'
import { awaitsApproval, awaitsEndOfPause, type DaemonRow, findDaemon, statusOf } from './daemons.ts'
import { askToEnd, firstJob, makeRoom } from './ending.ts'
import type { Hub } from './hub.ts'
import { inWords, type JobNeeds, jobNeeds, lacks } from './needs.ts'
import { findPackage, type PackageRow, splitReference } from './packages/packages.ts'
import { type AskedKey, holdersNamed, type PlaceRow, takePlace, turnOfRun } from './places.ts'
import { enqueue, type JobRow } from './queue.ts'
import { type ReportedRun, readableRun, skipQueued } from './runs.ts'
import { listedTeams } from './team-list.ts'

export interface DispatchRequest {
  realm_id?: string
  daemon_id?: string
  team: string
  inputs?: Record<string, unknown>
  run_name?: string
  workspace?: string
  queue_timeout?: string
  priority?: number
  idempotency_key?: string
  requires?: Requires
}

/** Queues a run. Throws 409 when the team is not on the realm's list, and 400 when the inputs do not fit the team. */
export async function dispatchRun(hub: Hub, caller: UserCaller, request: DispatchRequest): Promise<Dispatched> {
  const { store } = hub
  const wait = request.queue_timeout === undefined ? null : durationOf(request.queue_timeout)
  const realmId = await realmOf(hub, caller, request)
  const realm = await caller.realm(realmId)
  const { name } = splitReference(request.team)
  const [entry] = await listedTeams(store, store.db, realmId, name)
  if (!entry?.lent) throw notListed(name, realm.slug, entry?.by)
  const found = await findPackage(store, store.db, request.team)
  if (!found) throw new CadreError('not_found', `no published version of ${name} fits ${request.team}`)
  const inputs = checkInputs(found, (request.inputs ?? {}) as JsonObject)
  const key = keyOf(found, inputs)
  const needs = allNeeds([...(found.needs ? [found.needs] : []), needsOf(request.requires ?? {})])
  const queueOnce = async (tx: Db) =>
    (await idempotent(hub, tx, realmId, request.idempotency_key)) ??
    queueRun(hub, tx, caller, {
      realm,
      found,
      inputs,
      key,
      runName: request.run_name ?? null,
      workspace: request.workspace ?? null,
      needs: jobNeeds(needs, request.workspace ?? null),
      daemonId: request.daemon_id ?? null,
      priority: request.priority ?? 0,
      expiresAt: wait === null ? null : hub.now() + wait,
      idempotencyKey: request.idempotency_key ?? null,
      action: 'dispatch/run',
    })
  // Two calls with the same key at the same moment: the one that violates the unique index returns the run of the
  // other.
  const { job, state } = await store.write(queueOnce).catch(error => {
    if (request.idempotency_key === undefined || !isDuplicate(error)) throw error
    return store.write(queueOnce)
  })
  hub.bell.ring(`realm ${realmId}`)
  const waiting = await waitOf(hub, job)
  return { run_id: job.run_id, job_id: job.id, state, ...(waiting !== null && { waiting_for: waiting }) }
}

async function waitOf(hub: Hub, job: JobRow): Promise<string | null> {
  if (job.state === 'blocked') return turnOfRun(hub, hub.store.db, job.run_id)
  return job.state === 'waiting' ? (await waitingReasons(hub, job.realm_id))(job) : null
}

/** `by` is the user who put the team on the list and no longer belongs to its scope. */
function notListed(name: string, realm: string, by: string | null | undefined): CadreError {
  const lapsed = by ? ` any more, because ${by}, who put it there, has left its scope` : ''
  const route = 'realms/add_team, as somebody who belongs to its scope'
  return new CadreError('conflict', `${name} is not on the team list of realm ${realm}${lapsed}; add it with ${route}`)
}

interface Queued {
  realm: { id: string; org_id: number }
  found: Pick<PackageRow, 'name' | 'version' | 'sha256'>
  inputs: JsonObject
  key: AskedKey | null
  runName: string | null
  workspace: string | null
  needs: JobNeeds | null
  daemonId: string | null
  priority: number
  expiresAt: number | null
  idempotencyKey: string | null
  action: string
}

async function queueRun(hub: Hub, tx: Db, caller: UserCaller, queued: Queued): Promise<{ job: JobRow; state: string }> {
  const { store } = hub
  const { realm, found, inputs, key, runName, workspace } = queued
  const run_id = Bun.randomUUIDv7()
  await tx.insert(store.runs).values({
    run_id,
    realm_id: realm.id,
    run_name: runName,
    root_run_id: run_id,
    call_path: [found.name],
    call_depth: 0,
    tree_key: '',
    team: found.name,
    version: found.version,
    state: 'queued',
    inputs,
    concurrency_key: key?.text ?? null,
    workspace,
    attempt: 0,
    created_at: hub.now(),
  })
  const team = `${found.name}@${found.version}`
  const job = await enqueue(
    store,
    tx,
    {
      realm_id: realm.id,
      run_id,
      kind: 'run',
      payload: { team, sha256: found.sha256, inputs, run_name: runName, workspace } satisfies RunOrder,
      created_by: caller.user.id,
      daemon_id: queued.daemonId,
      workspace,
      needs: queued.needs,
      priority: queued.priority,
      expires_at: queued.expiresAt,
      idempotency_key: queued.idempotencyKey,
      blocked: key !== null,
    },
    hub.now(),
  )
  await tx.update(store.runs).set({ job_id: job.id }).where(eq(store.runs.run_id, run_id))
  const deed = { action: queued.action, target: `${team} as ${run_id}`, org_id: realm.org_id, realm_id: realm.id }
  await record(hub, tx, caller, deed)
  return key === null ? { job, state: 'queued' } : queueForKey(hub, tx, job, key)
}

/** Lets the run of a blocked job wait for its key, or what its team says instead. */
async function queueForKey(hub: Hub, tx: Db, job: JobRow, key: AskedKey): Promise<{ job: JobRow; state: string }> {
  const { jobs, runs } = hub.store
  const place = await takePlace(hub, tx, job, key)
  if (place.state === 'waits') {
    if (key.whenFull === 'skip') await skipQueued(hub, tx, job, skippedFor(key.text, await firstOf(hub, tx, place)))
    if (key.whenFull === 'cancel_oldest') await makeRoom(hub, tx, place, job.created_by)
  }
  const [after] = await tx
    .select({ job: jobs, state: runs.state })
    .from(jobs)
    .innerJoin(runs, eq(runs.run_id, jobs.run_id))
    .where(eq(jobs.id, job.id))
  return after!
}

/** The run that holds the key of a place, or that came first. */
async function firstOf(hub: Hub, tx: Db, place: PlaceRow): Promise<string> {
  const [first] = await holdersNamed(hub, tx, place)
  return first ?? place.run_id
}

/** A resumed run takes a place again, behind those that wait. */
async function resumeForKey(hub: Hub, tx: Db, row: ReportedRun, found: PackageRow | null, job: JobRow): Promise<void> {
  const key = found && keyOf(found, row.inputs)
  if (!key) throw new CadreError('conflict', `${row.team} is not published any more; dispatch another version of it`)
  const place = await takePlace(hub, tx, row, key)
  if (place.state !== 'waits') return
  if (key.whenFull === 'skip') {
    const { message } = skippedFor(key.text, await firstOf(hub, tx, place)).error
    throw new CadreError('conflict', `${message}: resume it when that run has ended`)
  }
  if (key.whenFull === 'cancel_oldest') await makeRoom(hub, tx, place, job.created_by)
}

/**
 * Cancels or resumes a run, or has a review decided. This happens here while the run is still in the queue, and on its
 * daemon afterwards.
 */
export async function orderRun(
  hub: Hub,
  caller: UserCaller,
  runId: string,
  kind: 'cancel' | 'resume' | 'decide',
  payload: JsonObject,
): Promise<{ id: string; run_id: string; job_id: string; state: string }> {
  const { store } = hub
  const done = await store.write(async tx => {
    const { row, realm } = await readableRun(hub, caller, runId, tx)
    const over = ENDED_RUN_STATES.includes(row.state)
    const again = row.state !== 'completed' || payload.from_phase !== undefined
    if (kind === 'resume' ? !over || !again : over) {
      throw new CadreError('invalid_state', `run ${runId} is ${row.state}: there is nothing to ${kind}`)
    }
    if (kind === 'resume' && row.daemon_id === null) {
      throw new CadreError('invalid_state', `run ${runId} never reached a daemon; dispatch it again`)
    }
    const job =
      kind === 'cancel'
        ? await askToEnd(hub, tx, row, caller.user.id, payload)
        : await enqueueOrder(hub, tx, row, { kind, payload, created_by: caller.user.id })
    const action = kind === 'decide' ? 'reviews/decide' : `dispatch/${kind}`
    const target = kind === 'decide' ? `${payload.review_id}: ${payload.decision}, run ${runId}` : runId
    await record(hub, tx, caller, { action, target, org_id: realm.org_id, realm_id: realm.id })
    const [after] = await tx.select().from(store.runs).where(eq(store.runs.run_id, runId))
    return { job, state: after!.state, realmId: realm.id }
  })
  hub.bell.ring(`realm ${done.realmId}`)
  return { id: runId, run_id: runId, job_id: done.job.id, state: done.state }
}

async function enqueueOrder(
  hub: Hub,
  tx: Db,
  row: ReportedRun,
  order: { kind: 'resume' | 'decide'; payload: JsonObject; created_by: number },
): Promise<JobRow> {
  const first = await firstJob(hub, tx, row.root_run_id)
  const { realm_id, run_id, daemon_id, concurrency_key } = row
  const place = { realm_id, run_id, daemon_id: daemon_id ?? first?.leased_to ?? null }
  const blocked = order.kind === 'resume' && concurrency_key !== null
  const job = await enqueue(hub.store, tx, { ...place, ...order, blocked }, hub.now())
  if (!blocked) return job
  const team = String(first?.payload.team ?? `${row.team}@${row.version}`)
  await resumeForKey(hub, tx, row, await findPackage(hub.store, tx, team), job)
  return job
}

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
  const queued = await store.write(async tx => {
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
    const found = await findPackage(store, tx, String(first?.payload.team ?? `${row.team}@${row.version}`))
    if (!found) throw new CadreError('conflict', `${row.team} is not published; start it on the daemon itself`)
    await askToEnd(hub, tx, row, caller.user.id, {})
    const key = keyOf(found, row.inputs)
    return queueRun(hub, tx, caller, {
      realm,
      found,
      inputs: row.inputs,
      // The new run waits for the end of the old one, which was asked for just now.
      key: key && { ...key, whenFull: 'queue' },
      runName: row.run_name,
      workspace: row.workspace,
      needs: first?.needs ?? null,
      daemonId: daemon.id,
      priority: first?.priority ?? 0,
      expiresAt: null,
      idempotencyKey: null,
      action: 'dispatch/move',
    })
  })
  hub.bell.ring(`realm ${queued.job.realm_id}`)
  const { id: job_id, run_id } = queued.job
  return { run_id, job_id, state: 'queued', moved_from: request.run_id }
}

/** The daemons that a message names. */
const MOST_NAMED = 5

/**
 * Says of the waiting jobs of a realm what each waits for, as words for people. Null when a daemon that may take the
 * job is online.
 */
export async function waitingReasons(
  hub: Hub,
  realmId: string,
): Promise<(job: Pick<JobRow, 'kind' | 'daemon_id' | 'needs'>) => string | null> {
  const { daemons, db } = hub.store
  const rows = await db
    .select()
    .from(daemons)
    .where(and(eq(daemons.realm_id, realmId), isNull(daemons.removed_at)))
    .orderBy(daemons.name)
  const online = rows.filter(row => statusOf(hub, row) === 'online')
  return ({ kind, daemon_id, needs }) => {
    const meant = online.filter(row => daemon_id === null || row.id === daemon_id)
    const fitting = meant.filter(row => lacks(needs, row).length === 0)
    const isOrder = kind === 'cancel' || kind === 'decide'
    const approved = fitting.filter(row => row.approved_at !== null)
    if (approved.some(row => isOrder || !row.paused)) return null
    if (approved.length > 0) return awaitsEndOfPause(approved[0]!.name)
    if (fitting.length > 0) return awaitsApproval(fitting[0]!.name)
    if (daemon_id !== null) {
      const daemon = rows.find(row => row.id === daemon_id)
      if (!daemon) return `daemon ${daemon_id}`
      const missing = lacks(needs, daemon)
      return missing.length > 0
        ? `${listed(missing)} on daemon ${daemon.name}`
        : `daemon ${daemon.name} (${statusOf(hub, daemon)})`
    }
    if (needs === null) return 'a daemon that is online'
    if (online.length === 0) return `a daemon that is online and has ${inWords(needs)}`
    return `a daemon with ${inWords(needs)}; online ${online.length === 1 ? 'is' : 'are'} ${namesOf(online)}`
  }
}

function namesOf(rows: readonly DaemonRow[]): string {
  const names = rows.map(({ name }) => name)
  const more = names.length - MOST_NAMED
  return more > 0 ? `${names.slice(0, MOST_NAMED).join(', ')} and ${more} more` : names.join(', ')
}

async function realmOf(hub: Hub, caller: UserCaller, { realm_id, daemon_id }: DispatchRequest): Promise<string> {
  if (daemon_id === undefined) {
    if (realm_id !== undefined) return realm_id
    throw new CadreError('invalid_request', 'set `realm_id` or `daemon_id`', {
      details: [{ path: '/realm_id', message: 'is required without a daemon_id' }],
    })
  }
  const daemon = await findDaemon(hub, hub.store.db, daemon_id)
  const missing = new CadreError('not_found', `no daemon ${daemon_id} that you may see`)
  if (!daemon || daemon.removed_at !== null || (realm_id !== undefined && daemon.realm_id !== realm_id)) throw missing
  if ((await caller.realmRole(daemon.realm_id)) === null) throw missing
  return daemon.realm_id
}

function checkInputs(found: PackageRow, given: JsonObject): JsonObject {
  const secrets = found.inputs.filter(field => field.secret)
  const leaked = secrets.filter(field => Object.hasOwn(given, field.name))
  if (leaked.length > 0) {
    throw new CadreError(
      'invalid_request',
      'secret inputs are never sent through the hub; they belong in the daemon’s settings',
      {
        details: leaked.map(({ name }) => ({ path: `/inputs/${name}`, message: 'is secret' })),
      },
    )
  }
  const open = found.inputs.filter(field => !field.secret)
  const { problems } = inputsFor(open, given)
  if (problems.length === 0) return given
  throw new CadreError('invalid_request', `${found.name}@${found.version} does not take these inputs`, {
    details: problems,
  })
}

const keys = new Recent<string, HeldKey>(1_000)

/** The key of a run with these inputs. Throws `invalid_request` when they give none. */
function keyOf({ concurrency, inputs: fields }: PackageRow, given: JsonObject): AskedKey | null {
  if (!concurrency) return null
  const open = fields.filter(field => !field.secret)
  const names = fields.map(({ name }) => name)
  const id = JSON.stringify([concurrency, names])
  const { of, limit, whenFull } = keys.get(id) ?? keys.set(id, keyFrom(concurrency, names))
  return { text: of(inputsFor(open, given).values), limit, whenFull }
}

async function idempotent({ store }: Hub, tx: Db, realmId: string, key: string | undefined) {
  if (key === undefined) return null
  const { jobs, runs } = store
  const [found] = await tx
    .select({ job: jobs, state: runs.state })
    .from(jobs)
    .innerJoin(runs, eq(runs.run_id, jobs.run_id))
    .where(and(eq(jobs.realm_id, realmId), eq(jobs.idempotency_key, key)))
  return found ?? null
}

function durationOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== null && ms > 0) return ms
  throw new CadreError(
    'invalid_request',
    `queue_timeout: expected a duration such as ${formatDuration(90_000)}, got ${text}`,
    {
      details: [{ path: '/queue_timeout', message: 'must be a duration with a unit, such as 30m' }],
    },
  )
}
