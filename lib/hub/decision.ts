// The one decision of the hub: may a token, through its grant and its owner's live roles, do this here? Pure.
// A foreign object and a missing one look alike; a role that is too low on a visible object is told.

import { type Grant, reaches, type Target } from '../wire/grants.ts'

/** Roles, lowest first. */
export const ROLES = {
  org: ['member', 'admin', 'owner'],
  scope: ['org', 'member', 'owned'],
  realm: ['member', 'operator', 'admin'],
} as const

export type Kind = keyof typeof ROLES
export type Role<K extends Kind> = (typeof ROLES)[K][number]

/** What the owner of a token is, here and now. */
export interface Standing {
  siteAdmin: boolean
  org: Role<'org'> | null
  /** The role given in the scope or realm itself. */
  own?: string | null
}

/** The role that counts: org owners and admins are admin in the org's realms and own its scopes. */
export function roleIn<K extends Kind>(kind: K, { siteAdmin, org, own = null }: Standing): Role<K> | null {
  const highest = ROLES[kind].at(-1) as Role<K>
  if (siteAdmin) return highest
  if (kind === 'org') return org as Role<K> | null
  if (org === 'owner' || org === 'admin') return highest
  if (own !== null) return own as Role<K>
  return kind === 'scope' && org === 'member' ? ('org' as Role<K>) : null
}

export function atLeast<K extends Kind>(kind: K, role: Role<K>, need: Role<K>): boolean {
  const order: readonly string[] = ROLES[kind]
  return order.indexOf(role) >= order.indexOf(need)
}

export type Verdict = 'allowed' | 'hidden' | 'too_low'

/**
 * Whether `grant` and `standing` admit what needs `need` on an object of `kind` at `target`. Namespaces are no domain of
 * tokens: on a scope only the role counts.
 */
export function decide<K extends Kind>(
  kind: K,
  need: Role<K>,
  grant: Grant,
  target: Target,
  standing: Standing,
): Verdict {
  const role = roleIn(kind, standing)
  if (role === null || !(kind === 'scope' || reaches(grant, target))) return 'hidden'
  return atLeast(kind, role, need) ? 'allowed' : 'too_low'
}
