// Orgs are the tenants. Each has members, scopes, realms and a dispatch key.

import { and, eq, inArray, sql } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import {
  AddOrgMember,
  CreateOrg,
  DeleteOrg,
  GetOrg,
  ListOrgs,
  RemoveOrgMember,
  UpdateOrg,
} from '../../wire/calls/orgs.ts'
import { page } from '../../wire/page.ts'
import { addOrg, userNamed } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { keepOrgOwner, keepRealmAdmin, keepScopeOwner } from '../access/last-leader.ts'
import { ownedBy } from '../access/owners.ts'
import { checkSlug, orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { hasLiveRuns, liveRunsError } from '../reports/runs.ts'

export function orgs(hub: Hub) {
  const { store } = hub
  const { orgs, orgMembers, users, scopes, scopeMembers, packages, realms, realmMembers } = store

  return resource('orgs', hubKit(hub), [
    answer(CreateOrg, async ({ body, caller }) => {
      checkSlug(body.slug, 'org')
      return caller.write(async tx => {
        const org = await addOrg(hub, tx, body, caller.user.id)
        await record(hub, tx, caller, { action: 'orgs/create', target: org.slug, org_id: org.id })
        return { ...org, my_role: 'owner' }
      })
    }),
    answer(ListOrgs, async ({ body, caller }) => {
      const { limit, offset } = page(body)
      const where = visibleOrgs(caller)
      const rows = await store.db
        .select({ org: orgs, role: orgMembers.role })
        .from(orgs)
        .leftJoin(orgMembers, and(eq(orgMembers.org_id, orgs.id), eq(orgMembers.user_id, caller.user.id)))
        .where(where)
        .orderBy(orgs.slug)
        .limit(limit)
        .offset(offset)
      return {
        orgs: rows.map(({ org, role }) => ({ ...org, my_role: caller.roleIn('org', { org: role })! })),
        total: await countOf(store.db, orgs, where),
      }
    }),
    answer(GetOrg, async ({ body, caller }) => {
      const { role, ...org } = await caller.org(orgId(body.org_id))
      const members = await store.db
        .select({ user_id: orgMembers.user_id, username: users.username, role: orgMembers.role })
        .from(orgMembers)
        .innerJoin(users, eq(users.id, orgMembers.user_id))
        .where(eq(orgMembers.org_id, org.id))
        .orderBy(users.username)
      return { ...org, my_role: role, members, scopes: await scopesOf(org.id) }
    }),
    answer(UpdateOrg, ({ body: { org_id, ...changes }, caller }) =>
      caller.write(async tx => {
        const { role, ...org } = await caller.org(orgId(org_id), 'admin', tx)
        if (changes.slug) checkSlug(changes.slug, 'org')
        await record(hub, tx, caller, { action: 'orgs/update', target: org.slug, org_id: org.id })
        if (Object.keys(changes).length === 0) return { ...org, my_role: role }
        const [row] = await tx.update(orgs).set(changes).where(eq(orgs.id, org.id)).returning().catch(taken)
        return { ...row!, my_role: role }
      }),
    ),
    answer(DeleteOrg, ({ body, caller }) =>
      caller.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'owner', tx)
        const within = tx.select({ id: realms.id }).from(realms).where(eq(realms.org_id, org.id))
        if (await hasLiveRuns(hub, tx, within)) throw liveRunsError(`org ${org.slug}`)
        await tx.delete(realms).where(eq(realms.org_id, org.id))
        await tx.delete(orgs).where(eq(orgs.id, org.id))
        await record(hub, tx, caller, { action: 'orgs/delete', target: org.slug, org_id: org.id })
        return { id: org.id }
      }),
    ),
    answer(AddOrgMember, ({ body, caller }) =>
      caller.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'admin', tx)
        const account = await userNamed(hub, tx, body.username)
        await mayChange(tx, org, account.id, body.role)
        await tx
          .insert(orgMembers)
          .values({ org_id: org.id, user_id: account.id, role: body.role })
          .onConflictDoUpdate({ target: [orgMembers.org_id, orgMembers.user_id], set: { role: body.role } })
        await record(hub, tx, caller, {
          action: 'orgs/add_member',
          target: `${body.username} as ${body.role}`,
          org_id: org.id,
        })
        return { id: account.id, org_id: org.id, user_id: account.id, username: body.username, role: body.role }
      }),
    ),
    answer(RemoveOrgMember, ({ body, caller }) =>
      caller.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'admin', tx)
        const account = await userNamed(hub, tx, body.username)
        await mayChange(tx, org, account.id, null)
        await keepScopeOwner(hub, tx, eq(scopes.org_id, org.id), account.id)
        await keepRealmAdmin(hub, tx, eq(realms.org_id, org.id), account.id)
        const scopeIds = tx.select({ id: scopes.id }).from(scopes).where(eq(scopes.org_id, org.id))
        const realmIds = tx.select({ id: realms.id }).from(realms).where(eq(realms.org_id, org.id))
        await tx
          .delete(scopeMembers)
          .where(and(eq(scopeMembers.user_id, account.id), inArray(scopeMembers.scope_id, scopeIds)))
        await tx
          .delete(realmMembers)
          .where(and(eq(realmMembers.user_id, account.id), inArray(realmMembers.realm_id, realmIds)))
        const gone = await tx
          .delete(orgMembers)
          .where(and(eq(orgMembers.org_id, org.id), eq(orgMembers.user_id, account.id)))
          .returning()
        if (gone.length === 0) throw new CadreError('not_found', `${body.username} is not a member of ${org.slug}`)
        await record(hub, tx, caller, { action: 'orgs/remove_member', target: body.username, org_id: org.id })
        const where = eq(realms.org_id, org.id)
        const owns = await ownedBy(store, tx, { userId: account.id, realms: where, now: hub.now() })
        return { id: account.id, org_id: org.id, user_id: account.id, username: body.username, owns }
      }),
    ),
  ])

  /**
   * Throws unless the caller may make this change: only owners appoint or remove owners, and one owner always remains.
   */
  async function mayChange(
    tx: Db,
    org: { id: number; slug: string; role: string },
    userId: number,
    role: string | null,
  ): Promise<void> {
    const one = and(eq(orgMembers.org_id, org.id), eq(orgMembers.user_id, userId))
    const [current] = await tx.select().from(orgMembers).where(one)
    if ((current?.role === 'owner' || role === 'owner') && org.role !== 'owner') {
      throw new CadreError('forbidden', `only an owner of ${org.slug} may change its owners`)
    }
    if (role !== 'owner') await keepOrgOwner(hub, tx, eq(orgMembers.org_id, org.id), userId)
  }

  function scopesOf(id: number) {
    // In a query on one table, columns are written without the table's name. The name is needed here, because the
    // column would otherwise be that of the inner table.
    const scope = sql`${scopes}.${sql.identifier('id')}`
    const members = sql<number>`(SELECT count(*) FROM ${scopeMembers} WHERE ${scopeMembers.scope_id} = ${scope})`
    const teams = sql<number>`(SELECT count(DISTINCT ${packages.name}) FROM ${packages} WHERE ${packages.scope_id} = ${scope} AND ${packages.yanked_at} IS NULL)`
    return store.db
      .select({
        id: scopes.id,
        slug: scopes.slug,
        display_name: scopes.display_name,
        member_count: members.mapWith(Number),
        team_count: teams.mapWith(Number),
      })
      .from(scopes)
      .where(eq(scopes.org_id, id))
      .orderBy(scopes.slug)
  }

  /** The orgs that the grant reaches and in which the caller has a role. Undefined means all orgs. */
  function visibleOrgs(caller: UserCaller) {
    const { orgs: listed = [] } = caller.token.grant.domains
    const reached = listed === '*' ? undefined : inArray(orgs.id, listed)
    if (caller.user.siteAdmin) return reached
    const own = store.db
      .select({ id: orgMembers.org_id })
      .from(orgMembers)
      .where(eq(orgMembers.user_id, caller.user.id))
    return and(reached, inArray(orgs.id, own))
  }
}

function taken(error: unknown): never {
  if (isDuplicate(error)) throw new CadreError('conflict', 'another org has this slug')
  throw error
}
