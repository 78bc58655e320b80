// How a run gets into the queue: what the caller may dispatch, and what the run needs.

import { and, eq } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { formatDuration, parseDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { storedTraceparent } from '../../log/trace.ts'
import { inputsFor, whyNotIn } from '../../team/team.ts'
import { allNeeds, needsOf, type Requires } from '../../wire/needs.ts'
import { mustBeSame, type Once, onceOf } from '../../wire/once.ts'
import { NOT_LISTED } from '../../wire/reasons.ts'
import type { Dispatched } from '../../wire/records/hub-records.ts'
import type { UserCaller } from '../access/callers.ts'
import { findDaemon } from '../access/daemons.ts'
import { listedTeams } from '../access/team-list.ts'
import type { Hub } from '../core/hub.ts'
import { findPackage, type PackageRow, scopeSlugOf, splitReference, versionsOf } from '../packages/packages.ts'
import { jobNeeds } from './job-needs.ts'
import { concurrencyKeyOf } from './key-requests.ts'
import { type NewRun, type QueuedRun, queueRun, type RunQueue } from './queue-runs.ts'
import { describeWait } from './waiting-reasons.ts'

/** What is said of a run that is to be queued, whoever asks for it. */
export interface RunRequest {
  team: string
  inputs?: Record<string, unknown>
  run_name?: string | null
  workspace?: string | null
  /** Of the settings of the daemon. */
  environment?: string | null
  queue_timeout?: string | null
  priority?: number
  requires?: Requires | null
}

interface DispatchRequest extends RunRequest {
  realm_id?: string
  daemon_id?: string
  idempotency_key?: string
  /** The header of the call. */
  traceparent?: string | undefined
}

/** A run that may be queued, but for who asks for it. */
type PlannedRun = Omit<NewRun, 'caller' | 'daemonId' | 'once' | 'action' | 'startedBy' | 'traceparent'>

/**
 * Queues a run. Throws 409 when the team is not on the realm's list, which says whether it is published as far as the
 * caller may know that, and 400 when the inputs do not fit it, or the team does not run in the environment.
 */
export async function dispatchRun(
  hub: Hub,
  queue: RunQueue,
  caller: UserCaller,
  request: DispatchRequest,
): Promise<Dispatched> {
  const { store } = hub
  // It is wrong whatever the team is.
  if (request.queue_timeout != null) durationOf(request.queue_timeout)
  const realmId = await realmOf(hub, caller, request)
  const realm = await caller.realm(realmId)
  const planned = await planRun(hub, store.db, realm, request, caller)
  const { key } = planned
  const { traceparent, ...asked } = request
  const once = onceOf(asked)
  const run: NewRun<UserCaller> = {
    ...{ ...planned, caller, once, action: 'dispatch/run', startedBy: caller.startedBy },
    daemonId: request.daemon_id ?? null,
    traceparent: storedTraceparent(traceparent),
  }
  await hub.runIds.look()
  const { job, state } = await (once !== null
    ? queueOnce(hub, run, once)
    : key !== null
      ? caller.write(tx => queueRun(hub, tx, run))
      : queue.do(run))
  hub.notifier.notify(`realm ${realmId}`)
  const waiting = await describeWait(hub, job)
  return { run_id: job.run_id, job_id: job.id, state, ...(waiting !== null && { waiting_for: waiting }) }
}

/** The run that a request asks for, with the version that fits it now. Throws as `dispatchRun` does. */
export async function planRun(
  hub: Hub,
  db: Db,
  realm: PlannedRun['realm'],
  request: RunRequest,
  caller?: UserCaller,
): Promise<PlannedRun> {
  const found = await listedPackage(hub, db, realm, request.team, caller)
  const inputs = checkInputs(found, (request.inputs ?? {}) as JsonObject)
  const needs = allNeeds([...(found.needs ? [found.needs] : []), needsOf(request.requires ?? {})])
  const { workspace = null, run_name = null, queue_timeout: wait = null } = request
  const environment = environmentOf(found, request.environment ?? null)
  return {
    ...{ realm, found, inputs, runName: run_name, workspace, environment },
    key: concurrencyKeyOf(found, inputs, environment),
    needs: jobNeeds(needs, workspace, environment),
    priority: request.priority ?? 0,
    expiresAt: wait === null ? null : hub.lived() + durationOf(wait),
  }
}

/** The environment that is asked for, or the default of the team. Throws 400 when the team does not run there. */
function environmentOf({ name, environments }: PackageRow, asked: string | null): string | null {
  const environment = asked ?? environments?.default ?? null
  const problem = whyNotIn({ name, environments }, environment)
  if (problem === null) return environment
  throw new CadreError('invalid_request', problem, { details: [{ path: '/environment', message: problem }] })
}

/**
 * The version of a team that fits a reference now, if the realm may run it. `caller`: whoever is told whether the team is
 * published at all.
 */
export async function listedPackage(
  hub: Hub,
  db: Db,
  { id, slug }: { id: string; slug: string },
  reference: string,
  caller?: UserCaller,
): Promise<PackageRow> {
  const { store, memo } = hub
  const { name } = splitReference(reference)
  // A transaction looks for itself.
  const look = <T extends object | null>(key: string, find: () => Promise<T>) =>
    db === store.db ? memo.get(key, find) : find()
  const [entry] = await look(`team ${name} of realm ${id}`, () => listedTeams(store, db, id, name))
  if (!entry && caller && (await isKnownMissing(hub, caller, name))) {
    const next = `publish it, and put it on the team list of realm ${slug}`
    throw new CadreError('conflict', `there is no published team ${name}: ${next}`)
  }
  if (!entry?.lent) throw notListedError(name, slug, entry?.by)
  const found = await look(`package ${reference}`, () => findPackage(store, db, reference))
  if (!found) throw new CadreError('not_found', `no published version of ${name} fits ${reference}`)
  return found
}

/** Whether a team has no versions and the caller may know that, as whoever may read the teams of its scope. */
async function isKnownMissing({ store }: Hub, caller: UserCaller, name: string): Promise<boolean> {
  try {
    caller.mustAllow({ teams: 'read' })
    await caller.scope({ slug: scopeSlugOf(name) }, 'org')
  } catch (error) {
    if (error instanceof CadreError) return false
    throw error
  }
  return (await versionsOf(store, store.db, name)).length === 0
}

/** `by` is the user who put the team on the list and no longer belongs to its scope. */
function notListedError(name: string, realm: string, by: string | null | undefined): CadreError {
  const lapsed = by ? ` any more, because ${by}, who put it there, has left its scope` : ''
  const listing = `${name} is not on the team list of realm ${realm}${lapsed}`
  const route = 'realms/add_team, as somebody who belongs to its scope'
  return new CadreError('conflict', `${listing}; add it with ${route}`, { reason: NOT_LISTED })
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

/** Queues a run, or returns the one that an earlier call of the caller with the same key has queued. Throws 409 as `mustBeSame`. */
async function queueOnce(hub: Hub, run: NewRun<UserCaller>, once: Once): Promise<QueuedRun> {
  const { jobs, runs } = hub.store
  const attempt = () =>
    run.caller.write(async (tx): Promise<QueuedRun> => {
      const [known] = await tx
        .select({ job: jobs, state: runs.state })
        .from(jobs)
        .innerJoin(runs, eq(runs.run_id, jobs.run_id))
        .where(
          and(
            eq(jobs.realm_id, run.realm.id),
            eq(jobs.created_by, run.caller.user.id),
            eq(jobs.idempotency_key, once.key),
          ),
        )
      if (known) mustBeSame(once, known.job.request_mark)
      return known ?? queueRun(hub, tx, run)
    })
  // Two calls with the same key at the same moment: the one that violates the unique index returns the run of the
  // other.
  return attempt().catch(error => {
    if (isDuplicate(error)) return attempt()
    throw error
  })
}

export function durationOf(text: string): number {
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
