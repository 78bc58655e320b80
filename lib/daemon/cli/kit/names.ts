// Finds orgs, scopes, realms and daemons of a hub by what people call them: a slug, a name, or an id. Where only one can
// be meant, it need not be named.

import type { Static, TSchema } from 'typebox'
import { CadreError } from '../../../error.ts'
import type { Call } from '../../../wire/call.ts'
import { ListDaemons } from '../../../wire/calls/daemons.ts'
import { ListOrgs } from '../../../wire/calls/orgs.ts'
import { GetRealm, ListRealms } from '../../../wire/calls/realms.ts'
import { ListScopes } from '../../../wire/calls/scopes.ts'
import { ListWebhooks } from '../../../wire/calls/webhooks.ts'
import type { Webhook } from '../../../wire/records/hooks.ts'
import type { Daemon, Org, Realm, Scope } from '../../../wire/records/hub-records.ts'
import type { HubClient } from '../../link/hub-client.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const BEGINNING = /^[0-9a-f]{6}[0-9a-f-]*$/
const PAGE = 100
/** The names that an error lists. */
const MOST_NAMED = 10

interface Kind<T> {
  /** `realm`: for messages. */
  what: string
  /** How an item is named where several could be meant. */
  labelOf(item: T): string
  /** From the surest way of naming an item to the vaguest. The first that fits any item decides. */
  fits: readonly ((item: T, wanted: string) => boolean)[]
}

const REALM: Kind<Realm> = {
  what: 'realm',
  labelOf: ({ slug, id }) => `${slug} (${id})`,
  fits: [({ slug }, wanted) => slug === wanted, ({ name }, wanted) => name === wanted],
}
/** Orgs and scopes are named by slug or number. */
const bySlug = [
  ({ slug }: Org | Scope, wanted: string) => slug === wanted,
  ({ id }: Org | Scope, wanted: string) => String(id) === wanted,
]
const ORG: Kind<Org> = { what: 'org', labelOf: ({ slug }) => slug, fits: bySlug }
const SCOPE: Kind<Scope> = { what: 'scope', labelOf: ({ slug }) => `@${slug}`, fits: bySlug }
const DAEMON: Kind<Daemon> = {
  what: 'daemon',
  labelOf: ({ name, id }) => `${name} (${id})`,
  fits: [
    ({ id }, wanted) => id === wanted,
    ({ name }, wanted) => name === wanted,
    ({ id }, wanted) => BEGINNING.test(wanted) && id.startsWith(wanted),
  ],
}
const WEBHOOK: Kind<Webhook> = {
  what: 'webhook',
  labelOf: ({ url, id }) => `${url} (${id})`,
  fits: [
    ({ id }, wanted) => id === wanted,
    ({ url }, wanted) => url === wanted,
    ({ id }, wanted) => BEGINNING.test(wanted) && id.startsWith(wanted),
  ],
}

/** The realm by its id, slug or name, or by `org/slug`. */
export async function realmOf(client: HubClient, wanted: string | undefined): Promise<Realm> {
  if (wanted !== undefined && UUID.test(wanted)) return client.call(GetRealm, { realm_id: wanted })
  const realms = await every(client, ListRealms, 'realms', {})
  const [org, slug] = wanted?.includes('/') ? wanted.split('/', 2) : []
  const inOrg = org === undefined ? null : (await orgOf(client, org)).id
  const among = inOrg === null ? realms : realms.filter(({ org_id }) => org_id === inOrg)
  return one(client, among, slug ?? wanted, REALM)
}

/** Like `realmOf`. An id is returned as it is, because the credential may not be allowed to read realms. */
export async function realmIdOf(client: HubClient, wanted: string | undefined): Promise<string> {
  return wanted !== undefined && UUID.test(wanted) ? wanted : (await realmOf(client, wanted)).id
}

/** The org by its slug or its number. */
export async function orgOf(client: HubClient, wanted: string | undefined): Promise<Org> {
  return one(client, await every(client, ListOrgs, 'orgs', {}), wanted, ORG)
}

/** The scope by its slug, with or without `@`, or its number. */
export async function scopeOf(client: HubClient, wanted: string | undefined): Promise<Scope> {
  return one(client, await every(client, ListScopes, 'scopes', {}), wanted?.replace(/^@/, ''), SCOPE)
}

/** The daemon by its name, its id or the beginning of its id. */
export async function daemonOf(client: HubClient, wanted: string): Promise<Daemon> {
  return one(client, await every(client, ListDaemons, 'daemons', {}), wanted, DAEMON)
}

/** The webhook of a realm by its address, its id or the beginning of its id. */
export async function webhookOf(client: HubClient, realm_id: string, wanted: string): Promise<Webhook> {
  return one(client, await every(client, ListWebhooks, 'webhooks', { realm_id }), wanted, WEBHOOK)
}

/** What limits a list to a realm, if one was named. */
export async function ofRealm(client: HubClient, { realm }: { realm?: string }): Promise<{ realm_id?: string }> {
  return realm === undefined ? {} : { realm_id: await realmIdOf(client, realm) }
}

/** What limits a list to an org, if one was named. */
export async function ofOrg(client: HubClient, { org }: { org?: string }): Promise<{ org_id?: number }> {
  return org === undefined ? {} : { org_id: (await orgOf(client, org)).id }
}

/** The filters of a list. */
export type Where<Body extends TSchema> = Omit<Static<Body>, 'limit' | 'offset'>
/** What a list has under the name `K`. */
export type Row<Data extends TSchema, K extends keyof Static<Data>> = Static<Data>[K] extends readonly (infer Item)[]
  ? Item
  : never

/** All rows of a list, page by page. */
export async function every<Body extends TSchema, Data extends TSchema, K extends keyof Static<Data>>(
  client: HubClient,
  call: Call<Body, Data>,
  rows: K,
  where: Where<Body>,
): Promise<Row<Data, K>[]> {
  const all: Row<Data, K>[] = []
  for (;;) {
    const found = await client.call(call, { ...where, limit: PAGE, offset: all.length } as Static<Body>)
    const items = found[rows] as Row<Data, K>[]
    all.push(...items)
    if (items.length === 0 || all.length >= (found as { total: number }).total) return all
  }
}

function one<T>({ url }: HubClient, items: readonly T[], wanted: string | undefined, kind: Kind<T>): T {
  const { what, labelOf, fits } = kind
  const found =
    wanted === undefined
      ? items
      : (fits.map(fit => items.filter(item => fit(item, wanted))).find(each => each.length > 0) ?? [])
  const [first, ...more] = found
  if (first !== undefined && more.length === 0) return first
  const named = (among: readonly T[]) =>
    among.slice(0, MOST_NAMED).map(labelOf).join(', ') + (among.length > MOST_NAMED ? ', …' : '')
  if (wanted === undefined) {
    if (first === undefined) throw new CadreError('not_found', `there is no ${what} at ${url} that you may see`)
    throw new CadreError('invalid_request', `which ${what}? There are ${named(found)}`)
  }
  if (first !== undefined) {
    throw new CadreError(
      'invalid_request',
      `${wanted} may be any of these ${what}s: ${named(found)}; name one by its id`,
    )
  }
  const known = items.length === 0 ? '' : `; there is ${named(items)}`
  throw new CadreError('not_found', `there is no ${what} ${wanted} at ${url} that you may see${known}`)
}
