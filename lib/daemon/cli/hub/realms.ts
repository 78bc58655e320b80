// `realms`: where daemons enrol and runs are dispatched.

import { commandLine } from '../../../program/called-as.ts'
import { ListDaemons } from '../../../wire/calls/daemons.ts'
import { GetKeys } from '../../../wire/calls/dispatch.ts'
import { ListRealmMembers } from '../../../wire/calls/realm-members.ts'
import {
  AddTeam,
  CreateRealm,
  DeleteRealm,
  ListRealms,
  ListRealmTeams,
  RemoveTeam,
} from '../../../wire/calls/realms.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { every, ofOrg, orgOf, realmIdOf, realmOf } from '../kit/names.ts'
import { doing, inOrg, named } from './entry.ts'
import { changing, listing } from './forms.ts'
import { type Facts, record, relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list your realms', '--org acme', {
    options: [option('--org <org>', 'only realms of this org')],
    call: ListRealms,
    where: ofOrg,
    rows: 'realms',
    row: ({ slug, name, my_role, id }, paint) => [paint.bold(slug), name, `you: ${my_role}`, paint.dim(id)],
  }),
  doing('show <realm>', 'show a realm with its members, teams, daemons and dispatch key', 'prod', {
    run: async (hub, options, wanted) => {
      const realm = await realmOf(hub, wanted)
      const of = { realm_id: realm.id }
      const [members, teams, daemons, keys] = await Promise.all([
        every(hub, ListRealmMembers, 'members', of),
        every(hub, ListRealmTeams, 'teams', of),
        every(hub, ListDaemons, 'daemons', of),
        hub.call(GetKeys, { org_id: realm.org_id }),
      ])
      const all = { ...realm, members, teams, daemons, dispatch_keys: keys.dispatch_keys.map(({ kid }) => kid) }
      const facts: Facts = [
        ['name', realm.name],
        ['id', realm.id],
        ['org', `${realm.org_id}`],
        ['your role', realm.my_role],
        ['created', relative(realm.created_at)],
        ['dispatch key', `${keys.kid}, since ${relative(keys.rotated_at)}`],
      ]
      record(options, all, realm.slug, facts, () => [
        ['members', members.map(({ username, role }) => [username, role])],
        [
          'teams',
          teams.map(({ team, added_at, lacks }) => [
            team,
            `added ${relative(added_at)}`,
            lacks ? `no daemon could run it: it needs ${lacks}` : '',
          ]),
        ],
        ['daemons', daemons.map(({ name, status, id }) => [name, status, id])],
      ])
    },
  }),
  changing('create <slug>', 'create a realm and become its admin', 'prod --org acme --name Production', {
    options: [inOrg, named],
    find: async (hub, slug, { org, name = slug }) => ({ org_id: (await orgOf(hub, org)).id, slug, name }),
    call: (hub, realm) => hub.call(CreateRealm, realm),
    confirmation: ({ slug }) => {
      const token = commandLine('realm-token', slug)
      return `created realm ${slug}; to enrol a daemon: ${token} | ${commandLine('enrol')}`
    },
  }),
  changing('delete <realm>', 'delete a realm with its daemons and what the hub has of its runs', 'staging --yes', {
    find: realmOf,
    question: ({ slug }) => `Delete realm ${slug} with its daemons and what the hub has of its runs?`,
    call: (hub, { id }) => hub.call(DeleteRealm, { realm_id: id }).then(() => ({ id })),
    confirmation: ({ slug }) => `deleted realm ${slug}`,
  }),
  changing('add-team <realm> <team>', 'let the daemons of a realm run a team', 'prod @acme/repo-report', {
    find: teamOfRealm,
    call: (hub, { entry }) => hub.call(AddTeam, entry).then(() => entry),
    confirmation: ({ realm, entry: { team } }) =>
      `the daemons of ${realm} run ${team} now: ${commandLine('dispatch', team, '--realm', realm)}`,
  }),
  changing('remove-team <realm> <team>', 'stop the daemons of a realm from running a team', 'prod @acme/repo-report', {
    find: teamOfRealm,
    call: (hub, { entry }) => hub.call(RemoveTeam, entry).then(() => entry),
    confirmation: ({ realm, entry }) => `the daemons of ${realm} do not run ${entry.team} any more`,
  }),
]

async function teamOfRealm(hub: HubClient, realm: string, _: unknown, team: string) {
  return { realm, entry: { realm_id: await realmIdOf(hub, realm), team } }
}
