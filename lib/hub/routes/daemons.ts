// The routes that daemons call with a realm token: enrolment, heartbeat, the long poll for jobs, and answers. The hub
// never calls a daemon. Bodies may contain unknown properties, so that either side may be newer.

import { eq } from 'drizzle-orm'
import type { Static } from 'typebox'
import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { Type } from '../../schema/type.ts'
import { Ack, Deregister, Heartbeat, Poll, Register } from '../../wire/calls/daemon-link.ts'
import { offerOf } from '../../wire/needs.ts'
import { MEMORY } from '../../wire/protocol.ts'
import { LeasedJob } from '../../wire/records/jobs.ts'
import { readStanding } from '../../wire/standing.ts'
import { accessList, realmFacts } from '../access/access-list.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { orgOf, type RealmCaller } from '../access/callers.ts'
import {
  bulletin,
  callingDaemon,
  checkProtocol,
  type DaemonRow,
  findDaemon,
  isLaterStart,
  onlyRealm,
  refuseMoved,
} from '../access/daemons.ts'
import { atLeast } from '../access/decision.ts'
import { hubKit } from '../access/kit.ts'
import type { Hub } from '../core/hub.ts'
import { timeOf } from '../core/hub-clock.ts'
import { claimableJobs, claimJobs } from '../queue/claims.ts'
import { recordJobAnswers } from '../queue/job-answers.ts'
import { holdsLeases, type JobAnswer, renewLeases } from '../queue/jobs.ts'
import { endUndeliverableRuns } from '../queue/run-ends.ts'
import { hasUndeliverableJobs } from '../queue/undeliverable-jobs.ts'
import { WaitingPolls } from '../queue/waiting-polls.ts'
import { claimTells, tellsFor } from '../tells/tell-jobs.ts'

/**
 * The jobs that this hub sends. `Poll.data` is wider, because a daemon may meet kinds of jobs that it does not know.
 */
const Leased = Type.Object({ jobs: Type.Array(LeasedJob), ...MEMORY })

export function daemonProtocol(hub: Hub) {
  const { store } = hub
  const { daemons, tokens } = store
  const waitingPolls = new WaitingPolls(hub)

  return resource('daemons', hubKit(hub), [
    answer(Register, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const realmId = await realmOf(body, caller)
      const values = {
        realm_id: realmId,
        token_id: caller.token.id,
        name: body.name,
        hostname: body.hostname ?? null,
        version: body.version ?? null,
        commit: body.commit ?? null,
        agents: [],
        labels: null,
        workspaces: [],
        sandbox: null,
        kinds: null,
        accounts: null,
        environments: null,
        standing: null,
        ...offerOf(body),
        last_seen_at: hub.lived(),
        called_at: hub.now(),
        stuck: false,
        removed_at: null,
      }
      const id = await caller.write(async tx => {
        const known = body.daemon_id ? await findDaemon(hub, tx, body.daemon_id) : undefined
        const owner = known && (await mayTakeOver(tx, known, caller, realmId))
        if (known) refuseMoved(hub, known, body)
        const kept = owner === caller.token.user.id && known?.removed_at === null ? known.approved_at : null
        const approved_at = kept ?? (operates(caller, realmId) ? hub.now() : null)
        const daemonId = body.daemon_id ?? crypto.randomUUID()
        const capacity = body.capacity ?? known?.capacity ?? null
        const { starts = known?.starts ?? null, start = known?.start ?? null } = body
        const again = { ...values, capacity, approved_at, starts, start }
        const fresh = { id: daemonId, registered_at: hub.now(), acked_seq: 0, ...again }
        await tx.insert(daemons).values(fresh).onConflictDoUpdate({ target: daemons.id, set: again })
        const place = { realm_id: realmId, org_id: orgOf(caller, realmId) }
        if (known && known.token_id !== caller.token.id) {
          const target = `${daemonId} from token ${known.token_id}`
          await record(hub, tx, caller, { action: 'daemons/takeover', target, ...place })
        }
        if (!known || known.removed_at !== null) {
          await record(hub, tx, caller, { action: 'daemons/register', target: daemonId, ...place })
        }
        return daemonId
      })
      hub.lastSeen.noteDaemonCall(id)
      const row = (await findDaemon(hub, store.db, id))!
      await hub.lineage.compareCount(row, body.memory)
      hub.notifier.notify(`realm ${realmId}`)
      return {
        daemon_id: id,
        realm_id: realmId,
        ...bulletin(hub, await realmFacts(hub, realmId), row, body.teams_version),
        acl: await accessList(hub, realmId, id),
        ...hub.lineage.replyTo(row),
      }
    }),
    answer(Heartbeat, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      const { running = [], stuck = false, clock } = body
      const standing = readStanding(body.standing)
      if (standing) hub.lastSeen.noteStanding(daemon.id, standing)
      if (isLaterStart(daemon, body)) {
        const { starts = null, start = null } = body
        await caller.write(tx => tx.update(daemons).set({ starts, start }).where(eq(daemons.id, daemon.id)))
      }
      if (clock !== undefined) hub.clocks.set(daemon.id, Math.round(clock - hub.now()))
      if (running.length > 0 && (await holdsLeases(store, daemon.id, running))) {
        await caller.write(tx => renewLeases(store, tx, daemon.id, running, hub.lived()))
      }
      if (stuck !== daemon.stuck) {
        await caller.write(tx => tx.update(daemons).set({ stuck }).where(eq(daemons.id, daemon.id)))
      }
      const offer = offerOf(body)
      if (Object.keys(offer).length > 0) {
        await caller.write(tx => tx.update(daemons).set(offer).where(eq(daemons.id, daemon.id)))
        hub.notifier.notify(`daemon ${daemon.id}`)
        hub.notifier.notify(`realm ${daemon.realm_id}`)
      }
      return {
        status: 'online' as const,
        server_time: hub.now(),
        next_ms: hub.beatMs,
        ...bulletin(hub, await realmFacts(hub, daemon.realm_id), daemon, body.teams_version),
        ...hub.lineage.replyTo(daemon),
      }
    }),
    answer(
      Poll,
      async ({ body, caller, request, server, stopping }) => {
        checkProtocol(body.protocol)
        let daemon = await callingDaemon(hub, caller, body)
        const { slots = 1, wait_ms = 0, full_disk = false } = body
        if (full_disk) hub.fullDisks.set(daemon.id, hub.lived())
        else hub.fullDisks.delete(daemon.id)
        if (wait_ms > 0) server?.timeout(request, 0)
        const until = AbortSignal.any([request.signal, stopping.signal])
        const end = performance.now() + wait_ms
        using waiting = wait_ms > 0 ? waitingPolls.add(daemon, slots) : null
        for (;;) {
          const leased = until.aborted ? [] : await take(caller, daemon, slots, waiting === null)
          const left = end - performance.now()
          if (!waiting || leased.length > 0 || until.aborted || left <= 0) return polled(daemon, leased)
          const woken = await waiting.wait(daemon, left, until)
          // During the wait the token may have been revoked or the daemon removed.
          daemon = await callingDaemon(hub, await caller.again(), { ...body, memory: undefined })
          if (!woken) return polled(daemon, [])
        }
      },
      Leased,
    ),
    answer(Ack, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      const { others = [] } = body
      const [first, ...rest] = await recordJobAnswers(hub, caller, daemon, [body, ...others].map(givenOf))
      if (first instanceof CadreError) throw first
      return {
        id: first!.id,
        job_id: first!.id,
        status: body.status,
        ...(body.others && { others: rest.map((each, at) => replyTo(others[at]!, each)) }),
        ...hub.lineage.replyTo(daemon),
      }
    }),
    answer(Deregister, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      await caller.write(async tx => {
        await tx.update(daemons).set({ removed_at: hub.now() }).where(eq(daemons.id, daemon.id))
        const entry = { action: 'daemons/deregister', target: daemon.id, realm_id: daemon.realm_id }
        await record(hub, tx, caller, { ...entry, org_id: orgOf(caller, daemon.realm_id) })
      })
      // Its polls end.
      hub.notifier.notify(`daemon ${daemon.id}`)
      return { id: daemon.id, daemon_id: daemon.id }
    }),
  ])

  /**
   * The realm to enrol in: the one that is asked for, else the one that the daemon is in, else the only one of the
   * token.
   */
  async function realmOf(body: { realm_id?: string; daemon_id?: string }, caller: RealmCaller): Promise<string> {
    const { realmIds } = caller.token
    const known = body.daemon_id && !body.realm_id ? await findDaemon(hub, store.db, body.daemon_id) : undefined
    const only = realmIds.length === 1 ? realmIds[0] : undefined
    const realmId = body.realm_id ?? only ?? known?.realm_id ?? onlyRealm(realmIds)
    caller.within(realmId)
    return realmId
  }

  /**
   * Throws unless this token may register a known daemon id: a token of the same owner may, and so may a token for the
   * same realm when the old token is dead. Returns the owner of the token that the daemon had.
   */
  async function mayTakeOver(
    tx: typeof store.db,
    known: DaemonRow,
    caller: RealmCaller,
    realmId: string,
  ): Promise<number> {
    const [old] = await tx.select().from(tokens).where(eq(tokens.id, known.token_id))
    const dead = old!.revoked_at !== null || (old!.expires_at !== null && old!.expires_at <= hub.now())
    const same = known.token_id === caller.token.id || old!.user_id === caller.token.user.id
    if (known.realm_id === realmId && (same || dead)) return old!.user_id
    throw new CadreError(
      'conflict',
      known.realm_id === realmId
        ? `daemon ${known.id} is registered with a token of another user: revoke that token, or register without daemon_id`
        : `daemon ${known.id} is registered in another realm: register without daemon_id to get a new id`,
    )
  }

  function polled<Job>(daemon: DaemonRow, jobs: Job[]) {
    hub.counts.polls.add(1, { result: jobs.length > 0 ? 'jobs' : 'nothing' })
    return { jobs, ...hub.lineage.replyTo(daemon) }
  }

  /** `alone` says that the poll does not wait in its realm, which else looks for what is overdue. */
  async function take(caller: RealmCaller, daemon: DaemonRow, slots: number, alone: boolean) {
    const isApproved = daemon.approved_at !== null
    for (;;) {
      const [overdue, found, tells] = await Promise.all([
        alone && hasUndeliverableJobs(store, daemon.realm_id, hub.lived()),
        isApproved ? claimableJobs(store, store.db, daemon, slots, hub.lived()) : null,
        isApproved ? tellsFor(store, store.db, daemon, hub.lived()) : [],
      ])
      if (!overdue && !found && tells.length === 0) return []
      const { rows, given } = await caller.write(async tx => {
        const ending = endUndeliverableRuns(hub, tx, daemon.realm_id)
        const taker = Promise.all([findDaemon(hub, tx, daemon.id), ending]).then(([now, ended]) => {
          // During the wait another token may have taken the daemon over. What has ended may be among the jobs.
          const may = now && now.approved_at !== null && now.token_id === daemon.token_id
          return may && ended === 0 ? now : null
        })
        const [jobs, told, ended] = await together([
          found ? claimJobs(store, tx, daemon, slots, found, hub.lived(), taker) : [],
          tells.length === 0 ? [] : taker.then(now => (now ? claimTells(store, tx, now, hub.lived()) : [])),
          ending,
          taker,
        ])
        return { rows: [...jobs, ...told], given: ended }
      })
      if (given === 0) return rows.map(leasedJob)
    }
  }

  function leasedJob(job: Awaited<ReturnType<typeof claimJobs | typeof claimTells>>[number]) {
    return {
      job_id: job.id,
      lease_id: job.lease_id,
      attempt: job.deliveries,
      lease_until: timeOf(hub, job.lease_until),
      kind: job.kind,
      run_id: job.run_id,
      payload: job.payload,
      ...('by' in job && job.by !== null && { by: job.by }),
    }
  }
}

/**
 * Whether the minter of the token is at least an operator of the realm. If so, a daemon that the token enrols is
 * approved.
 */
function operates(caller: RealmCaller, realmId: string): boolean {
  const { role } = caller.token.live.find(each => each.realm_id === realmId)!
  return atLeast('realm', role, 'operator')
}

type AckBody = Static<typeof Ack.body>

function givenOf({ job_id, lease_id, status, error }: Omit<AckBody, 'daemon_id'>): JobAnswer {
  return { jobId: job_id, leaseId: lease_id, status, error: error?.replaceAll('\0', '').slice(0, 4_000) }
}

function replyTo({ job_id, status }: Pick<AckBody, 'job_id' | 'status'>, outcome: object) {
  if (!(outcome instanceof CadreError)) return { job_id, status, error: null }
  return { job_id, status: null, error: { code: outcome.code, message: outcome.message } }
}
