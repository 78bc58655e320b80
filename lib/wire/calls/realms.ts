// Realms, in which daemons enrol. Each belongs to an org and has its own members and its own list of teams.

import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { AccountName } from '../names.ts'
import { listBody, listOf } from '../page.ts'
import { OrgId, Slug, TeamName, Time, Title, Uuid } from '../parts.ts'
import { Realm, RealmDetail } from '../records/hub-records.ts'
import { GivenQuotas } from '../records/quotas.ts'

const OneRealm = closed({ realm_id: Uuid })
const RealmTeam = closed({ realm_id: Uuid, team: TeamName })
const Listed = Type.Object({ id: Type.String(), realm_id: Type.String(), team: Type.String() })

export const CreateRealm = call('/v1/realms/create', {
  summary: 'Create a realm; its creator becomes its admin',
  hub: { user: { grant: { realms: 'write' }, org: 'admin' } },
  body: closed({ org_id: OrgId, slug: Slug, name: Title }),
  data: Realm,
})
export const ListRealms = call('/v1/realms/list', {
  summary: 'List the realms that you belong to',
  hub: { user: { grant: { realms: 'read' }, realm: 'member' } },
  body: listBody({ org_id: Type.Optional(OrgId) }),
  data: listOf('realms', Realm),
})
export const GetRealm = call('/v1/realms/get', {
  summary: 'Get a realm',
  hub: { user: { grant: { realms: 'read' }, realm: 'member' } },
  body: OneRealm,
  data: RealmDetail,
})
export const UpdateRealm = call('/v1/realms/update', {
  summary: 'Rename a realm, or set its quotas or who is told of failures',
  hub: { user: { grant: { realms: 'write' }, realm: 'admin' } },
  body: closed({
    realm_id: Uuid,
    name: Type.Optional(Title),
    slug: Type.Optional(Slug),
    notify: Type.Optional(
      nullable(
        closed({
          on_fail: Type.Array(AccountName, {
            maxItems: 20,
            uniqueItems: true,
            description: 'The accounts that are told.',
          }),
        }),
        {
          description: 'Who is told of what fails in the realm and has no listener, as `agent:channel`; null: nobody.',
        },
      ),
    ),
    quotas: Type.Optional(
      nullable(GivenQuotas, { description: 'Its quotas, which a site admin sets; null: those of the site.' }),
    ),
  }),
  data: RealmDetail,
})
export const DeleteRealm = call('/v1/realms/delete', {
  summary: 'Delete a realm with its daemons and runs',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: OneRealm,
  data: Type.Object({ id: Type.String() }),
})
export const ListRealmTeams = call('/v1/realms/teams', {
  summary: 'List the teams that a realm may run',
  hub: { user: { grant: { realms: 'read' }, realm: 'member' } },
  body: listBody({ realm_id: Uuid }),
  data: listOf(
    'teams',
    Type.Object({
      team: Type.String(),
      added_at: Time,
      lacks: Type.Optional(
        Type.String({
          description: 'What no daemon of the realm has that the team needs; absent where one could run it.',
        }),
      ),
    }),
  ),
})
export const AddTeam = call('/v1/realms/add_team', {
  summary: 'Put a team on the list of a realm',
  hub: { user: { grant: { realms: 'write' }, realm: 'operator', scope: 'org' } },
  body: RealmTeam,
  data: Listed,
})
export const RemoveTeam = call('/v1/realms/remove_team', {
  summary: 'Remove a team from the list of a realm',
  hub: { user: { grant: { realms: 'write' }, realm: 'operator' } },
  body: RealmTeam,
  data: Listed,
})
