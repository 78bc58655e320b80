// Dispatch: runs that are queued for the daemons of a realm, orders about them, the keys of orgs, and dispatch tokens.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { WRITE } from '../access.ts'
import { call, TAKES_TRACE } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { Requires } from '../needs.ts'
import { listBody, listOf } from '../page.ts'
import { OrgId, OutputsAgain, TeamRef, Text, Time, Title, Uuid } from '../parts.ts'
import { Dispatched, Keys, Ordered, QueuedJob, withMore } from '../records/hub-records.ts'

export const DispatchRun = call('/v1/dispatch/run', {
  summary: 'Queue a run for a daemon of a realm',
  hub: { user: WRITE },
  body: closed({
    realm_id: Type.Optional(Uuid),
    daemon_id: Type.Optional(Uuid),
    team: TeamRef,
    inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    run_name: Type.Optional(Title),
    workspace: Type.Optional(Text(200, 1)),
    environment: Type.Optional(EnvironmentName),
    queue_timeout: Type.Optional(Type.String({ maxLength: 100 })),
    priority: Type.Optional(Type.Integer({ minimum: -1_000, maximum: 1_000 })),
    idempotency_key: Type.Optional(Text(200, 1)),
    requires: Type.Optional(Requires),
  }),
  data: Dispatched,
  status: 201,
  takes: TAKES_TRACE,
})
export const CancelDispatched = call('/v1/dispatch/cancel', {
  summary: 'Cancel a run',
  hub: { user: WRITE },
  body: closed({ run_id: Uuid }),
  data: Ordered,
})
export const ResumeDispatched = call('/v1/dispatch/resume', {
  summary: 'Resume a run that failed or was cancelled',
  hub: { user: WRITE },
  body: closed({
    run_id: Uuid,
    from_phase: Type.Optional(Type.String({ maxLength: 300 })),
    failed: Type.Optional(Type.Boolean()),
    outputs: Type.Optional(OutputsAgain),
  }),
  data: Ordered,
})
export const MoveRun = call('/v1/dispatch/move', {
  summary: 'Start a run again on another daemon',
  hub: { user: WRITE },
  body: closed({ run_id: Uuid, daemon_id: Uuid, force: Type.Optional(Type.Boolean()) }),
  data: withMore(Dispatched, { moved_from: Type.String() }),
})
export const ListQueue = call('/v1/dispatch/queue', {
  summary: 'List the jobs that wait, and what they wait for',
  hub: { user: { grant: { dispatch: 'read', runs: 'read' }, realm: 'member' } },
  body: listBody({ realm_id: Uuid }),
  data: listOf('jobs', QueuedJob),
})
export const GetKeys = call('/v1/dispatch/keys/get', {
  summary: 'List the public dispatch keys of an org',
  hub: { user: { grant: { dispatch: 'read' }, org: 'member' } },
  body: closed({ org_id: OrgId }),
  data: Keys,
})
export const RotateKeys = call('/v1/dispatch/keys/rotate', {
  summary: 'Create a new dispatch key; the previous one is accepted for another 24 hours, unless it is revoked',
  hub: { user: { grant: { dispatch: 'admin', orgs: 'admin' }, org: 'admin' } },
  body: closed({ org_id: OrgId, revoke_previous: Type.Optional(Type.Boolean()) }),
  data: Keys,
})
export const MintDispatchToken = call('/v1/dispatch/tokens/mint', {
  summary: 'Mint a token for calls to a daemon, valid for five minutes',
  hub: { user: { grant: { runs: 'read', dispatch: 'write' }, realm: 'member' } },
  body: closed({
    daemon_id: Uuid,
    action: Type.Enum(['access', 'execute', 'cancel']),
    run_id: Type.Optional(Uuid),
  }),
  data: Type.Object({ token: Type.String(), expires_at: Time }),
})
