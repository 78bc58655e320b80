// Realms, in which daemons enrol. Each belongs to an org and has its own members and its own list of teams.

import { and, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import type { Tables } from '../../../db/hub/schema.ts'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { listBody, listOf, page } from '../../wire/page.ts'
import { Slug, TeamName, Time, Title, Uuid } from '../../wire/parts.ts'
import { Realm, RealmDetail } from '../../wire/records/hub-records.ts'
import { GivenQuotas } from '../../wire/records/quotas.ts'
import { addRealm } from '../access/accounts.ts'
import { record } from '../access/audit.ts'
import type { Role } from '../access/decision.ts'
import { hubKit } from '../access/kit.ts'
import { listedTeams } from '../access/team-list.ts'
import { realmsReached } from '../access/token-reach.ts'
import { checkSlug, OrgId, orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { scopeSlugOf } from '../packages/packages.ts'
import { countUse, quotasOf, useOf } from '../runs/quotas.ts'
import { endLiveRuns, hasLiveRuns } from '../runs/runs.ts'

type RealmRow = Tables['realms']['$inferSelect']

const OneRealm = closed({ realm_id: Uuid })
const RealmTeam = closed({ realm_id: Uuid, team: TeamName })
const Listed = Type.Object({ id: Type.String(), realm_id: Type.String(), team: Type.String() })

export function realms(hub: Hub) {
  const { store } = hub
  const { realms, realmMembers, realmTeams, orgMembers } = store

  return new Elysia({ name: 'realms', prefix: '/v1/realms' })
    .use(hubKit(hub))
    .post(
      '/create',
      ({ body: { org_id, slug, name }, caller }) =>
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
      {
        user: { grant: { realms: 'write' }, org: 'admin' },
        body: closed({ org_id: OrgId, slug: Slug, name: Title }),
        data: Realm,
        detail: { summary: 'Create a realm; its creator becomes its admin' },
      },
    )
    .post(
      '/list',
      async ({ body, caller }) => {
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
        const found = rows.map(({ realm, ...standing }) => realmRecord(realm, caller.roleIn('realm', standing)!))
        return { realms: found, total: await countOf(store.db, realms, where) }
      },
      {
        user: { grant: { realms: 'read' }, realm: 'member' },
        body: listBody({ org_id: Type.Optional(OrgId) }),
        data: listOf('realms', Realm),
        detail: { summary: 'List the realms that you belong to' },
      },
    )
    .post(
      '/get',
      async ({ body, caller }) => {
        const { role, ...realm } = await caller.realm(body.realm_id)
        return detail(hub, realm, role, store.db)
      },
      {
        user: { grant: { realms: 'read' }, realm: 'member' },
        body: OneRealm,
        data: RealmDetail,
        detail: { summary: 'Get a realm' },
      },
    )
    .post(
      '/update',
      ({ body: { realm_id, quotas: given, ...renamed }, caller }) => {
        if (given !== undefined && !caller.user.siteAdmin) {
          throw new CadreError('forbidden', 'only a site admin may set the quotas of a realm')
        }
        return caller.write(async tx => {
          const { role, ...realm } = await caller.realm(realm_id, 'admin', tx)
          const quotas = given && { ...realm.quotas, ...given }
          const changes = { ...renamed, ...(quotas !== undefined && { quotas }) }
          if (changes.slug) checkSlug(changes.slug, 'realm')
          const target = given === undefined ? null : `quotas ${JSON.stringify(given)}`
          await record(hub, tx, caller, {
            action: 'realms/update',
            ...(target !== null && { target }),
            org_id: realm.org_id,
            realm_id,
          })
          if (Object.keys(changes).length === 0) return detail(hub, realm, role, tx)
          const [row] = await tx.update(realms).set(changes).where(eq(realms.id, realm_id)).returning().catch(taken)
          if (given !== undefined) await countUse(hub, tx, row!)
          return detail(hub, row!, role, tx)
        })
      },
      {
        user: { grant: { realms: 'write' }, realm: 'admin' },
        body: closed({
          realm_id: Uuid,
          name: Type.Optional(Title),
          slug: Type.Optional(Slug),
          quotas: Type.Optional(
            nullable(GivenQuotas, { description: 'Its quotas, which a site admin sets; null: those of the site.' }),
          ),
        }),
        data: RealmDetail,
        detail: { summary: 'Rename a realm, or set its quotas' },
      },
    )
    .post(
      '/delete',
      ({ body: { realm_id }, caller }) =>
        caller.write(async tx => {
          const realm = await caller.realm(realm_id, 'admin', tx)
          if (await hasLiveRuns(hub, tx, [realm_id])) throw endLiveRuns(`realm ${realm.slug}`)
          await tx.delete(realms).where(eq(realms.id, realm_id))
          await record(hub, tx, caller, {
            action: 'realms/delete',
            target: realm.slug,
            org_id: realm.org_id,
            realm_id,
          })
          return { id: realm_id }
        }),
      {
        user: { grant: { realms: 'admin' }, realm: 'admin' },
        body: OneRealm,
        data: Type.Object({ id: Type.String() }),
        detail: { summary: 'Delete a realm with its daemons and runs' },
      },
    )
    .post(
      '/teams',
      async ({ body, caller }) => {
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
        return { teams: rows, total: await countOf(store.db, realmTeams, where) }
      },
      {
        user: { grant: { realms: 'read' }, realm: 'member' },
        body: listBody({ realm_id: Uuid }),
        data: listOf('teams', Type.Object({ team: Type.String(), added_at: Time })),
        detail: { summary: 'List the teams that a realm may run' },
      },
    )
    .post(
      '/add_team',
      ({ body: { realm_id, team }, caller }) =>
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
      {
        user: { grant: { realms: 'write' }, realm: 'operator', scope: 'org' },
        body: RealmTeam,
        data: Listed,
        detail: { summary: 'Put a team on the list of a realm' },
      },
    )
    .post(
      '/remove_team',
      ({ body: { realm_id, team }, caller }) =>
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
      {
        user: { grant: { realms: 'write' }, realm: 'operator' },
        body: RealmTeam,
        data: Listed,
        detail: { summary: 'Remove a team from the list of a realm' },
      },
    )
}

/** What `realms/get` and `realms/update` tell of a realm. */
async function detail(hub: Hub, realm: RealmRow, my_role: Role<'realm'>, db: Db) {
  return { ...realmRecord(realm, my_role), quotas: quotasOf(hub, realm), use: await useOf(hub, db, realm) }
}

const realmRecord = ({ quotas: _, ...realm }: RealmRow, my_role: Role<'realm'>) => ({ ...realm, my_role })

function taken(error: unknown): never {
  if (isDuplicate(error)) throw new CadreError('conflict', 'the org has another realm with this slug')
  throw error
}
