// The calls of the hub's API with which the command line manages a hub for people: orgs, scopes, realms and their
// members, invitations, tokens, published teams, daemons, keys and the audit log.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { bareCall } from '../call.ts'
import { listOf, longListOf, PAGE } from '../page.ts'
import { AnyList, AnyText, Time } from '../parts.ts'
import { AuditEntry, Daemon, Keys } from '../records/hub-records.ts'
import { Package } from '../records/packages.ts'

const OfOrg = Type.Object({ org_id: Type.Integer() })
const OfDaemon = Type.Object({ daemon_id: AnyText })

export const ListPackages = bareCall(
  '/v1/teams/list',
  Type.Object({ ...PAGE, scope: Type.Optional(AnyText), query: Type.Optional(AnyText) }),
  listOf('teams', Package),
)
const OneTeam = Type.Object({ team: AnyText })
export const GetPackage = bareCall(
  '/v1/teams/get',
  OneTeam,
  Type.Object({ ...Package.properties, inputs: AnyList, dependencies: Type.Array(AnyText) }),
)
export const ListVersions = bareCall(
  '/v1/teams/versions',
  Type.Object({ ...PAGE, team: AnyText }),
  listOf('versions', Package),
)
export const YankPackage = bareCall('/v1/teams/yank', OneTeam, Package)

/** A daemon as it is read. Hubs that are older do not tell how far its clock is ahead, in milliseconds. */
const SeenDaemon = Type.Object({ ...Daemon.properties, clock_offset: Type.Optional(nullable(Type.Integer())) })
export type SeenDaemon = Static<typeof SeenDaemon>
export const ListDaemons = bareCall(
  '/v1/daemons/list',
  Type.Object({ ...PAGE, realm_id: Type.Optional(AnyText) }),
  listOf('daemons', SeenDaemon),
)
export const GetDaemon = bareCall('/v1/daemons/get', OfDaemon, SeenDaemon)
export const ApproveDaemon = bareCall('/v1/daemons/approve', OfDaemon, Daemon)
export const UpdateDaemon = bareCall(
  '/v1/daemons/update',
  Type.Object({ daemon_id: AnyText, paused: Type.Boolean() }),
  Daemon,
)
export const RemoveDaemon = bareCall('/v1/daemons/remove', OfDaemon, Daemon)

export const GetKeys = bareCall('/v1/dispatch/keys/get', OfOrg, Keys)
export const RotateKeys = bareCall(
  '/v1/dispatch/keys/rotate',
  Type.Object({ org_id: Type.Integer(), revoke_previous: Type.Optional(Type.Boolean()) }),
  Keys,
)

export const ListAudit = bareCall(
  '/v1/audit/list',
  Type.Object({
    ...PAGE,
    org_id: Type.Optional(Type.Integer()),
    action: Type.Optional(AnyText),
    since: Type.Optional(Time),
    until: Type.Optional(Time),
  }),
  longListOf('audit', AuditEntry),
)
