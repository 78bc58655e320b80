// Keeps the last leader of an org, scope or realm: its only owner, or a realm's only admin, can be neither
// removed nor demoted. Suspended accounts do not count as leaders. Suspending is not restricted, because it must stop
// an account at once, whatever the account leads. An org, scope or realm that has no leader afterwards can still be managed by the
// org's owners and the site admins.

import { and, eq, type SQL } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Hub } from '../core/hub.ts'

/** What people lead: its table, the table of its members, and the role that leads. */
function leadTablesOf({ orgs, orgMembers, scopes, scopeMembers, realms, realmMembers }: Store) {
  return {
    org: { table: orgs, members: orgMembers, of: orgMembers.org_id, role: 'owner' },
    scope: { table: scopes, members: scopeMembers, of: scopeMembers.scope_id, role: 'owned' },
    realm: { table: realms, members: realmMembers, of: realmMembers.realm_id, role: 'admin' },
  } as const
}

/** The name of the leading role in errors, and the route that appoints another leader. */
const LEADERS = {
  org: { what: 'owner of org', route: 'orgs/add_member' },
  scope: { what: 'owner of scope', route: 'scopes/add_member' },
  realm: { what: 'admin of realm', route: 'realms/add_member' },
} as const

/** Throws `conflict` when `userId` is the last leader of one of the orgs, scopes or realms that `where` selects. */
async function keepLeader(kind: keyof typeof LEADERS, { store }: Hub, tx: Db, where: SQL, userId: number) {
  const { users } = store
  const { table, members, of, role } = leadTablesOf(store)[kind]
  const leaders = await tx
    .select({ slug: table.slug, user_id: users.id, suspended_at: users.suspended_at })
    .from(members)
    .innerJoin(table, eq(table.id, of))
    .innerJoin(users, eq(users.id, members.user_id))
    .where(and(eq(members.role, role), where))
  const others = leaders.filter(leader => leader.user_id !== userId && leader.suspended_at === null)
  const kept = new Set(others.map(leader => leader.slug))
  const left = leaders.filter(leader => leader.user_id === userId && !kept.has(leader.slug))
  if (left.length === 0) return
  const { what, route } = LEADERS[kind]
  const slugs = left.map(leader => leader.slug).sort()
  throw new CadreError(
    'conflict',
    `the last ${what} ${slugs.join(', ')} cannot be removed or demoted; make another first, with ${route}`,
  )
}

type Keep = (hub: Hub, tx: Db, where: SQL, userId: number) => Promise<void>

export const keepOrgOwner: Keep = (...given) => keepLeader('org', ...given)
export const keepScopeOwner: Keep = (...given) => keepLeader('scope', ...given)
export const keepRealmAdmin: Keep = (...given) => keepLeader('realm', ...given)
