// The teams that a realm may run: those on its list, and the teams that they call. A team of another org is lent
// through the membership of one person, who put it on the list or published the team that calls it. The realm may no
// longer run it once that person has left its scope.

import { and, eq, type SQL } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import type { Role } from '../../wire/access.ts'
import { scopeSlugOf } from '../packages/packages.ts'
import { roleIn } from './decision.ts'

interface ListedTeam {
  team: string
  /** The name of the user whose membership lends the team, or lent it. */
  by: string | null
  /** False when the team is on the list but may no longer be run. */
  lent: boolean
}

/** The list of a realm, or only the entry of one team. */
export async function listedTeams(store: Store, db: Db, realmId: string, team?: string): Promise<ListedTeam[]> {
  const rows = await (team === undefined ? list(store, db, { realmId }) : entry(store, db, { realmId, team }))
  return rows.map(row => ({ team: row.team, by: row.by, lent: row.scope_org === row.realm_org || belongs(row) }))
}

const list = prepared((store, db, slot: Slot<'realmId'>) =>
  entries(store, db, eq(store.realmTeams.realm_id, slot('realmId'))),
)

const entry = prepared((store, db, slot: Slot<'realmId' | 'team'>) => {
  const { realm_id, team } = store.realmTeams
  return entries(store, db, and(eq(realm_id, slot('realmId')), eq(team, slot('team'))))
})

function entries(store: Store, db: Db, which: SQL | undefined) {
  const { realms, realmTeams, scopes, scopeMembers, orgMembers, users } = store
  return db
    .select({
      team: realmTeams.team,
      realm_org: realms.org_id,
      scope_org: scopes.org_id,
      by: users.username,
      site_admin: users.site_admin,
      suspended_at: users.suspended_at,
      org: orgMembers.role,
      own: scopeMembers.role,
    })
    .from(realmTeams)
    .innerJoin(realms, eq(realms.id, realmTeams.realm_id))
    .innerJoin(scopes, eq(scopes.id, realmTeams.scope_id))
    .leftJoin(users, eq(users.id, realmTeams.added_by))
    .leftJoin(orgMembers, and(eq(orgMembers.org_id, scopes.org_id), eq(orgMembers.user_id, users.id)))
    .leftJoin(scopeMembers, and(eq(scopeMembers.scope_id, scopes.id), eq(scopeMembers.user_id, users.id)))
    .where(which)
    .orderBy(realmTeams.team)
}

/** Whether a realm that may run the teams `roots` needs `name`, because it is one of them or is called by one. */
export async function callsTeam(store: Store, db: Db, roots: readonly string[], name: string): Promise<boolean> {
  const seen = new Set<string>()
  for (let next = [...roots]; next.length > 0; ) {
    const current = next.pop()!
    if (current === name) return true
    if (seen.has(current)) continue
    seen.add(current)
    next = [...next, ...(await calledBy(store, db, current))]
  }
  return false
}

/** The teams that the versions of a package call, without those that its org may no longer use. */
async function calledBy(store: Store, db: Db, name: string): Promise<string[]> {
  const { packages, scopes } = store
  const versions = await db
    .select({ dependencies: packages.dependencies, by: packages.published_by, org_id: scopes.org_id })
    .from(packages)
    .innerJoin(scopes, eq(scopes.id, packages.scope_id))
    .where(eq(packages.name, name))
  const lent = new Map<string, boolean>()
  const called = new Set<string>()
  for (const { dependencies, by, org_id } of versions) {
    for (const dependency of dependencies) {
      const slug = scopeSlugOf(dependency)
      const key = `${by} @${slug}`
      if (!lent.has(key)) lent.set(key, await isLent(store, db, slug, by, org_id))
      if (lent.get(key)) called.add(dependency)
    }
  }
  return [...called]
}

/** Whether an org may use the teams of `@slug`, as its owner or through the membership of `userId`. */
async function isLent(store: Store, db: Db, slug: string, userId: number, orgId: number): Promise<boolean> {
  const { scopes, scopeMembers, orgMembers, users } = store
  const [row] = await db
    .select({
      org_id: scopes.org_id,
      site_admin: users.site_admin,
      suspended_at: users.suspended_at,
      org: orgMembers.role,
      own: scopeMembers.role,
    })
    .from(scopes)
    .leftJoin(users, eq(users.id, userId))
    .leftJoin(orgMembers, and(eq(orgMembers.org_id, scopes.org_id), eq(orgMembers.user_id, userId)))
    .leftJoin(scopeMembers, and(eq(scopeMembers.scope_id, scopes.id), eq(scopeMembers.user_id, userId)))
    .where(eq(scopes.slug, slug))
  return row !== undefined && (row.org_id === orgId || belongs(row))
}

interface Lender {
  site_admin: boolean | null
  suspended_at: number | null
  org: Role<'org'> | null
  own: string | null
}

const belongs = ({ site_admin, suspended_at, org, own }: Lender): boolean =>
  suspended_at === null && roleIn('scope', { siteAdmin: site_admin === true, org, own }) !== null
