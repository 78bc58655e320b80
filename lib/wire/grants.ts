// The grant of a token: which orgs and realms it reaches (domains) and what it may do (access). Pure. Whatever is
// absent is denied; admin implies write, and write implies read. Users, tokens, scopes and teams need no domain.

import type { Static } from 'typebox'
import { closed, named } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { ENTITIES, type Entity, LEVELS, type Level } from './entities.ts'
import { Id, Uuid } from './parts.ts'

export { ENTITIES, type Entity, LEVELS, type Level }

const Levels = Type.Array(Type.Enum([...LEVELS]), { minItems: 1, uniqueItems: true })

const DOMAINS = {
  orgs: Type.Optional(Type.Union([Type.Array(Id, { maxItems: 1_000 }), Type.Literal('*')])),
  realms: Type.Optional(Type.Union([Type.Array(Uuid, { maxItems: 1_000 }), Type.Literal('*')])),
}

const ACCESS = Object.fromEntries(ENTITIES.map(entity => [entity, Type.Optional(Levels)])) as {
  [E in Entity]: ReturnType<typeof Type.Optional<typeof Levels>>
}

/** The `permissions` of a request. An absent domain reaches nothing. */
export const Permissions = closed({ domains: Type.Optional(closed(DOMAINS)), access: closed(ACCESS) })

/** In replies, which a newer hub may extend. */
export const Grant = named('grant', { domains: Type.Object(DOMAINS), access: Type.Object(ACCESS) })
export type Grant = Static<typeof Grant>

export function grantOf({ domains = {}, access }: Static<typeof Permissions>): Grant {
  return { domains, access }
}

/** The grant of a session: everything that the live roles of its owner allow. */
export const FULL_GRANT: Grant = {
  domains: { orgs: '*', realms: '*' },
  access: Object.fromEntries(ENTITIES.map(entity => [entity, ['admin']])),
}

/** The grant of every realm token, for its realms. */
export function realmGrant(realmIds: string[]): Grant {
  return {
    domains: { realms: realmIds },
    access: { daemons: ['write'], runs: ['write'], dispatch: ['read'], teams: ['read'] },
  }
}

/** What a route requires. Any one of these is enough. */
export type RequiredAccess = { readonly [E in Entity]?: Level }

export function allows(grant: Grant, required: RequiredAccess): boolean {
  return Object.entries(required).some(([entity, level]) => rank(grant, entity as Entity) >= LEVELS.indexOf(level))
}

/** The highest level of `entity` as an index into LEVELS; -1 for none. */
function rank(grant: Grant, entity: Entity): number {
  return Math.max(-1, ...(grant.access[entity] ?? []).map(level => LEVELS.indexOf(level)))
}

/** The highest level of all entities, or null when the grant allows nothing. */
export function highestLevel(grant: Grant): Level | null {
  return LEVELS[Math.max(-1, ...ENTITIES.map(entity => rank(grant, entity)))] ?? null
}

/** What a grant can reach: an org (or what belongs to it), or a realm of an org. */
export interface Target {
  org_id: number
  realm_id?: string
}

/** Whether a grant reaches a target. A realm is reached when it or its org is listed. */
export function reaches({ domains }: Grant, { org_id, realm_id }: Target): boolean {
  if (domains.orgs === '*' || domains.orgs?.includes(org_id)) return true
  return realm_id !== undefined && (domains.realms === '*' || (domains.realms?.includes(realm_id) ?? false))
}

/**
 * Whether `inner` allows nothing that `outer` does not allow. `orgOf` returns the org of a realm, because a grant that
 * lists an org reaches its realms.
 */
export function within(inner: Grant, outer: Grant, orgOf: (realmId: string) => number | undefined): boolean {
  if (ENTITIES.some(entity => rank(inner, entity) > rank(outer, entity))) return false
  const { orgs = [], realms = [] } = inner.domains
  const hasOrgs = orgs === '*' ? outer.domains.orgs === '*' : orgs.every(id => reaches(outer, { org_id: id }))
  if (!hasOrgs) return false
  if (realms === '*') return outer.domains.realms === '*' || outer.domains.orgs === '*'
  return realms.every(realm_id => reaches(outer, { org_id: orgOf(realm_id) ?? -1, realm_id }))
}
