// Dispatch: the routes that queue runs for the daemons of a realm, cancel, resume and move them; the keys of orgs; and
// dispatch tokens.

import { and, asc, eq, getTableColumns, inArray, isNull } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { WRITE } from '../../wire/access.ts'
import { within } from '../../wire/budget.ts'
import {
  CancelDispatched,
  DispatchRun,
  GetKeys,
  ListQueue,
  MintDispatchToken,
  MoveRun,
  ResumeDispatched,
  RotateKeys,
} from '../../wire/calls/dispatch.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { findDaemon } from '../access/daemons.ts'
import { currentKey, publicKeys, rotateKeys } from '../access/dispatch-keys.ts'
import { hubKit } from '../access/kit.ts'
import { orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { timeOf } from '../core/hub-clock.ts'
import { countOf } from '../core/list-total.ts'
import { describeKeyWait } from '../queue/concurrency-keys.ts'
import { dispatchRun } from '../queue/dispatch.ts'
import { moveRun } from '../queue/move-run.ts'
import { orderRun } from '../queue/orders.ts'
import { createRunQueue } from '../queue/queue-runs.ts'
import { describeHold, waitingReasons } from '../queue/waiting-reasons.ts'
import { readableRun } from '../reports/runs.ts'

/** The lifetime of a dispatch token in seconds. */
const TOKEN_SECONDS = 300

export function dispatch(hub: Hub) {
  const { store } = hub
  const { jobs, runs } = store
  const queue = createRunQueue(hub)

  return resource('dispatch', hubKit(hub), [
    answer(DispatchRun, ({ body, caller, headers: { traceparent } }) =>
      dispatchRun(hub, queue, caller, { ...body, traceparent }),
    ),
    answer(CancelDispatched, ({ body, caller }) => orderRun(hub, caller, body.run_id, 'cancel', {})),
    answer(ResumeDispatched, ({ body: { run_id, ...what }, caller }) => orderRun(hub, caller, run_id, 'resume', what)),
    answer(MoveRun, ({ body, caller }) => moveRun(hub, caller, body)),
    answer(ListQueue, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const open = and(eq(jobs.realm_id, body.realm_id), isNull(jobs.finished_at))
      const where = and(open, inArray(jobs.state, ['blocked', 'held', 'waiting', 'leased']))
      const { limit, offset } = page(body)
      // The payload of a job may be large.
      const { payload: _, ...columns } = getTableColumns(jobs)
      const rows = await store.db
        .select({ ...columns, team: runs.team, version: runs.version })
        .from(jobs)
        .innerJoin(runs, eq(runs.run_id, jobs.run_id))
        .where(where)
        .orderBy(asc(jobs.created_at), asc(jobs.id))
        .limit(limit)
        .offset(offset)
      const waitingFor = await waitingReasons(hub, body.realm_id)
      const turns = new Map<string, string | null>()
      for (const { state, run_id } of rows) {
        if (state === 'blocked') turns.set(run_id, await describeKeyWait(hub, store.db, run_id))
      }
      const shown = rows.map(job => {
        const { id, run_id, kind, state, priority, daemon_id, workspace, deliveries, created_at, expires_at } = job
        const facts = { job_id: id, run_id, kind, state, priority, daemon_id, workspace, deliveries }
        const turn = turns.get(run_id) ?? null
        const waiting_for =
          state === 'held'
            ? describeHold(hub, job)
            : state === 'waiting'
              ? waitingFor(job)
              : state === 'blocked'
                ? turn
                : null
        return {
          ...facts,
          team: kind === 'run' ? `${job.team}@${job.version}` : null,
          created_at: job.asked_at ?? created_at,
          expires_at: timeOf(hub, expires_at),
          waiting_for,
        }
      })
      return { jobs: within(shown), total: await countOf(store.db, jobs, where) }
    }),
    answer(GetKeys, async ({ body, caller }) => {
      const org = await caller.org(orgId(body.org_id))
      return keysOf(org.id)
    }),
    answer(RotateKeys, async ({ body, caller }) => {
      const { id } = await caller.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'admin', tx)
        const key = await rotateKeys(hub, tx, org.id, body.revoke_previous)
        const target = body.revoke_previous ? `${key.kid}, all previous revoked` : key.kid
        await record(hub, tx, caller, { action: 'dispatch/keys/rotate', target, org_id: org.id })
        return org
      })
      return keysOf(id)
    }),
    answer(MintDispatchToken, async ({ body: { daemon_id, action, run_id }, caller }) => {
      caller.mustAllow(action === 'access' ? { runs: 'read' } : WRITE.grant)
      const missing = new CadreError('not_found', `no daemon ${daemon_id} that you may see`)
      const daemon = await findDaemon(hub, store.db, daemon_id)
      if (!daemon || daemon.removed_at !== null) throw missing
      const realm = await caller.realm(daemon.realm_id, action === 'access' ? 'member' : 'operator').catch(error => {
        throw error instanceof CadreError && error.code === 'not_found' ? missing : error
      })
      if (run_id && (await readableRun(hub, caller, run_id)).row.realm_id !== realm.id) {
        throw new CadreError('not_found', `no run ${run_id} in the realm of daemon ${daemon_id}`)
      }
      const key = await currentKey(store, realm.org_id)
      const { importPKCS8, SignJWT } = await import('jose')
      const issued = Math.floor(hub.now() / 1_000)
      // A daemon grants what the memberships grant: on it a site admin has no more rights than anyone.
      const realm_role = (await caller.membership(realm.id)) ?? 'none'
      const token = await new SignJWT({ realm_id: realm.id, realm_role, action, ...(run_id && { run_id }) })
        .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: 'dispatch+jwt' })
        .setIssuer('cadre-hub')
        .setAudience(daemon_id)
        .setSubject(caller.user.username)
        .setIssuedAt(issued)
        .setExpirationTime(issued + TOKEN_SECONDS)
        .setJti(crypto.randomUUID())
        .sign(await importPKCS8(hub.sealer.open(key.private_key), 'EdDSA'))
      const entry = { action: 'dispatch/tokens/mint', target: `${action} on ${daemon_id}` }
      await caller.write(tx => record(hub, tx, caller, { ...entry, org_id: realm.org_id, realm_id: realm.id }))
      return { token, expires_at: (issued + TOKEN_SECONDS) * 1_000 }
    }),
  ])

  async function keysOf(orgId: number) {
    const { kid, public_pem, created_at } = await currentKey(store, orgId)
    const dispatch_keys = await publicKeys(hub, orgId)
    return { id: kid, org_id: orgId, kid, dispatch_public_key: public_pem, dispatch_keys, rotated_at: created_at }
  }
}
