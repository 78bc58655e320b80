// Orgs are the tenants. Each has members, scopes, realms and a dispatch key.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { OrgId, Slug, Title, Username } from '../parts.ts'
import { Member, memberOf, Org, OWNS, withMore } from '../records/hub-records.ts'

const Role = Type.Enum(['owner', 'admin', 'member'])
const Membership = memberOf('org_id', Type.Integer())
/** An org with its members and scopes, as `orgs/get` returns it. */
const Detail = withMore(Org, {
  members: Type.Array(Member),
  scopes: Type.Array(
    Type.Object({
      id: Type.Integer(),
      slug: Type.String(),
      display_name: Type.String(),
      member_count: Type.Integer(),
      team_count: Type.Integer(),
    }),
  ),
})

export const CreateOrg = call('/v1/orgs/create', {
  summary: 'Create an org',
  hub: { user: { grant: { orgs: 'admin' }, site: true } },
  body: closed({ slug: Slug, display_name: Title }),
  data: Org,
})
export const ListOrgs = call('/v1/orgs/list', {
  summary: 'List your orgs',
  hub: { user: { grant: { orgs: 'read' }, org: 'member' } },
  body: listBody({}),
  data: listOf('orgs', Org),
})
export const GetOrg = call('/v1/orgs/get_by_id', {
  summary: 'Get an org with its members and scopes',
  hub: { user: { grant: { orgs: 'read' }, org: 'member' } },
  body: closed({ org_id: OrgId }),
  data: Detail,
})
export const UpdateOrg = call('/v1/orgs/update', {
  summary: 'Rename an org',
  hub: { user: { grant: { orgs: 'write' }, org: 'admin' } },
  body: closed({ org_id: OrgId, display_name: Type.Optional(Title), slug: Type.Optional(Slug) }),
  data: Org,
})
export const DeleteOrg = call('/v1/orgs/delete', {
  summary: 'Delete an org with everything in it',
  hub: { user: { grant: { orgs: 'admin' }, org: 'owner' } },
  body: closed({ org_id: OrgId }),
  data: Type.Object({ id: Type.Integer() }),
})
export const AddOrgMember = call('/v1/orgs/add_member', {
  summary: 'Set the role of an account in an org, adding the account if needed',
  hub: { user: { grant: { orgs: 'admin' }, org: 'admin' } },
  body: closed({ org_id: OrgId, username: Username, role: Role }),
  data: Membership.set,
})
export const RemoveOrgMember = call('/v1/orgs/remove_member', {
  summary: 'Remove an account from an org, its scopes and its realms; what it owns there is listed',
  hub: { user: { grant: { orgs: 'admin' }, org: 'admin' } },
  body: closed({ org_id: OrgId, username: Username }),
  data: withMore(Membership.gone, OWNS),
})
