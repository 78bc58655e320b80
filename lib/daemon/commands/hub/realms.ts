// `realms`: where daemons enrol and runs are dispatched.

import { commandLine } from '../../../called-as.ts'
import {
  CreateRealm,
  DeleteRealm,
  GetKeys,
  ListDaemons,
  ListRealmMembers,
  ListRealmTeams,
  RemoveTeam,
} from '../../../wire/hub-admin-calls.ts'
import { AddTeam, ListRealms } from '../../../wire/hub-calls.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { every, orgOf, realmIdOf, realmOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, record, relative } from './output.ts'

interface InOrg {
  org?: string
}

export async function listRealms(options: PageOptions & InOrg): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = options.org === undefined ? {} : { org_id: (await orgOf(client, options.org)).id }
  const found = await client.call(ListRealms, { ...pageOf(options), ...org })
  list(options, found, found.realms, ({ slug, name, my_role, id }, paint) => [
    paint.bold(slug),
    name,
    `you: ${my_role}`,
    paint.dim(id),
  ])
}

/** A realm with its members, its teams, its daemons and the keys with which they verify dispatch tokens. */
export async function showRealm(wanted: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = await realmOf(client, wanted)
  const of = { realm_id: realm.id }
  const [members, teams, daemons, keys] = await Promise.all([
    every(async page => {
      const { members, total } = await client.call(ListRealmMembers, { ...of, ...page })
      return { items: members, total }
    }),
    every(async page => {
      const { teams, total } = await client.call(ListRealmTeams, { ...of, ...page })
      return { items: teams, total }
    }),
    every(async page => {
      const { daemons, total } = await client.call(ListDaemons, { ...of, ...page })
      return { items: daemons, total }
    }),
    client.call(GetKeys, { org_id: realm.org_id }),
  ])
  const dispatch_keys = keys.dispatch_keys.map(({ kid }) => kid)
  record(options, { ...realm, members, teams, daemons, dispatch_keys }, () => ({
    title: realm.slug,
    facts: [
      ['name', realm.name],
      ['id', realm.id],
      ['org', `${realm.org_id}`],
      ['your role', realm.my_role],
      ['created', relative(realm.created_at)],
      ['dispatch key', `${keys.kid}, since ${relative(keys.rotated_at)}`],
    ],
    sections: [
      ['members', members.map(({ username, role }) => [username, role])],
      ['teams', teams.map(({ team, added_at }) => [team, `added ${relative(added_at)}`])],
      ['daemons', daemons.map(({ name, status, id }) => [name, status, id])],
    ],
  }))
}

export async function createRealm(slug: string, options: Options & InOrg & { name?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: org_id } = await orgOf(client, options.org)
  const realm = await client.call(CreateRealm, { org_id, slug, name: options.name ?? slug })
  const token = commandLine('realm-token', slug)
  done(options, realm, `created realm ${slug}; to enrol a daemon: ${token} | ${commandLine('enrol')}`)
}

export async function deleteRealm(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = await realmOf(client, wanted)
  await confirmed(`Delete realm ${realm.slug} with its daemons and what the hub has of its runs?`, options)
  await client.call(DeleteRealm, { realm_id: realm.id })
  done(options, { id: realm.id }, `deleted realm ${realm.slug}`)
}

export async function addTeam(wanted: string, team: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm_id = await realmIdOf(client, wanted)
  await client.call(AddTeam, { realm_id, team })
  const next = commandLine('dispatch', team, '--realm', wanted)
  done(options, { realm_id, team }, `the daemons of ${wanted} run ${team} now: ${next}`)
}

export async function removeTeam(wanted: string, team: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm_id = await realmIdOf(client, wanted)
  await client.call(RemoveTeam, { realm_id, team })
  done(options, { realm_id, team }, `the daemons of ${wanted} do not run ${team} any more`)
}
