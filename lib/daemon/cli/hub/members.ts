// `members`: who belongs to a realm, an org or a scope, and as what.

import type { Option } from 'commander'
import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { listed } from '../../../text/spelling.ts'
import type { Role } from '../../../wire/access.ts'
import { AddOrgMember, GetOrg, RemoveOrgMember } from '../../../wire/calls/orgs.ts'
import { AddRealmMember, ListRealmMembers, RemoveRealmMember } from '../../../wire/calls/realm-members.ts'
import { AddScopeMember, GetScope, RemoveScopeMember } from '../../../wire/calls/scopes.ts'
import type { Member } from '../../../wire/records/hub-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { orgOf, realmOf, scopeOf } from '../kit/names.ts'
import { doing, inRealm, page, type Words } from './entry.ts'
import { changing } from './forms.ts'
import { list, pageOf } from './output.ts'

const where = [
  inRealm,
  option('--org <org>', 'of an org instead of a realm'),
  option('--scope <scope>', 'of a scope instead of a realm'),
]

export const ENTRIES: readonly Entry[] = [
  doing('list', 'list members with their roles', '--realm prod', {
    options: [...where, ...page],
    run: async (hub, options) => {
      const found = await (await circleOf(hub, options)).members(pageOf(options))
      list(options, found, found.members, ({ username, role, user_id }, paint) => [
        paint.bold(username),
        role,
        paint.dim(`${user_id}`),
      ])
    },
  }),
  setting(
    'add <username>',
    'add somebody who has an account (others need an `invite`)',
    'ada --realm prod --role operator',
    [
      ...where,
      option(
        '--role <role>',
        'realm: member, operator, admin; org: member, admin, owner; scope: member, owned (member)',
      ),
    ],
  ),
  setting('role <username> <role>', 'change the role of somebody', 'ada admin --realm prod', where),
  changing(
    'remove <username>',
    'remove somebody; from an org, also from its realms and scopes',
    'ada --realm prod --yes',
    {
      options: where,
      find: async (hub, username, options) => ({ username, circle: await circleOf(hub, options) }),
      question: ({ username, circle }) => `Remove ${username} from ${circle.name}?`,
      call: (_, { username, circle }) => circle.remove(username),
      confirmation: ({ username, circle }, gone) => [
        `${username} does not belong to ${circle.name} any more`,
        ...leftBehind(gone),
      ],
    },
  ),
]

/** A command that adds somebody with an account, or changes the role. The lowest role is the default. */
function setting(...[usage, does, example, options]: Words<readonly Option[]>): Entry {
  return changing(usage, does, example, {
    options,
    find: async (hub, username, options, given: string | undefined) => {
      const circle = await circleOf(hub, options)
      const role = given ?? options.role ?? circle.roles[0]!
      if (circle.roles.includes(role)) return { username, role, circle }
      throw new CadreError('invalid_request', `--role: in ${circle.name} there are the roles ${listed(circle.roles)}`)
    },
    call: (_, { username, role, circle }) => circle.set(username, role),
    confirmation: ({ username, role, circle }) => `${username} is ${role} of ${circle.name}`,
  })
}

type Removed = Pick<Static<typeof RemoveRealmMember.data>, 'owns'>

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

async function circleOf(
  hub: HubClient,
  { realm, org, scope }: { realm?: string; org?: string; scope?: string },
): Promise<Circle> {
  const given = [realm, org, scope].filter(each => each !== undefined)
  if (given.length > 1) throw new CadreError('invalid_request', 'give one of --realm, --org and --scope')
  if (org !== undefined) return orgCircle(hub, org)
  return scope !== undefined ? scopeCircle(hub, scope) : realmCircle(hub, realm)
}

async function realmCircle(hub: HubClient, wanted: string | undefined): Promise<Circle> {
  const { id: realm_id, slug } = await realmOf(hub, wanted)
  return {
    name: `realm ${slug}`,
    roles: ['member', 'operator', 'admin'],
    members: page => hub.call(ListRealmMembers, { realm_id, ...page }),
    set: (username, role) => hub.call(AddRealmMember, { realm_id, username, role: role as Role<'realm'> }),
    remove: username => hub.call(RemoveRealmMember, { realm_id, username }),
  }
}

async function orgCircle(hub: HubClient, wanted: string): Promise<Circle> {
  const { id: org_id, slug } = await orgOf(hub, wanted)
  return {
    name: `org ${slug}`,
    roles: ['member', 'admin', 'owner'],
    members: async page => cut((await hub.call(GetOrg, { org_id })).members, page),
    set: (username, role) => hub.call(AddOrgMember, { org_id, username, role: role as Role<'org'> }),
    remove: username => hub.call(RemoveOrgMember, { org_id, username }),
  }
}

async function scopeCircle(hub: HubClient, wanted: string): Promise<Circle> {
  const { id: scope_id, slug } = await scopeOf(hub, wanted)
  return {
    name: `scope @${slug}`,
    roles: ['member', 'owned'],
    members: async page => cut((await hub.call(GetScope, { scope_id })).members, page),
    set: (username, role) => hub.call(AddScopeMember, { scope_id, username, role: role as 'owned' | 'member' }),
    remove: async username => {
      await hub.call(RemoveScopeMember, { scope_id, username })
      return {}
    },
  }
}

/** The hub returns the members of orgs and scopes at once. */
function cut(members: readonly Member[], { limit, offset }: { limit: number; offset: number }) {
  return { members: members.slice(offset, offset + limit), total: members.length }
}

/** What acted for the account, and what becomes of it. */
function leftBehind({ owns }: Removed): string[] {
  if (!owns) return []
  const named = (what: string, items: readonly { id: string; name: string }[]) =>
    items.map(({ id, name }) => `  ${what} ${name} (${id})`)
  const left = [
    ...named('webhook', owns.webhooks),
    ...named('trigger', owns.triggers ?? []),
    ...named('realm token', owns.tokens),
    ...named('invitation', owns.invitations),
  ]
  return left.length === 0
    ? []
    : [
        `These belonged to that account, and have stopped. To take a webhook over: ${commandLine('webhooks', 'take-over')}`,
        ...left,
      ]
}
