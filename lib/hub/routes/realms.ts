// Realms, in which daemons enrol. Each belongs to an org and has its own members and its own list of teams.

import { and, eq } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import type { Role } from '../../wire/access.ts'
import {
  AddTeam,
  CreateRealm,
  DeleteRealm,
  GetRealm,
  ListRealms,
  ListRealmTeams,
  RemoveTeam,
  UpdateRealm,
} from '../../wire/calls/realms.ts'
import { page } from '../../wire/page.ts'
import { addRealm } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { hubKit } from '../access/kit.ts'
import { countQuotaUse, quotasOf, quotaUseOf } from '../access/quotas.ts'
import { listedTeams } from '../access/team-list.ts'
import { realmsReached } from '../access/token-reach.ts'
import { checkSlug, orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { scopeSlugOf } from '../packages/packages.ts'
import { lacksOfTeams } from '../queue/lacks-of-teams.ts'
import { hasLiveRuns, liveRunsError } from '../reports/runs.ts'
import { unreached } from '../tells/accounts.ts'

type RealmRow = Tables['realms']['$inferSelect']

export function realms(hub: Hub) {
  const { store } = hub
  const { realms, realmMembers, realmTeams, orgMembers } = store

  return resource('realms', hubKit(hub), [
    answer(CreateRealm, ({ body: { org_id, slug, name }, caller }) =>
      caller.write(async tx => {
        const org = await caller.org(orgId(org_id), 'admin', tx)
        checkSlug(slug, 'realm')
        const realm = await addRealm(hub, tx, { org_id: org.id, slug, name }, caller.user.id)
        await record(hub, tx, caller, {
          action: 'realms/create',
          target: slug,
          org_id: org.id,
          realm_id: realm.id,
        })
        return realmRecord(realm, 'admin')
      }),
    ),
    answer(ListRealms, async ({ body, caller }) => {
      const inOrg = body.org_id === undefined ? undefined : eq(realms.org_id, orgId(body.org_id))
      const where = and(inOrg, realmsReached(store, caller))
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ realm: realms, org: orgMembers.role, own: realmMembers.role })
        .from(realms)
        .leftJoin(orgMembers, and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, caller.user.id)))
        .leftJoin(realmMembers, and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, caller.user.id)))
        .where(where)
        .orderBy(realms.created_at, realms.id)
        .limit(limit)
        .offset(offset)
      const found = rows.map(({ realm, ...memberships }) => realmRecord(realm, caller.roleIn('realm', memberships)!))
      return { realms: found, total: await countOf(store.db, realms, where) }
    }),
    answer(GetRealm, async ({ body, caller }) => {
      const { role, ...realm } = await caller.realm(body.realm_id)
      return detail(hub, realm, role, store.db)
    }),
    answer(UpdateRealm, ({ body: { realm_id, quotas: given, notify, ...renamed }, caller }) => {
      if (given !== undefined && !caller.user.siteAdmin) {
        throw new CadreError('forbidden', 'only a site admin may set the quotas of a realm')
      }
      return caller.write(async tx => {
        const { role, ...realm } = await caller.realm(realm_id, 'admin', tx)
        const quotas = given && { ...realm.quotas, ...given }
        const changes = { ...renamed, ...(notify !== undefined && { notify }), ...(quotas !== undefined && { quotas }) }
        if (changes.slug) checkSlug(changes.slug, 'realm')
        const set = Object.entries({ quotas: given, notify }).flatMap(([name, value]) =>
          value === undefined ? [] : `${name} ${JSON.stringify(value)}`,
        )
        await record(hub, tx, caller, {
          action: 'realms/update',
          ...(set.length > 0 && { target: set.join(', ') }),
          org_id: realm.org_id,
          realm_id,
        })
        if (Object.keys(changes).length === 0) return detail(hub, realm, role, tx)
        const [row] = await tx.update(realms).set(changes).where(eq(realms.id, realm_id)).returning().catch(taken)
        if (given !== undefined) await countQuotaUse(hub, tx, row!)
        return detail(hub, row!, role, tx)
      })
    }),
    answer(DeleteRealm, ({ body: { realm_id }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        if (await hasLiveRuns(hub, tx, [realm_id])) throw liveRunsError(`realm ${realm.slug}`)
        await tx.delete(realms).where(eq(realms.id, realm_id))
        await record(hub, tx, caller, {
          action: 'realms/delete',
          target: realm.slug,
          org_id: realm.org_id,
          realm_id,
        })
        return { id: realm_id }
      }),
    ),
    answer(ListRealmTeams, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const where = eq(realmTeams.realm_id, body.realm_id)
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ team: realmTeams.team, added_at: realmTeams.added_at })
        .from(realmTeams)
        .where(where)
        .orderBy(realmTeams.team)
        .limit(limit)
        .offset(offset)
      const lacking = await lacksOfTeams(
        hub,
        body.realm_id,
        rows.map(({ team }) => team),
      )
      const teams = rows.map(row => {
        const lacks = lacking.get(row.team)
        return { ...row, ...(lacks !== undefined && { lacks }) }
      })
      return { teams, total: await countOf(store.db, realmTeams, where) }
    }),
    answer(AddTeam, ({ body: { realm_id, team }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        // The caller must belong to the scope. The team itself need not be published: it may follow later, or be run
        // from a folder.
        const { id: scope_id } = await caller.scope({ slug: scopeSlugOf(team) }, 'org', tx)
        const [listed] = await listedTeams(store, tx, realm_id, team)
        if (!listed?.lent) {
          const row = { realm_id, team, scope_id, added_at: hub.now(), added_by: caller.user.id }
          const target = [realmTeams.realm_id, realmTeams.team]
          await tx.insert(realmTeams).values(row).onConflictDoUpdate({ target, set: row })
        }
        const entry = { action: 'realms/add_team', target: team, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        return { id: team, realm_id, team }
      }),
    ),
    answer(RemoveTeam, ({ body: { realm_id, team }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        const gone = await tx
          .delete(realmTeams)
          .where(and(eq(realmTeams.realm_id, realm_id), eq(realmTeams.team, team)))
          .returning()
        if (gone.length === 0) throw new CadreError('not_found', `${team} is not on the list of realm ${realm.slug}`)
        const entry = { action: 'realms/remove_team', target: team, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        return { id: team, realm_id, team }
      }),
    ),
  ])
}

/** A realm as `realms/get` and `realms/update` answer it. */
async function detail(hub: Hub, realm: RealmRow, my_role: Role<'realm'>, db: Db) {
  const on_fail = realm.notify?.on_fail ?? []
  const notify = on_fail.length === 0 ? null : { on_fail, unreached: await unreached(hub, db, realm.id, on_fail) }
  const use = await quotaUseOf(hub, db, realm)
  return { ...realmRecord(realm, my_role), quotas: quotasOf(hub, realm), use, notify }
}

const realmRecord = ({ quotas: _, notify: __, ...realm }: RealmRow, my_role: Role<'realm'>) => ({ ...realm, my_role })

function taken(error: unknown): never {
  if (isDuplicate(error)) throw new CadreError('conflict', 'the org has another realm with this slug')
  throw error
}
