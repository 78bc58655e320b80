// Dispatch: runs are queued for the daemons of a realm, cancelled, resumed and moved; orgs' keys; dispatch tokens.

import { and, asc, eq, inArray } from 'drizzle-orm'
import { Type } from 'typebox'
import { CadreError } from '../../error.ts'
import type { Api } from '../../http/api.ts'
import { closed } from '../../schema.ts'
import { record } from '../audit.ts'
import { listBody, OrgId, orgId, page, TeamRef, Title, Uuid } from '../bodies.ts'
import type { Callers } from '../callers.ts'
import { countOf } from '../counting.ts'
import { findDaemon } from '../daemons.ts'
import { dispatchRun, moveRun, orderRun, waitingFor } from '../dispatch.ts'
import type { Hub } from '../hub.ts'
import { currentKey, publicKeys, rotateKeys } from '../keys.ts'
import { readableRun } from '../runs.ts'

const WRITE = { grant: { runs: 'write', dispatch: 'write' }, realm: 'operator' } as const
/** Seconds that a dispatch token lives. */
const TOKEN_SECONDS = 300

export function dispatchRoutes(api: Api, hub: Hub, { user }: Callers): void {
  const { store } = hub
  const { jobs } = store

  api.post(
    '/v1/dispatch/run',
    {
      access: user(WRITE),
      body: closed({
        realm_id: Type.Optional(Uuid),
        daemon_id: Type.Optional(Uuid),
        team: TeamRef,
        inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
        run_name: Type.Optional(Title),
        workspace: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
        queue_timeout: Type.Optional(Type.String({ maxLength: 100 })),
        priority: Type.Optional(Type.Integer({ minimum: -1_000, maximum: 1_000 })),
        idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      }),
      status: 201,
      summary: 'Queue a run for a daemon of a realm',
    },
    ({ body, caller }) => dispatchRun(hub, caller, body),
  )

  api.post(
    '/v1/dispatch/cancel',
    { access: user(WRITE), body: closed({ run_id: Uuid }), summary: 'Cancel a run' },
    ({ body, caller }) => orderRun(hub, caller, body.run_id, 'cancel', {}),
  )

  api.post(
    '/v1/dispatch/resume',
    {
      access: user(WRITE),
      body: closed({ run_id: Uuid, from_phase: Type.Optional(Type.String({ maxLength: 300 })) }),
      summary: 'Resume a run that failed or was cancelled',
    },
    ({ body: { run_id, from_phase }, caller }) =>
      orderRun(hub, caller, run_id, 'resume', from_phase === undefined ? {} : { from_phase }),
  )

  api.post(
    '/v1/dispatch/move',
    {
      access: user(WRITE),
      body: closed({ run_id: Uuid, daemon_id: Uuid, force: Type.Optional(Type.Boolean()) }),
      summary: 'Start a run anew on another daemon',
    },
    ({ body, caller }) => moveRun(hub, caller, body),
  )

  api.post(
    '/v1/dispatch/queue',
    {
      access: user({ grant: { dispatch: 'read', runs: 'read' }, realm: 'member' }),
      body: listBody({ realm_id: Uuid }),
      summary: 'Jobs that wait, and what they wait for',
    },
    async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const where = and(eq(jobs.realm_id, body.realm_id), inArray(jobs.state, ['waiting', 'leased']))
      const { limit, offset } = page(body)
      const rows = await store.db
        .select()
        .from(jobs)
        .where(where)
        .orderBy(asc(jobs.created_at), asc(jobs.id))
        .limit(limit)
        .offset(offset)
      const shown = await Promise.all(
        rows.map(
          async ({
            id,
            run_id,
            kind,
            state,
            priority,
            daemon_id,
            workspace,
            deliveries,
            created_at,
            expires_at,
            ...job
          }) => {
            const waiting_for = state === 'waiting' ? await waitingFor(hub, { ...job, daemon_id, workspace }) : null
            const facts = { job_id: id, run_id, kind, state, priority, daemon_id, workspace, deliveries }
            return { ...facts, team: job.payload.team ?? null, created_at, expires_at, waiting_for }
          },
        ),
      )
      return { jobs: shown, total: await countOf(store.db, jobs, where) }
    },
  )

  api.post(
    '/v1/dispatch/keys/get',
    {
      access: user({ grant: { dispatch: 'read' }, org: 'member' }),
      body: closed({ org_id: OrgId }),
      summary: 'The public dispatch keys of an org',
    },
    async ({ body, caller }) => {
      const org = await caller.org(orgId(body.org_id))
      const keys = await publicKeys(hub, org.id)
      const current = await currentKey(store, org.id)
      return {
        org_id: org.id,
        kid: current.kid,
        dispatch_public_key: current.public_pem,
        dispatch_keys: keys,
        rotated_at: current.created_at,
      }
    },
  )

  api.post(
    '/v1/dispatch/keys/rotate',
    {
      access: user({ grant: { dispatch: 'admin', orgs: 'admin' }, org: 'admin' }),
      body: closed({ org_id: OrgId }),
      summary: 'Make a new dispatch key; the present one is accepted for another 24 hours',
    },
    ({ body, caller }) =>
      store.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'admin', tx)
        const key = await rotateKeys(hub, tx, org.id)
        await record(hub, tx, caller.token, { action: 'dispatch/keys/rotate', target: key.kid, org_id: org.id })
        return { kid: key.kid, dispatch_public_key: key.public_pem, rotated_at: key.created_at }
      }),
  )

  api.post(
    '/v1/dispatch/tokens/mint',
    {
      access: user({ grant: { runs: 'read', dispatch: 'write' }, realm: 'member' }),
      body: closed({
        daemon_id: Uuid,
        action: Type.Enum(['access', 'execute', 'cancel']),
        run_id: Type.Optional(Uuid),
      }),
      summary: 'A token for calling a daemon, valid for five minutes',
    },
    async ({ body: { daemon_id, action, run_id }, caller }) => {
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
      const token = await new SignJWT({ realm_id: realm.id, action, ...(run_id && { run_id }) })
        .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: 'dispatch+jwt' })
        .setIssuer('cadre-hub')
        .setAudience(daemon_id)
        .setSubject(caller.user.username)
        .setIssuedAt(issued)
        .setExpirationTime(issued + TOKEN_SECONDS)
        .setJti(crypto.randomUUID())
        .sign(await importPKCS8(hub.sealer.open(key.private_key), 'EdDSA'))
      return { token, expires_at: (issued + TOKEN_SECONDS) * 1_000 }
    },
  )
}
