// Tokens: minting, listing, revoking and rotating. The plain text exists only in the reply that creates it.

import { eq, inArray } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { FULL_GRANT, type Grant, highestLevel, reaches } from '../../wire/grants.ts'
import type { Token } from '../../wire/records/hub-records.ts'
import { iso } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { SESSION_MS } from '../core/last-seen.ts'
import type { UserCaller } from './callers.ts'
import { hashSecret, mintSecret } from './token-secrets.ts'

export type TokenRow = Tables['tokens']['$inferSelect']

export interface Minting {
  type: 'user' | 'realm'
  kind?: 'durable' | 'session'
  name: string
  grant: Grant
  realmIds?: readonly string[]
  expiresAt: number | null
}

/** Adds a token of `userId`. The result's `token` is the plain text, which is not stored and cannot be read later. */
export async function mintToken({ store, now }: Hub, tx: Db, userId: number, minting: Minting) {
  const { type, kind = 'durable', name, grant, realmIds = [], expiresAt } = minting
  const token = mintSecret(type, kind)
  const [row] = await tx
    .insert(store.tokens)
    .values({
      user_id: userId,
      type,
      kind,
      name,
      hash: hashSecret(token),
      grant,
      created_at: now(),
      expires_at: expiresAt,
    })
    .returning()
  for (const realm_id of realmIds) await tx.insert(store.tokenRealms).values({ token_id: row!.id, realm_id })
  return { row: row!, token }
}

export function mintSession(hub: Hub, tx: Db, userId: number) {
  const expiresAt = hub.now() + SESSION_MS
  return mintToken(hub, tx, userId, { type: 'user', kind: 'session', name: 'session', grant: FULL_GRANT, expiresAt })
}

/** Replaces the secret of a token. The old secret is invalid immediately. */
export async function renewSecret({ store }: Hub, tx: Db, row: TokenRow): Promise<string> {
  const token = mintSecret(row.type, row.kind)
  await tx
    .update(store.tokens)
    .set({ hash: hashSecret(token) })
    .where(eq(store.tokens.id, row.id))
  return token
}

export async function realmsOfTokens({ tokenRealms }: Store, db: Db, ids: number[]): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>(ids.map(id => [id, []]))
  if (ids.length === 0) return found
  const rows = await db.select().from(tokenRealms).where(inArray(tokenRealms.token_id, ids))
  for (const { token_id, realm_id } of rows) found.get(token_id)!.push(realm_id)
  return found
}

/** The records of a listing. They never contain a secret or a hash. */
export async function tokenRecords({ store }: Hub, owner: UserCaller['user'], rows: TokenRow[]): Promise<Token[]> {
  const { orgs, orgMembers, realms, db } = store
  const realmsOf = await realmsOfTokens(
    store,
    db,
    rows.filter(row => row.type === 'realm').map(row => row.id),
  )
  const listed = [...new Set([...realmsOf.values()].flat())]
  const orgOf = new Map(
    listed.length === 0
      ? []
      : (await db.select({ id: realms.id, org_id: realms.org_id }).from(realms).where(inArray(realms.id, listed))).map(
          row => [row.id, row.org_id] as const,
        ),
  )
  const own = owner.siteAdmin
    ? await db.select({ id: orgs.id }).from(orgs).orderBy(orgs.id)
    : await db
        .select({ id: orgMembers.org_id })
        .from(orgMembers)
        .where(eq(orgMembers.user_id, owner.id))
        .orderBy(orgMembers.org_id)
  return rows.map(row => {
    const realmIds = realmsOf.get(row.id) ?? []
    const org_ids =
      row.type === 'realm'
        ? [...new Set(realmIds.map(id => orgOf.get(id)!))].sort((a, b) => a - b)
        : own.map(({ id }) => id).filter(org_id => reaches(row.grant, { org_id }))
    return {
      id: row.id,
      user_id: row.user_id,
      name: row.name,
      type: row.type,
      kind: row.kind,
      permissions: { org_ids, access: highestLevel(row.grant) ?? 'none' },
      grant: row.grant,
      realm_ids: realmIds,
      created_at: iso(row.created_at)!,
      last_used_at: iso(row.last_used_at),
      expires_at: iso(row.expires_at),
      revoked_at: iso(row.revoked_at),
    }
  })
}
