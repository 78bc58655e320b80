// The token of a request: who it belongs to and what it grants, and whether that is still so when something is written.

import { and, eq, sql } from 'drizzle-orm'
import type { Db } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { Incoming } from '../http/admission.ts'
import type { Grant } from '../wire/grants.ts'
import { type Role, roleIn } from './decision.ts'
import type { Hub } from './hub.ts'
import { hashSecret, isSecretForm, PREFIX } from './token-secrets.ts'

export interface TokenFacts {
  id: number
  /** Of the secret that came with the request, as it is stored. A rotation changes it. */
  hash: string
  type: 'user' | 'realm'
  kind: 'durable' | 'session'
  grant: Grant
  expires_at: number | null
  user: { id: number; username: string; siteAdmin: boolean }
  /**
   * The realms of a realm token, and of these the ones where its minter is still a member, with the org and the role
   * there.
   */
  realmIds: string[]
  live: { realm_id: string; org_id: number; role: Role<'realm'> }[]
}

/**
 * Writes for a token. It is looked at again in the transaction, so that nothing is written after its revocation, nor by
 * a site admin who was demoted: what happens at the same time comes wholly before that, or is refused.
 */
export function writeWhileLive<T>(
  { store, now }: Hub,
  { id, hash, user }: TokenFacts,
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  const { tokens, users } = store
  return store.write(async tx => {
    const found = tx
      .select({
        hash: tokens.hash,
        expires_at: tokens.expires_at,
        revoked_at: tokens.revoked_at,
        suspended_at: users.suspended_at,
        site_admin: users.site_admin,
      })
      .from(tokens)
      .innerJoin(users, eq(users.id, tokens.user_id))
      .where(eq(tokens.id, id))
    // The account is not held, because whoever changes it would wait for every write of its tokens.
    const [row] = await store.hold(found, tokens)
    if (!row || row.hash !== hash || row.revoked_at !== null || row.suspended_at !== null) throw invalid()
    if (row.expires_at !== null && row.expires_at <= now()) throw invalid()
    if (user.siteAdmin && !row.site_admin) throw new CadreError('forbidden', 'you are no site admin any more')
    return work(tx)
  })
}

/** Returns the function that finds the token of a request. */
export function authenticator(hub: Hub): (incoming: Incoming) => Promise<TokenFacts> {
  const { store, now } = hub

  const find = store.db
    .select({
      id: store.tokens.id,
      type: store.tokens.type,
      kind: store.tokens.kind,
      grant: store.tokens.grant,
      expires_at: store.tokens.expires_at,
      revoked_at: store.tokens.revoked_at,
      user_id: store.users.id,
      username: store.users.username,
      site_admin: store.users.site_admin,
      suspended_at: store.users.suspended_at,
    })
    .from(store.tokens)
    .innerJoin(store.users, eq(store.users.id, store.tokens.user_id))
    .where(eq(store.tokens.hash, sql.placeholder('hash')))
    .prepare()

  async function load(hash: string): Promise<TokenFacts | null> {
    const [row] = await find.execute({ hash })
    if (!row || row.revoked_at !== null || row.suspended_at !== null) return null
    const user = { id: row.user_id, username: row.username, siteAdmin: row.site_admin }
    const reach = row.type === 'realm' ? await liveRealms(store.db, row.id, user) : { realmIds: [], live: [] }
    return {
      id: row.id,
      hash,
      type: row.type,
      kind: row.kind,
      grant: row.grant,
      expires_at: row.expires_at,
      user,
      ...reach,
    }
  }

  async function liveRealms(db: Db, tokenId: number, user: TokenFacts['user']) {
    const { tokenRealms, realms, orgMembers, realmMembers } = store
    const rows = await db
      .select({ realm_id: realms.id, org_id: realms.org_id, org: orgMembers.role, own: realmMembers.role })
      .from(tokenRealms)
      .innerJoin(realms, eq(realms.id, tokenRealms.realm_id))
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, user.id)))
      .leftJoin(realmMembers, and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, user.id)))
      .where(eq(tokenRealms.token_id, tokenId))
    return {
      realmIds: rows.map(row => row.realm_id),
      live: rows.flatMap(({ realm_id, org_id, org, own }) => {
        const role = roleIn('realm', { siteAdmin: user.siteAdmin, org, own })
        return role === null ? [] : [{ realm_id, org_id, role }]
      }),
    }
  }

  /**
   * The token of a request. A missing, malformed, unknown, revoked, expired or suspended token gives the same status.
   */
  async function authenticate({ bearer }: Incoming): Promise<TokenFacts> {
    if (bearer === null) throw new CadreError('unauthorized', 'this call needs a token: Authorization: Bearer <token>')
    if (!isSecretForm(bearer) || bearer.startsWith(PREFIX.invitation)) throw invalid()
    const hash = hashSecret(bearer)
    const token = await hub.memo.get(`token ${hash}`, () => load(hash))
    if (!token || (token.expires_at !== null && token.expires_at <= now())) throw invalid()
    hub.lastSeen.token(token.id)
    return token
  }

  return authenticate
}

const invalid = () => new CadreError('unauthorized', 'the token is not valid: unknown, revoked or expired')
