// `members`: who belongs to a realm, an org or a scope, and as what.

import { CadreError } from '../../../error.ts'
import { listed } from '../../../spelling.ts'
import {
  AddOrgMember,
  AddRealmMember,
  AddScopeMember,
  GetOrg,
  GetScope,
  ListRealmMembers,
  type Removed,
  RemoveOrgMember,
  RemoveRealmMember,
  RemoveScopeMember,
} from '../../../wire/hub-admin-calls.ts'
import type { Member } from '../../../wire/hub-records.ts'
import { homeFolder } from '../../home.ts'
import type { HubClient } from '../../link/link.ts'
import { hubOf } from '../hub-client.ts'
import { orgOf, realmOf, scopeOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf } from './output.ts'

interface Where {
  realm?: string
  org?: string
  scope?: string
}

interface Circle {
  /** `realm prod`. */
  name: string
  /** From the lowest to the highest. */
  roles: readonly string[]
  members(page: { limit: number; offset: number }): Promise<{ members: readonly Member[]; total: number }>
  set(username: string, role: string): Promise<unknown>
  /** What the hub says of what the account owns, if it owns something there. */
  remove(username: string): Promise<Removed>
}

export async function listMembers(options: PageOptions & Where): Promise<void> {
  const circle = await circleOf(await hubOf(homeFolder(options.home), options), options)
  const found = await circle.members(pageOf(options))
  list(options, found, found.members, ({ username, role, user_id }, paint) => [
    paint.bold(username),
    role,
    paint.dim(`${user_id}`),
  ])
}

/** Adds somebody with an account, or changes the role. The lowest role is the default. */
export async function setMember(username: string, options: Options & Where & { role?: string }): Promise<void> {
  const circle = await circleOf(await hubOf(homeFolder(options.home), options), options)
  const { role = circle.roles[0]! } = options
  if (!circle.roles.includes(role)) {
    throw new CadreError('invalid_request', `--role: in ${circle.name} there are the roles ${listed(circle.roles)}`)
  }
  done(options, await circle.set(username, role), `${username} is ${role} of ${circle.name}`)
}

export async function removeMember(username: string, options: Options & Where & { yes?: boolean }): Promise<void> {
  const circle = await circleOf(await hubOf(homeFolder(options.home), options), options)
  await confirmed(`Remove ${username} from ${circle.name}?`, options)
  const gone = await circle.remove(username)
  done(options, gone, `${username} does not belong to ${circle.name} any more`, ...leftBehind(gone))
}

/** What acted for the account, and what becomes of it. */
function leftBehind({ owns }: Removed): string[] {
  if (!owns) return []
  const named = (what: string, items: readonly { id: string; name: string }[]) =>
    items.map(({ id, name }) => `  ${what} ${name} (${id})`)
  const left = [
    ...named('webhook', owns.webhooks),
    ...named('realm token', owns.tokens),
    ...named('invitation', owns.invitations),
  ]
  return left.length === 0
    ? []
    : ['These were theirs, and do nothing any more. Take webhooks over on the page of the realm:', ...left]
}

async function circleOf(client: HubClient, { realm, org, scope }: Where): Promise<Circle> {
  const given = [realm, org, scope].filter(each => each !== undefined)
  if (given.length > 1) throw new CadreError('invalid_request', 'give one of --realm, --org and --scope')
  if (org !== undefined) return orgCircle(client, org)
  return scope !== undefined ? scopeCircle(client, scope) : realmCircle(client, realm)
}

async function realmCircle(client: HubClient, wanted: string | undefined): Promise<Circle> {
  const { id: realm_id, slug } = await realmOf(client, wanted)
  return {
    name: `realm ${slug}`,
    roles: ['member', 'operator', 'admin'],
    members: page => client.call(ListRealmMembers, { realm_id, ...page }),
    set: (username, role) => client.call(AddRealmMember, { realm_id, username, role }),
    remove: username => client.call(RemoveRealmMember, { realm_id, username }),
  }
}

async function orgCircle(client: HubClient, wanted: string): Promise<Circle> {
  const { id: org_id, slug } = await orgOf(client, wanted)
  return {
    name: `org ${slug}`,
    roles: ['member', 'admin', 'owner'],
    members: async page => cut((await client.call(GetOrg, { org_id })).members, page),
    set: (username, role) => client.call(AddOrgMember, { org_id, username, role }),
    remove: username => client.call(RemoveOrgMember, { org_id, username }),
  }
}

async function scopeCircle(client: HubClient, wanted: string): Promise<Circle> {
  const { id: scope_id, slug } = await scopeOf(client, wanted)
  return {
    name: `scope @${slug}`,
    roles: ['member', 'owned'],
    members: async page => cut((await client.call(GetScope, { scope_id })).members, page),
    set: (username, role) => client.call(AddScopeMember, { scope_id, username, role }),
    remove: async username => {
      await client.call(RemoveScopeMember, { scope_id, username })
      return {}
    },
  }
}

/** The hub returns the members of orgs and scopes at once. */
function cut(members: readonly Member[], { limit, offset }: { limit: number; offset: number }) {
  return { members: members.slice(offset, offset + limit), total: members.length }
}
