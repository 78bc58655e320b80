// The members of a realm. They join by invitation, or an admin of the realm adds them.

import { closed, named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Password, Secret, Time, Username, Uuid } from '../parts.ts'
import { Member, memberOf, OWNS, RealmRole, withMore } from '../records/hub-records.ts'

const Membership = memberOf('realm_id', Type.String())
const INVITATION = {
  id: Type.String(),
  realm_id: Type.String(),
  role: RealmRole,
  username: nullable(Type.String()),
  expires_at: Time,
}
const Made = Type.Object({ ...INVITATION, token: Type.String() })
const Invitation = named('invitation', { ...INVITATION, created_by: Type.String(), created_at: Time })
const Joined = Type.Object({
  id: Type.String(),
  realm_id: Type.String(),
  role: RealmRole,
  user: Type.Object({ id: Type.Integer(), username: Type.String() }),
})

export const ListRealmMembers = call('/v1/realms/members', {
  summary: 'List the members of a realm',
  hub: { user: { grant: { realms: 'read' }, realm: 'member' } },
  body: listBody({ realm_id: Uuid }),
  data: listOf('members', Member),
})
export const Invite = call('/v1/realms/invite', {
  summary: 'Create an invitation that can be used once within 14 days',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({ realm_id: Uuid, role: Type.Optional(RealmRole), username: Type.Optional(Username) }),
  data: Made,
})
export const AcceptInvitation = call('/v1/realms/accept_invite', {
  summary: 'Join a realm, either signed in or with a new account that the invitation allows',
  hub: { optional: true },
  body: closed({ token: Secret, username: Type.Optional(Username), password: Type.Optional(Password) }),
  data: Joined,
})
export const AddRealmMember = call('/v1/realms/add_member', {
  summary: 'Set the role of an account in a realm, adding the account if needed',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({ realm_id: Uuid, username: Username, role: RealmRole }),
  data: Membership.set,
})
export const RemoveRealmMember = call('/v1/realms/remove_member', {
  summary: 'Remove an account from a realm; what it owns there is listed and acts no more',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({ realm_id: Uuid, username: Username }),
  data: withMore(Membership.gone, OWNS),
})
export const ListInvitations = call('/v1/realms/invitations', {
  summary: 'List the invitations to a realm that can still be accepted, newest first',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: listBody({ realm_id: Uuid }),
  data: listOf('invitations', Invitation),
})
export const RevokeInvitation = call('/v1/realms/revoke_invite', {
  summary: 'Revoke an invitation',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({ id: Uuid }),
  data: Type.Object({ id: Type.String(), realm_id: Type.String() }),
})
