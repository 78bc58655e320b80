// The calls of the hub's API with which the command line manages a hub for people: orgs, scopes, realms and their
// members, invitations, tokens, published teams, daemons, keys and the audit log.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listOf, longListOf, PAGE } from '../page.ts'
import { AnyList, AnyText, Time } from '../parts.ts'
import { AuditEntry, Daemon, Keys, Member, Org, Realm, RealmRole, Scope, Token } from '../records/hub-records.ts'
import { Package } from '../records/packages.ts'

/** The data of replies that nobody reads. */
const Anything = Type.Unknown()
const OfRealm = Type.Object({ realm_id: AnyText })
const OfOrg = Type.Object({ org_id: Type.Integer() })
const OfScope = Type.Object({ scope_id: Type.Integer() })
const OfDaemon = Type.Object({ daemon_id: AnyText })
const Paged = Type.Object(PAGE)
const PagedOfRealm = Type.Object({ ...PAGE, realm_id: AnyText })
const MaybeOfOrg = Type.Object({ ...PAGE, org_id: Type.Optional(Type.Integer()) })

export const ListOrgs = call('/v1/orgs/list', Paged, listOf('orgs', Org))
export const CreateOrg = call('/v1/orgs/create', Type.Object({ slug: AnyText, display_name: AnyText }), Org)
export const DeleteOrg = call('/v1/orgs/delete', OfOrg, Anything)
const ScopeOfOrg = Type.Object({ slug: AnyText, member_count: Type.Integer(), team_count: Type.Integer() })
export const GetOrg = call(
  '/v1/orgs/get_by_id',
  OfOrg,
  Type.Object({ ...Org.properties, members: Type.Array(Member), scopes: Type.Array(ScopeOfOrg) }),
)

export const ListScopes = call('/v1/scopes/list', MaybeOfOrg, listOf('scopes', Scope))
export const CreateScope = call(
  '/v1/scopes/create',
  Type.Object({ org_id: Type.Integer(), slug: AnyText, display_name: Type.Optional(AnyText) }),
  Scope,
)
export const DeleteScope = call('/v1/scopes/delete', OfScope, Anything)
export const GetScope = call(
  '/v1/scopes/get',
  OfScope,
  Type.Object({ ...Scope.properties, members: Type.Array(Member) }),
)

export const CreateRealm = call(
  '/v1/realms/create',
  Type.Object({ org_id: Type.Integer(), slug: AnyText, name: AnyText }),
  Realm,
)
export const DeleteRealm = call('/v1/realms/delete', OfRealm, Anything)
export const ListRealmTeams = call(
  '/v1/realms/teams',
  PagedOfRealm,
  listOf('teams', Type.Object({ team: AnyText, added_at: Time })),
)
const RealmTeam = Type.Object({ realm_id: AnyText, team: AnyText })
export const RemoveTeam = call('/v1/realms/remove_team', RealmTeam, Anything)

const Owned = Type.Array(Type.Object({ id: AnyText, name: AnyText }))
/** The reply to a removal. Older hubs do not tell what the account owns. */
const Removed = Type.Object({
  owns: Type.Optional(Type.Object({ webhooks: Owned, tokens: Owned, invitations: Owned })),
})
export type Removed = Static<typeof Removed>

const Name = { username: AnyText }
const Named = { ...Name, role: AnyText }
export const ListRealmMembers = call('/v1/realms/members', PagedOfRealm, listOf('members', Member))
export const AddRealmMember = call('/v1/realms/add_member', Type.Object({ ...OfRealm.properties, ...Named }), Anything)
export const RemoveRealmMember = call(
  '/v1/realms/remove_member',
  Type.Object({ ...OfRealm.properties, ...Name }),
  Removed,
)
export const AddOrgMember = call('/v1/orgs/add_member', Type.Object({ ...OfOrg.properties, ...Named }), Anything)
export const RemoveOrgMember = call('/v1/orgs/remove_member', Type.Object({ ...OfOrg.properties, ...Name }), Removed)
export const AddScopeMember = call('/v1/scopes/add_member', Type.Object({ ...OfScope.properties, ...Named }), Anything)
export const RemoveScopeMember = call(
  '/v1/scopes/remove_member',
  Type.Object({ ...OfScope.properties, ...Name }),
  Anything,
)

const INVITATION = {
  id: AnyText,
  realm_id: AnyText,
  role: RealmRole,
  username: nullable(AnyText),
  expires_at: Time,
}
export const Invite = call(
  '/v1/realms/invite',
  Type.Object({ realm_id: AnyText, role: Type.Optional(AnyText), username: Type.Optional(AnyText) }),
  Type.Object({ ...INVITATION, token: AnyText }),
)
export const ListInvitations = call(
  '/v1/realms/invitations',
  PagedOfRealm,
  listOf('invitations', Type.Object({ ...INVITATION, created_by: AnyText, created_at: Time })),
)
export const RevokeInvitation = call('/v1/realms/revoke_invite', Type.Object({ id: AnyText }), Anything)
export const AcceptInvitation = call(
  '/v1/realms/accept_invite',
  Type.Object({ token: AnyText, username: Type.Optional(AnyText), password: Type.Optional(AnyText) }),
  Type.Object({ realm_id: AnyText, role: RealmRole, user: Type.Object({ id: Type.Integer(), ...Name }) }),
)

export const ListTokens = call(
  '/v1/auth/get_tokens',
  Type.Object({ ...PAGE, realm_id: Type.Optional(AnyText) }),
  listOf('tokens', Token),
)
const OneToken = Type.Object({ id: Type.Integer() })
export const RevokeToken = call('/v1/auth/revoke_token', OneToken, Token)
export const RotateToken = call('/v1/auth/rotate_token', OneToken, Type.Object({ ...Token.properties, token: AnyText }))

export const ListPackages = call(
  '/v1/teams/list',
  Type.Object({ ...PAGE, scope: Type.Optional(AnyText), query: Type.Optional(AnyText) }),
  listOf('teams', Package),
)
const OneTeam = Type.Object({ team: AnyText })
export const GetPackage = call(
  '/v1/teams/get',
  OneTeam,
  Type.Object({ ...Package.properties, inputs: AnyList, dependencies: Type.Array(AnyText) }),
)
export const ListVersions = call(
  '/v1/teams/versions',
  Type.Object({ ...PAGE, team: AnyText }),
  listOf('versions', Package),
)
export const YankPackage = call('/v1/teams/yank', OneTeam, Package)

/** A daemon as it is read. Hubs that are older do not tell how far its clock is ahead, in milliseconds. */
const SeenDaemon = Type.Object({ ...Daemon.properties, clock_offset: Type.Optional(nullable(Type.Integer())) })
export type SeenDaemon = Static<typeof SeenDaemon>
export const ListDaemons = call(
  '/v1/daemons/list',
  Type.Object({ ...PAGE, realm_id: Type.Optional(AnyText) }),
  listOf('daemons', SeenDaemon),
)
export const GetDaemon = call('/v1/daemons/get', OfDaemon, SeenDaemon)
export const ApproveDaemon = call('/v1/daemons/approve', OfDaemon, Daemon)
export const UpdateDaemon = call(
  '/v1/daemons/update',
  Type.Object({ daemon_id: AnyText, paused: Type.Boolean() }),
  Daemon,
)
export const RemoveDaemon = call('/v1/daemons/remove', OfDaemon, Daemon)

export const GetKeys = call('/v1/dispatch/keys/get', OfOrg, Keys)
export const RotateKeys = call(
  '/v1/dispatch/keys/rotate',
  Type.Object({ org_id: Type.Integer(), revoke_previous: Type.Optional(Type.Boolean()) }),
  Keys,
)

export const ListAudit = call(
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
