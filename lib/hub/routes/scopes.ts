// Scopes: the namespaces in which teams are published (`@slug/…`). Each belongs to one org.

import { and, eq } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import {
  AddScopeMember,
  CreateScope,
  DeleteScope,
  GetScope,
  ListScopes,
  RemoveScopeMember,
} from '../../wire/calls/scopes.ts'
import { page } from '../../wire/page.ts'
import { addScope, userNamed } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { hubKit } from '../access/kit.ts'
import { keepScopeOwner } from '../access/last-leader.ts'
import { scopesReached } from '../access/token-reach.ts'
import { checkSlug, orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'

export function scopes(hub: Hub) {
  const { store } = hub
  const { scopes, scopeMembers, orgMembers, packages, users } = store

  return resource('scopes', hubKit(hub), [
    answer(CreateScope, ({ body, caller }) =>
      caller.write(async tx => {
        const org = await caller.org(orgId(body.org_id), 'admin', tx)
        checkSlug(body.slug, 'scope')
        const { slug, display_name = slug } = body
        const scope = await addScope(hub, tx, { org_id: org.id, slug, display_name }, caller.user.id)
        await record(hub, tx, caller, { action: 'scopes/create', target: slug, org_id: org.id })
        return { ...scope, my_role: 'owned' }
      }),
    ),
    answer(ListScopes, async ({ body, caller }) => {
      const inOrg = body.org_id === undefined ? undefined : eq(scopes.org_id, orgId(body.org_id))
      const where = and(inOrg, scopesReached(store, caller))
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ scope: scopes, org: orgMembers.role, own: scopeMembers.role })
        .from(scopes)
        .leftJoin(orgMembers, and(eq(orgMembers.org_id, scopes.org_id), eq(orgMembers.user_id, caller.user.id)))
        .leftJoin(scopeMembers, and(eq(scopeMembers.scope_id, scopes.id), eq(scopeMembers.user_id, caller.user.id)))
        .where(where)
        .orderBy(scopes.slug)
        .limit(limit)
        .offset(offset)
      return {
        scopes: rows.map(({ scope, ...memberships }) => ({ ...scope, my_role: caller.roleIn('scope', memberships)! })),
        total: await countOf(store.db, scopes, where),
      }
    }),
    answer(GetScope, async ({ body, caller }) => {
      const { role, ...scope } = await caller.scope({ id: body.scope_id })
      const members = await store.db
        .select({ user_id: users.id, username: users.username, role: scopeMembers.role })
        .from(scopeMembers)
        .innerJoin(users, eq(users.id, scopeMembers.user_id))
        .where(eq(scopeMembers.scope_id, scope.id))
        .orderBy(users.username)
      return { ...scope, my_role: role, members }
    }),
    answer(DeleteScope, ({ body, caller }) =>
      caller.write(async tx => {
        const scope = await caller.scope({ id: body.scope_id }, 'owned', tx)
        const [published] = await tx
          .select({ id: packages.id })
          .from(packages)
          .where(eq(packages.scope_id, scope.id))
          .limit(1)
        if (published) {
          throw new CadreError(
            'conflict',
            `@${scope.slug} has published teams, which runs may be pinned to, so it cannot be deleted`,
          )
        }
        await tx.delete(scopes).where(eq(scopes.id, scope.id))
        await record(hub, tx, caller, { action: 'scopes/delete', target: scope.slug, org_id: scope.org_id })
        return { id: scope.id }
      }),
    ),
    answer(AddScopeMember, ({ body: { scope_id, username, role = 'member' }, caller }) =>
      caller.write(async tx => {
        const scope = await caller.scope({ id: scope_id }, 'owned', tx)
        const account = await userNamed(hub, tx, username)
        if (role !== 'owned') await keepScopeOwner(hub, tx, eq(scopes.id, scope.id), account.id)
        await tx
          .insert(scopeMembers)
          .values({ scope_id, user_id: account.id, role })
          .onConflictDoUpdate({ target: [scopeMembers.scope_id, scopeMembers.user_id], set: { role } })
        const target = `${username} as ${role} of @${scope.slug}`
        await record(hub, tx, caller, { action: 'scopes/add_member', target, org_id: scope.org_id })
        return { id: account.id, scope_id, user_id: account.id, username, role }
      }),
    ),
    answer(RemoveScopeMember, ({ body: { scope_id, username }, caller }) =>
      caller.write(async tx => {
        const scope = await caller.scope({ id: scope_id }, 'owned', tx)
        const account = await userNamed(hub, tx, username)
        await keepScopeOwner(hub, tx, eq(scopes.id, scope.id), account.id)
        const gone = await tx
          .delete(scopeMembers)
          .where(and(eq(scopeMembers.scope_id, scope_id), eq(scopeMembers.user_id, account.id)))
          .returning()
        if (gone.length === 0) throw new CadreError('not_found', `${username} is not a member of @${scope.slug}`)
        const target = `${username} of @${scope.slug}`
        await record(hub, tx, caller, { action: 'scopes/remove_member', target, org_id: scope.org_id })
        return { id: account.id, scope_id, user_id: account.id, username }
      }),
    ),
  ])
}
