// Finds orgs, scopes, realms and daemons of a hub by what people call them: a slug, a name, or an id. Where only one can
// be meant, it need not be named.

import { CadreError } from '../../../error.ts'
import { ListDaemons, ListOrgs, ListScopes, type SeenDaemon } from '../../../wire/hub-admin-calls.ts'
import { GetRealm, ListRealms } from '../../../wire/hub-calls.ts'
import type { Org, Realm, Scope } from '../../../wire/hub-records.ts'
import type { HubClient } from '../../link/link.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const BEGINNING = /^[0-9a-f]{6}[0-9a-f-]*$/
const PAGE = 100
/** The names that an error lists. */
const MOST_NAMED = 10

interface Kind<T> {
  /** `realm`: for messages. */
  what: string
  /** How an item is named where several could be meant. */
  told(item: T): string
  /** From the surest way of naming an item to the vaguest. The first that fits any item decides. */
  fits: readonly ((item: T, wanted: string) => boolean)[]
}

/** The realm by its id, slug or name, or by `org/slug`. */
export async function realmOf(client: HubClient, wanted: string | undefined): Promise<Realm> {
  if (wanted !== undefined && UUID.test(wanted)) return client.call(GetRealm, { realm_id: wanted })
  const realms = await every(async page => {
    const { realms, total } = await client.call(ListRealms, page)
    return { items: realms, total }
  })
  const [org, slug] = wanted?.includes('/') ? wanted.split('/', 2) : []
  const inOrg = org === undefined ? null : (await orgOf(client, org)).id
  const among = inOrg === null ? realms : realms.filter(({ org_id }) => org_id === inOrg)
  return one(client, among, slug ?? wanted, {
    what: 'realm',
    told: ({ slug, id }) => `${slug} (${id})`,
    fits: [(realm, wanted) => realm.slug === wanted, (realm, wanted) => realm.name === wanted],
  })
}

/** Like `realmOf`. An id is returned as it is, because the credential may not be allowed to read realms. */
export async function realmIdOf(client: HubClient, wanted: string | undefined): Promise<string> {
  return wanted !== undefined && UUID.test(wanted) ? wanted : (await realmOf(client, wanted)).id
}

/** The org by its slug or its number. */
export async function orgOf(client: HubClient, wanted: string | undefined): Promise<Org> {
  const orgs = await every(async page => {
    const { orgs, total } = await client.call(ListOrgs, page)
    return { items: orgs, total }
  })
  return one(client, orgs, wanted, {
    what: 'org',
    told: ({ slug }) => slug,
    fits: [(org, wanted) => org.slug === wanted, (org, wanted) => String(org.id) === wanted],
  })
}

/** The scope by its slug, with or without `@`, or its number. */
export async function scopeOf(client: HubClient, wanted: string | undefined): Promise<Scope> {
  const scopes = await every(async page => {
    const { scopes, total } = await client.call(ListScopes, page)
    return { items: scopes, total }
  })
  return one(client, scopes, wanted?.replace(/^@/, ''), {
    what: 'scope',
    told: ({ slug }) => `@${slug}`,
    fits: [(scope, wanted) => scope.slug === wanted, (scope, wanted) => String(scope.id) === wanted],
  })
}

/** The daemon by its name, its id or the beginning of its id. */
export async function daemonOf(client: HubClient, wanted: string): Promise<SeenDaemon> {
  const daemons = await every(async page => {
    const { daemons, total } = await client.call(ListDaemons, page)
    return { items: daemons, total }
  })
  return one(client, daemons, wanted, {
    what: 'daemon',
    told: ({ name, id }) => `${name} (${id})`,
    fits: [
      ({ id }, wanted) => id === wanted,
      ({ name }, wanted) => name === wanted,
      ({ id }, wanted) => BEGINNING.test(wanted) && id.startsWith(wanted),
    ],
  })
}

/** All items of a list. */
export async function every<T>(
  read: (page: { limit: number; offset: number }) => Promise<{ items: readonly T[]; total: number }>,
): Promise<T[]> {
  const all: T[] = []
  for (;;) {
    const { items, total } = await read({ limit: PAGE, offset: all.length })
    all.push(...items)
    if (items.length === 0 || all.length >= total) return all
  }
}

function one<T>({ url }: HubClient, items: readonly T[], wanted: string | undefined, kind: Kind<T>): T {
  const { what, told, fits } = kind
  const found =
    wanted === undefined
      ? items
      : (fits.map(fit => items.filter(item => fit(item, wanted))).find(each => each.length > 0) ?? [])
  const [first, ...more] = found
  if (first !== undefined && more.length === 0) return first
  const named = (among: readonly T[]) =>
    among.slice(0, MOST_NAMED).map(told).join(', ') + (among.length > MOST_NAMED ? ', …' : '')
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
