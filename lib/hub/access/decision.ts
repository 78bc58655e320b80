// The one access decision of the hub: may a token do this here, given its grant and the live roles of its owner? Pure.
// An object that the caller may not see looks like a missing one. A role that is too low on a visible object is
// reported as such.

import { type Kind, ROLES, type Role } from '../../wire/access.ts'
import { type Grant, reaches, type Target } from '../../wire/grants.ts'

/** The memberships of a token's owner that matter for one object. */
export interface Memberships {
  siteAdmin: boolean
  org: Role<'org'> | null
  /** The role that the scope or realm itself gives. */
  own?: string | null
}

/** The effective role. Owners and admins of an org are admins of its realms and owners of its scopes. */
export function roleIn<K extends Kind>(kind: K, { siteAdmin, org, own = null }: Memberships): Role<K> | null {
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
 * Whether `grant` and `standing` allow what requires `need` on an object of `kind` at `target`. Grants do not name
 * scopes, so for a scope only the role counts.
 */
export function decide<K extends Kind>(
  kind: K,
  need: Role<K>,
  grant: Grant,
  target: Target,
  memberships: Memberships,
): Verdict {
  const role = roleIn(kind, memberships)
  if (role === null || !(kind === 'scope' || reaches(grant, target))) return 'hidden'
  return atLeast(kind, role, need) ? 'allowed' : 'too_low'
}
