// `tokens`: the credentials of programs and people at a hub, with what each may do and where.

import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import { line } from '../../../printable.ts'
import { listed } from '../../../spelling.ts'
import { print, printJson, tell } from '../../../terminal.ts'
import { ENTITIES, type Entity, type Grant, LEVELS, type Level, type Permissions } from '../../../wire/grants.ts'
import { ListTokens, RevokeToken, RotateToken } from '../../../wire/hub-admin-calls.ts'
import { GenerateToken } from '../../../wire/hub-calls.ts'
import type { Token } from '../../../wire/hub-records.ts'
import { homeFolder } from '../../home.ts'
import type { HubClient } from '../../link/link.ts'
import { hubOf } from '../hub-client.ts'
import { orgOf, realmIdOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, relative } from './output.ts'

/** These belong to no org and no realm, so a grant of them needs no place. */
const PLACELESS: readonly Entity[] = ['users', 'tokens', 'scopes', 'teams']

/** Your own tokens, or all tokens that reach a realm. */
export async function listTokens(options: PageOptions & { realm?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = options.realm === undefined ? {} : { realm_id: await realmIdOf(client, options.realm) }
  const found = await client.call(ListTokens, { ...pageOf(options), ...realm })
  list(options, found, found.tokens, (token, paint) => [
    line`${token.id}  ${paint.bold(token.name)}`,
    token.kind === 'session' ? 'session' : `${token.type} token`,
    stateOf(token),
    grantText(token),
    paint.dim(token.last_used_at === null ? 'never used' : `used ${relative(token.last_used_at)}`),
  ])
}

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
  return `${all ? 'everything that you may' : access.join(' ') || 'nothing'}${placesText(grant)}`
}

function placesText({ domains: { orgs = [], realms = [] } }: Grant): string {
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

interface CreateOptions extends Options {
  /** `runs:read`. */
  allow?: string[]
  realm?: string[]
  org?: string[]
  days?: number
}

/** Prints the secret, which the hub never shows again. Without `allow` the token may do what its maker may. */
export async function createToken(name: string, options: CreateOptions): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const permissions = await permissionsOf(client, options)
  const { days } = options
  const minted = await client.call(GenerateToken, {
    type: 'user',
    name,
    ...(permissions && { permissions }),
    ...(days !== undefined && { expires_in_days: days }),
  })
  if (options.json) return printJson(minted)
  print(line`${minted.token}`)
  const end = minted.expires_at === null ? 'it does not end' : `it ends ${relative(minted.expires_at)}`
  tell(line`this is shown once: token ${minted.id}, ${name}; ${end}`)
}

async function permissionsOf(
  client: HubClient,
  { allow = [], realm = [], org = [] }: CreateOptions,
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
  const placed = Object.keys(access).filter(entity => !PLACELESS.includes(entity as Entity))
  if (placed.length > 0 && realm.length + org.length === 0) {
    throw wrong(`where may the token do this (${listed(placed)})? Give --realm or --org, which may be all`)
  }
  const orgs = org.includes('all')
    ? ('*' as const)
    : await Promise.all(org.map(async each => (await orgOf(client, each)).id))
  const realms = realm.includes('all') ? ('*' as const) : await Promise.all(realm.map(each => realmIdOf(client, each)))
  return { access, domains: { ...(org.length > 0 && { orgs }), ...(realm.length > 0 && { realms }) } }
}

export async function revokeToken(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const id = idIn(wanted)
  const client = await hubOf(homeFolder(options.home), options)
  await confirmed(`Revoke token ${id}? What uses it is refused from now on.`, options)
  const token = await client.call(RevokeToken, { id })
  done(options, token, `revoked token ${id}, ${token.name}`)
}

/** Prints the new secret. The old one is refused from then on. */
export async function rotateToken(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const id = idIn(wanted)
  const client = await hubOf(homeFolder(options.home), options)
  await confirmed(`Give token ${id} a new secret? The present one is refused from now on.`, options)
  const token = await client.call(RotateToken, { id })
  if (options.json) return printJson(token)
  print(line`${token.token}`)
  tell(line`this is shown once: the new secret of token ${id}, ${token.name}`)
}

function idIn(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new CadreError('invalid_request', `${text}: expected the number of a token, which \`tokens list\` shows`)
}
