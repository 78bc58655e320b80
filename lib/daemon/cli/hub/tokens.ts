// `tokens`: the credentials of programs and people at a hub, with what each may do and where.

import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import { line } from '../../../text/printable.ts'
import { listed } from '../../../text/spelling.ts'
import { GenerateToken, ListTokens, RevokeToken, RotateToken } from '../../../wire/calls/auth.ts'
import { ENTITIES, type Entity, type Grant, LEVELS, type Level, type Permissions } from '../../../wire/grants.ts'
import type { Token } from '../../../wire/records/hub-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { ofRealm, orgOf, realmIdOf } from '../kit/names.ts'
import { collect, days } from '../kit/options.ts'
import { doing, yes } from './entry.ts'
import { changing, listing } from './forms.ts'
import { confirmed, relative, secret } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list your tokens, or those that reach a realm', '--realm prod', {
    options: [option('--realm <realm>', 'all tokens that reach this realm, not only yours')],
    call: ListTokens,
    where: ofRealm,
    rows: 'tokens',
    row: (token, paint) => [
      line`${token.id}  ${paint.bold(token.name)}`,
      token.kind === 'session' ? 'session' : `${token.type} token`,
      stateOf(token),
      grantText(token),
      paint.dim(token.last_used_at === null ? 'never used' : `used ${relative(token.last_used_at)}`),
    ],
  }),
  doing(
    'create <name>',
    'print a new token; without --allow it may do what you may',
    'dashboard --allow runs:read,daemons:read --realm prod --days 90',
    {
      options: [
        option('--allow <what:level>', 'what it may do, such as runs:read,dispatch:write; may be repeated').argParser(
          collect,
        ),
        option('--realm <realm>', 'in which realm, or `all`; may be repeated').argParser(collect),
        option('--org <org>', 'in which org, with all of its realms, or `all`; may be repeated').argParser(collect),
        option('--days <number>', 'how long it is valid, from 1 to 3650 days (until it is revoked)').argParser(days),
      ],
      run: async (hub, options, name: string) => {
        const permissions = await permissionsOf(hub, options)
        const limits = { expires_in_days: options.days, ...(permissions && { permissions }) }
        const made = await hub.call(GenerateToken, { type: 'user', name, ...limits })
        const end = made.expires_at === null ? 'it does not end' : `it ends ${relative(made.expires_at)}`
        secret(options, made, `token ${made.id}, ${name}; ${end}`)
      },
    },
  ),
  doing('rotate <id>', 'give a token a new secret, and print it', '7 --yes', {
    options: [yes],
    run: async (hub, options, wanted: string) => {
      const id = idIn(wanted)
      await confirmed(`Give token ${id} a new secret? The present one is refused from now on.`, options)
      const token = await hub.call(RotateToken, { id })
      secret(options, token, `the new secret of token ${id}, ${token.name}`)
    },
  }),
  changing('revoke <id>', 'revoke a token, which is refused from then on', '7 --yes', {
    find: async (_, wanted) => idIn(wanted),
    question: id => `Revoke token ${id}? What uses it is refused from now on.`,
    call: (hub, id) => hub.call(RevokeToken, { id }),
    confirmation: (id, { name }) => `revoked token ${id}, ${name}`,
  }),
]

function stateOf({ revoked_at, expires_at }: Token): string {
  if (revoked_at !== null) return `revoked ${relative(revoked_at)}`
  return expires_at === null ? 'does not end' : `ends ${relative(expires_at)}`
}

function grantText({ grant, type, realm_ids }: Token): string {
  if (type === 'realm') return `enrols daemons in ${realm_ids.length === 1 ? '1 realm' : `${realm_ids.length} realms`}`
  const access = Object.entries(grant.access).flatMap(([entity, levels]) =>
    (levels ?? []).map(each => `${entity}:${each}`),
  )
  const all = ENTITIES.every(entity => grant.access[entity]?.includes('admin'))
  return `${all ? 'everything that you may' : access.join(' ') || 'nothing'}${domainsText(grant)}`
}

function domainsText({ domains: { orgs = [], realms = [] } }: Grant): string {
  if (orgs === '*') return ''
  const parts = [
    ...(orgs.length > 0 ? [`${orgs.length === 1 ? 'org' : 'orgs'} ${orgs.join(', ')}`] : []),
    ...(realms === '*'
      ? ['all realms']
      : realms.length > 0
        ? [`${realms.length === 1 ? 'realm' : 'realms'} ${realms.map(id => id.slice(0, 8)).join(', ')}`]
        : []),
  ]
  return parts.length > 0 ? ` in ${parts.join(' and ')}` : ''
}

/** These belong to no org and no realm, so a grant of them needs no place. */
const WITHOUT_DOMAIN: readonly Entity[] = ['users', 'tokens', 'scopes', 'teams']

interface GrantOptions {
  /** `runs:read`. */
  allow?: string[]
  realm?: string[]
  org?: string[]
}

/** What the token may do and where. Null without `allow`: then it may do what its maker may. */
async function permissionsOf(
  hub: HubClient,
  { allow = [], realm = [], org = [] }: GrantOptions,
): Promise<Static<typeof Permissions> | null> {
  const wrong = (message: string) => new CadreError('invalid_request', message)
  if (allow.length === 0) {
    if (realm.length + org.length === 0) return null
    throw wrong('what may the token do there? Give --allow, such as --allow runs:read')
  }
  const access: Partial<Record<Entity, Level[]>> = {}
  for (const each of allow.flatMap(text => text.split(','))) {
    const [name, level = ''] = each.split(':', 2)
    const entity = ENTITIES.find(known => known === name)
    const found = LEVELS.find(known => known === level)
    if (!entity || !found) {
      throw wrong(`--allow ${each}: expected WHAT:LEVEL, with ${listed(ENTITIES)}, and ${listed(LEVELS)}`)
    }
    access[entity] = [...(access[entity] ?? []), found]
  }
  const placed = Object.keys(access).filter(entity => !WITHOUT_DOMAIN.includes(entity as Entity))
  if (placed.length > 0 && realm.length + org.length === 0) {
    throw wrong(`where may the token do this (${listed(placed)})? Give --realm or --org, which may be all`)
  }
  const orgs = org.includes('all')
    ? ('*' as const)
    : await Promise.all(org.map(async each => (await orgOf(hub, each)).id))
  const realms = realm.includes('all') ? ('*' as const) : await Promise.all(realm.map(each => realmIdOf(hub, each)))
  return { access, domains: { ...(org.length > 0 && { orgs }), ...(realm.length > 0 && { realms }) } }
}

function idIn(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new CadreError('invalid_request', `${text}: expected the number of a token, which \`tokens list\` shows`)
}
