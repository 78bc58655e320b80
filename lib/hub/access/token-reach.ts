// Conditions that limit a list to what a user token reaches: objects within the grant's domains in which the owner has
// a live role. The domains do not include scopes.

import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import type { UserCaller } from './callers.ts'

/** The scopes of which the caller is a member, directly or through the org. */
export function scopesReached({ db, scopes, scopeMembers, orgMembers }: Store, caller: UserCaller): SQL | undefined {
  if (caller.user.siteAdmin) return undefined
  const mine = db.select({ id: orgMembers.org_id }).from(orgMembers).where(eq(orgMembers.user_id, caller.user.id))
  const own = db
    .select({ id: scopeMembers.scope_id })
    .from(scopeMembers)
    .where(eq(scopeMembers.user_id, caller.user.id))
  return or(inArray(scopes.org_id, mine), inArray(scopes.id, own))
}

/** The realms that the grant reaches and to which the caller belongs, directly or as an owner or admin of the org. */
export function realmsReached({ db, realms, realmMembers, orgMembers }: Store, caller: UserCaller): SQL | undefined {
  const { orgs = [], realms: listed = [] } = caller.token.grant.domains
  const domain =
    orgs === '*' || listed === '*' ? undefined : or(inArray(realms.org_id, orgs), inArray(realms.id, listed))
  if (caller.user.siteAdmin) return domain
  const led = db
    .select({ id: orgMembers.org_id })
    .from(orgMembers)
    .where(and(eq(orgMembers.user_id, caller.user.id), inArray(orgMembers.role, ['owner', 'admin'])))
  const own = db
    .select({ id: realmMembers.realm_id })
    .from(realmMembers)
    .where(eq(realmMembers.user_id, caller.user.id))
  return and(domain, or(inArray(realms.org_id, led), inArray(realms.id, own)))
}
