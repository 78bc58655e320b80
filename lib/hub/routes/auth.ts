// The routes for tokens, and the route that says whose token is calling.

import { desc, eq, inArray } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { isNested } from '../../http/nested.ts'
import { ReadySuccess } from '../../http/reply.ts'
import { resource } from '../../http/resource.ts'
import { GenerateToken, GetAccessList, ListTokens, RevokeToken, RotateToken, Whoami } from '../../wire/calls/auth.ts'
import { type Grant, grantOf, realmGrant, within } from '../../wire/grants.ts'
import { page } from '../../wire/page.ts'
import { accessList } from '../access/access-list.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { onlyRealm } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { mintToken, realmsOfTokens, renewSecret, tokenRecords } from '../access/tokens.ts'
import { iso } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'

export function auth(hub: Hub) {
  const { store } = hub
  const { tokens, tokenRealms, realms } = store

  return resource('auth', hubKit(hub), [
    answer(GenerateToken, async ({ body, caller }) => {
      const { type, name, permissions, realm_ids: realmIds = [], expires_in_days: days } = body
      checkForm(body)
      const grant = type === 'realm' ? realmGrant(realmIds) : permissions ? grantOf(permissions) : caller.token.grant
      if (type === 'user' && permissions) await mustCover(caller, grant)
      const expiresAt = days === undefined ? null : hub.now() + days * 86_400_000
      const { row, token } = await caller.write(async tx => {
        const places = []
        for (const id of realmIds) places.push(await caller.realm(id, 'member', tx))
        const minted = await mintToken(hub, tx, caller.user.id, { type, name, grant, realmIds, expiresAt })
        await recordOf(tx, caller, 'auth/generate_token', minted.row.id, places)
        return minted
      })
      return { id: row.id, name, type, token, realm_ids: realmIds, permissions: grant, expires_at: iso(expiresAt) }
    }),
    answer(ListTokens, async ({ body, caller }) => {
      if (body.realm_id) await caller.realm(body.realm_id)
      const { limit, offset } = page(body)
      const key = `tokens ${caller.user.id} ${body.realm_id ?? ''} ${limit} ${offset}`
      return hub.memo.get(key, async () => {
        const where = body.realm_id ? inArray(tokens.id, tokensOf(body.realm_id)) : eq(tokens.user_id, caller.user.id)
        const rows = await store.db
          .select()
          .from(tokens)
          .where(where)
          .orderBy(desc(tokens.id))
          .limit(limit)
          .offset(offset)
        const found = await tokenRecords(hub, caller.user, rows)
        return new ReadySuccess({ tokens: found, total: await countOf(store.db, tokens, where) })
      })
    }),
    answer(RevokeToken, async ({ body, caller }) => {
      if (body.id !== caller.token.id) caller.mustAllow({ tokens: 'write' })
      const row = await ownToken(caller, body.id, { orOfRealms: true })
      const places = await placesOf(row.id)
      const [revoked] = await caller.write(async tx => {
        const rows = await tx
          .update(tokens)
          .set({ revoked_at: row.revoked_at ?? hub.now() })
          .where(eq(tokens.id, row.id))
          .returning()
        await recordOf(tx, caller, 'auth/revoke_token', row.id, places)
        return rows
      })
      return (await tokenRecords(hub, caller.user, [revoked!]))[0]!
    }),
    answer(RotateToken, async ({ body, caller, request }) => {
      const row = await ownToken(caller, body.id)
      if (row.kind === 'session' && isNested(request)) {
        throw new CadreError('invalid_state', 'a page renews no session, because it must not see one: sign in again')
      }
      if (row.revoked_at !== null) throw new CadreError('invalid_state', `token ${row.id} is revoked; mint a new one`)
      const places = await placesOf(row.id)
      // Whoever learns the new secret can use the token, so its grant must not reach further than the caller's own.
      if (row.id !== caller.token.id && row.type === 'user') await mustCover(caller, row.grant)
      if (!places.every(({ id, org_id }) => caller.reaches({ org_id, realm_id: id }))) {
        throw new CadreError('forbidden', `the token’s grant does not reach every realm of token ${row.id}`)
      }
      const token = await caller.write(async tx => {
        const secret = await renewSecret(hub, tx, row)
        await recordOf(tx, caller, 'auth/rotate_token', row.id, places)
        return secret
      })
      return { ...(await tokenRecords(hub, caller.user, [row]))[0]!, token }
    }),
    answer(Whoami, async ({ body, caller }) => {
      const { type, kind, user: owner, grant, realmIds, expires_at } = caller.token
      const facts = { type, kind, permissions: grant, realm_ids: realmIds, expires_at }
      if (caller.kind === 'realm') return { ...facts, user: null }
      return {
        ...facts,
        name: caller.token.name,
        user: { id: owner.id, username: owner.username },
        ...(body.realm_id && { realm_role: await caller.membership(body.realm_id) }),
      }
    }),
    answer(GetAccessList, async ({ body, caller }) => {
      if (body.realm_id) caller.within(body.realm_id)
      const { daemons } = store
      const daemon = await hub.memo.get(`daemon ${body.daemon_id}`, async () => {
        const [row] = await store.db.select().from(daemons).where(eq(daemons.id, body.daemon_id))
        return row
      })
      if (!daemon || daemon.removed_at !== null) throw new CadreError('not_found', `no daemon ${body.daemon_id}`)
      const bound = daemon.token_id === caller.token.id ? daemon.realm_id : undefined
      const realmId = body.realm_id ?? bound ?? onlyRealm(caller.token.realmIds)
      caller.within(realmId)
      if (daemon.realm_id !== realmId) {
        throw new CadreError('forbidden', `daemon ${body.daemon_id} is not registered in realm ${realmId}`)
      }
      const key = `acl ${realmId} ${body.daemon_id}`
      return hub.memo.get(key, async () => new ReadySuccess(await accessList(hub, realmId, body.daemon_id)))
    }),
  ])

  /** The realms of a realm token. Their admins see in the audit log what happens to the token. */
  function placesOf(id: number) {
    return store.db
      .select({ id: realms.id, org_id: realms.org_id })
      .from(tokenRealms)
      .innerJoin(realms, eq(realms.id, tokenRealms.realm_id))
      .where(eq(tokenRealms.token_id, id))
  }

  async function recordOf(
    tx: Db,
    caller: UserCaller,
    action: string,
    id: number,
    places: { id: string; org_id: number }[],
  ): Promise<void> {
    const entry = { action, target: String(id) }
    if (places.length === 0) return record(hub, tx, caller, entry)
    for (const { id: realm_id, org_id } of places) await record(hub, tx, caller, { ...entry, realm_id, org_id })
  }

  function tokensOf(realmId: string) {
    return store.db.select({ id: tokenRealms.token_id }).from(tokenRealms).where(eq(tokenRealms.realm_id, realmId))
  }

  /**
   * Refuses a grant that reaches further than the caller's own, so that neither minting nor rotating gives anybody more
   * than the caller has.
   */
  async function mustCover(caller: UserCaller, grant: Grant): Promise<void> {
    const listed = Array.isArray(grant.domains.realms) ? grant.domains.realms : []
    const rows = listed.length
      ? await store.db.select({ id: realms.id, org_id: realms.org_id }).from(realms).where(inArray(realms.id, listed))
      : []
    const orgOf = new Map(rows.map(row => [row.id, row.org_id]))
    if (within(grant, caller.token.grant, id => orgOf.get(id))) return
    throw new CadreError('forbidden', 'a token cannot grant more than the token that mints it: narrow `permissions`')
  }

  async function ownToken(caller: UserCaller, id: number, { orOfRealms = false } = {}) {
    const [row] = await store.db.select().from(tokens).where(eq(tokens.id, id))
    if (row?.user_id === caller.user.id) return row
    if (row && orOfRealms) {
      const reach = (await realmsOfTokens(store, store.db, [id])).get(id)!
      const roles = await Promise.all(reach.map(each => caller.realmRole(each)))
      if (roles.includes('admin')) return row
    }
    throw new CadreError('not_found', `you have no token ${id}`)
  }
}

function checkForm({
  type,
  permissions,
  realm_ids,
}: {
  type: string
  permissions?: unknown
  realm_ids?: unknown
}): void {
  const wrong =
    type === 'realm'
      ? permissions !== undefined
        ? { path: '/permissions', message: 'must be absent, because the grant of a realm token is fixed' }
        : realm_ids === undefined
          ? { path: '/realm_ids', message: 'is required for a realm token' }
          : null
      : realm_ids !== undefined
        ? { path: '/realm_ids', message: 'is for realm tokens only; use permissions.domains.realms' }
        : null
  if (wrong) throw new CadreError('invalid_request', `${wrong.path.slice(1)} ${wrong.message}`, { details: [wrong] })
}
