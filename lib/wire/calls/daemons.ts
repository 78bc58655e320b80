// Daemons, for the people who manage them.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Uuid } from '../parts.ts'
import { Daemon } from '../records/hub-records.ts'
import { Reconciliation } from '../records/older-copies.ts'

const OneDaemon = closed({ daemon_id: Uuid })

export const ListDaemons = call('/v1/daemons/list', {
  summary: 'List daemons with their status',
  hub: { user: { grant: { daemons: 'read' }, realm: 'member' } },
  body: listBody({ realm_id: Type.Optional(Uuid) }),
  data: listOf('daemons', Daemon),
})
export const GetDaemon = call('/v1/daemons/get', {
  summary: 'Get a daemon',
  hub: { user: { grant: { daemons: 'read' }, realm: 'member' } },
  body: OneDaemon,
  data: Daemon,
})
export const ApproveDaemon = call('/v1/daemons/approve', {
  summary: 'Approve a daemon that a plain member enrolled, so that it gets jobs',
  hub: { user: { grant: { daemons: 'write' }, realm: 'operator' } },
  body: OneDaemon,
  data: Daemon,
})
export const UpdateDaemon = call('/v1/daemons/update', {
  summary:
    'Pause a daemon, which then finishes what it has and takes no more runs, or end the pause; let its doctors look',
  hub: { user: { grant: { daemons: 'write' }, realm: 'operator' } },
  body: closed({
    daemon_id: Uuid,
    paused: Type.Optional(Type.Boolean()),
    examine: Type.Optional(
      Type.Literal(true, { description: 'Its doctors look now: the reply to its next heartbeat asks for it.' }),
    ),
  }),
  data: Daemon,
})
export const ReconcileDaemons = call('/v1/daemons/reconcile', {
  summary: 'Show what an older copy of the database lacks, and go on without a daemon that cannot report',
  hub: { user: { grant: { daemons: 'admin' }, realm: 'admin' } },
  body: closed({
    realm_id: Uuid,
    without: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'The name or id of a daemon that will not report: what it may have executed is executed again.',
      }),
    ),
  }),
  data: Reconciliation,
})
export const RemoveDaemon = call('/v1/daemons/remove', {
  summary: 'Remove a daemon; the hub then shows its runs as crashed',
  hub: { user: { grant: { daemons: 'admin' }, realm: 'admin' } },
  body: OneDaemon,
  data: Daemon,
})
