// The last one stays: nobody is removed or demoted who alone owns an org or a scope, or is admin of a realm. Suspended
// accounts do not count. Suspending is another matter: it has to stop an account at once, whatever the account leads, and
// what is left without a head then is still in reach of the org's owners and the site admins.

import { and, eq, type SQL } from 'drizzle-orm'
import type { Db } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { Hub } from './hub.ts'

interface Head {
  place: string
  user_id: number
  suspended_at: number | null
}

/** Throws `conflict` when `userId` is the last owner of one of the orgs that `of` chooses. */
export async function keepOrgOwner({ store }: Hub, tx: Db, of: SQL, userId: number): Promise<void> {
  const { orgs, orgMembers, users } = store
  const owners = await tx
    .select({ place: orgs.slug, user_id: users.id, suspended_at: users.suspended_at })
    .from(orgMembers)
    .innerJoin(orgs, eq(orgs.id, orgMembers.org_id))
    .innerJoin(users, eq(users.id, orgMembers.user_id))
    .where(and(eq(orgMembers.role, 'owner'), of))
  refuse(owners, userId, 'owner of org', 'orgs/add_member')
}

/** Likewise of scopes, whose own owners count. */
export async function keepScopeOwner({ store }: Hub, tx: Db, of: SQL, userId: number): Promise<void> {
  const { scopes, scopeMembers, users } = store
  const owners = await tx
    .select({ place: scopes.slug, user_id: users.id, suspended_at: users.suspended_at })
    .from(scopeMembers)
    .innerJoin(scopes, eq(scopes.id, scopeMembers.scope_id))
    .innerJoin(users, eq(users.id, scopeMembers.user_id))
    .where(and(eq(scopeMembers.role, 'owned'), of))
  refuse(owners, userId, 'owner of scope', 'scopes/add_member')
}

/** Likewise of realms, whose own admins count. */
export async function keepRealmAdmin({ store }: Hub, tx: Db, of: SQL, userId: number): Promise<void> {
  const { realms, realmMembers, users } = store
  const admins = await tx
    .select({ place: realms.slug, user_id: users.id, suspended_at: users.suspended_at })
    .from(realmMembers)
    .innerJoin(realms, eq(realms.id, realmMembers.realm_id))
    .innerJoin(users, eq(users.id, realmMembers.user_id))
    .where(and(eq(realmMembers.role, 'admin'), of))
  refuse(admins, userId, 'admin of realm', 'realms/add_member')
}

function refuse(heads: Head[], userId: number, what: string, route: string): void {
  const kept = new Set(heads.filter(head => head.user_id !== userId && head.suspended_at === null).map(at => at.place))
  const left = heads.filter(head => head.user_id === userId && !kept.has(head.place)).map(head => head.place)
  if (left.length === 0) return
  const places = left.sort().join(', ')
  throw new CadreError(
    'conflict',
    `the last ${what} ${places} cannot be removed or demoted; make another first, with ${route}`,
  )
}
