// Scopes: the namespaces in which teams are published (`@slug/…`). Each belongs to one org.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Id, OrgId, Slug, Title, Username } from '../parts.ts'
import { Member, memberOf, Scope, withMore } from '../records/hub-records.ts'

const OneScope = closed({ scope_id: Id })
const Membership = memberOf('scope_id', Type.Integer())

export const CreateScope = call('/v1/scopes/create', {
  summary: 'Create a scope',
  hub: { user: { grant: { scopes: 'write' }, org: 'admin' } },
  body: closed({ org_id: OrgId, slug: Slug, display_name: Type.Optional(Title) }),
  data: Scope,
})
export const ListScopes = call('/v1/scopes/list', {
  summary: 'List the scopes that you belong to',
  hub: { user: { grant: { scopes: 'read' }, scope: 'org' } },
  body: listBody({ org_id: Type.Optional(OrgId) }),
  data: listOf('scopes', Scope),
})
export const GetScope = call('/v1/scopes/get', {
  summary: 'Get a scope with its members',
  hub: { user: { grant: { scopes: 'read' }, scope: 'org' } },
  body: OneScope,
  data: withMore(Scope, { members: Type.Array(Member) }),
})
export const DeleteScope = call('/v1/scopes/delete', {
  summary: 'Delete an empty scope',
  hub: { user: { grant: { scopes: 'admin' }, scope: 'owned' } },
  body: OneScope,
  data: Type.Object({ id: Type.Integer() }),
})
export const AddScopeMember = call('/v1/scopes/add_member', {
  summary: 'Set the role of an account in a scope, adding the account if needed',
  hub: { user: { grant: { scopes: 'admin' }, scope: 'owned' } },
  body: closed({ scope_id: Id, username: Username, role: Type.Optional(Type.Enum(['owned', 'member'])) }),
  data: Membership.set,
})
export const RemoveScopeMember = call('/v1/scopes/remove_member', {
  summary: 'Remove an account from a scope',
  hub: { user: { grant: { scopes: 'admin' }, scope: 'owned' } },
  body: closed({ scope_id: Id, username: Username }),
  data: Membership.gone,
})
