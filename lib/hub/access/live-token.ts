// The token of a request: who it belongs to and what it grants, and whether that is still so when something is written.

import { and, eq, isNull, lte } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { Incoming } from '../../http/admission.ts'
import type { Role } from '../../wire/access.ts'
import type { Grant } from '../../wire/grants.ts'
import { CALLER_HEADER } from '../../wire/protocol.ts'
import type { Hub } from '../core/hub.ts'
import { roleIn } from './decision.ts'
import { hashSecret, isSecretForm, PREFIX } from './token-secrets.ts'

export interface TokenFacts {
  id: number
  name: string
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
 * a site admin who was demoted: what happens at the same time comes wholly before that, or is refused. The work does not
 * wait for the look, because over a distance that would take another round trip; it is undone when the token has ended.
 */
export function writeWhileLive<T>(hub: Hub, token: TokenFacts, work: (tx: Db) => Promise<T>): Promise<T> {
  return hub.store.write(async tx => {
    const working = async () => work(tx)
    const [, result] = await together([refuseEnded(hub, tx, token), working()])
    return result
  })
}

/** Throws 401 when the token has ended since the request was admitted, and 403 when its owner was demoted. */
export async function refuseEnded(hub: Hub, tx: Db, { id, hash, user, kind }: TokenFacts): Promise<void> {
  const [row] = await tokenNow(hub.store, tx, { id })
  if (!row || row.hash !== hash || row.revoked_at !== null || row.suspended_at !== null) throw invalid()
  if (hasExpired(hub, row)) {
    if (kind === 'session') void endSession(hub, id)
    throw invalid()
  }
  if (user.siteAdmin && !row.site_admin) throw new CadreError('forbidden', 'you are not a site admin any more')
}

const tokenNow = prepared((store, db, slot: Slot<'id'>) => {
  const { tokens, users } = store
  const { hash, expires_at, revoked_at } = tokens
  const { suspended_at, site_admin } = users
  const found = db
    .select({ hash, expires_at, revoked_at, suspended_at, site_admin })
    .from(tokens)
    .innerJoin(users, eq(users.id, tokens.user_id))
    .where(eq(tokens.id, slot('id')))
  // The account is not held, because whoever changes it would wait for every write of its tokens.
  return store.hold(found, tokens)
})

/** Whether a token has expired by the clock as it stands. A token that has may live again when the clock is set back. */
const hasExpired = ({ now }: Hub, { expires_at }: Pick<TokenFacts, 'expires_at'>): boolean =>
  expires_at !== null && expires_at <= now()

/** A session that was found expired stays ended, whatever becomes of the clock. */
async function endSession({ store, log, now }: Hub, id: number): Promise<void> {
  const { tokens } = store
  const open = and(eq(tokens.id, id), isNull(tokens.revoked_at), lte(tokens.expires_at, now()))
  try {
    await store.write(tx => tx.update(tokens).set({ revoked_at: tokens.expires_at }).where(open))
  } catch (error) {
    log.warn('the end of a session could not be recorded', { error: messageOf(error).split('\n', 1)[0] })
  }
}

/** Returns the function that finds the token of a request. It returns no promise when it need not ask the database. */
export function authenticator(hub: Hub): (incoming: Incoming) => TokenFacts | Promise<TokenFacts> {
  const { store } = hub

  async function load(secret: string, hash: string): Promise<TokenFacts | null> {
    if (!isSecretForm(secret) || secret.startsWith(PREFIX.invitation)) throw invalid()
    const rows = await tokenWith(store, store.db, { hash })
    const [row] = rows
    if (!row || row.revoked_at !== null || row.suspended_at !== null) return null
    const user = { id: row.user_id, username: row.username, siteAdmin: row.site_admin }
    const reach = rows.flatMap(({ realm_id, org_id, org, own }) => {
      if (realm_id === null || org_id === null) return []
      return [{ realm_id, org_id, role: roleIn('realm', { siteAdmin: user.siteAdmin, org, own }) }]
    })
    return {
      id: row.id,
      name: row.name,
      hash,
      type: row.type,
      kind: row.kind,
      grant: row.grant,
      expires_at: row.expires_at,
      user,
      realmIds: reach.map(({ realm_id }) => realm_id),
      live: reach.flatMap(({ role, ...realm }) => (role === null ? [] : [{ ...realm, role }])),
    }
  }

  /**
   * The token of a request. A missing, malformed, unknown, revoked, expired or suspended token gives the same status.
   */
  function authenticate({ bearer, request }: Incoming): TokenFacts | Promise<TokenFacts> {
    if (bearer === null) throw new CadreError('unauthorized', 'this call needs a token: Authorization: Bearer <token>')
    // The form of a token that is known has been checked. No other key of the memo looks like a hash.
    const hash = hashSecret(bearer)
    const token = hub.memo.get(hash, () => load(bearer, hash))
    return token instanceof Promise ? token.then(found => live(found, request)) : live(token, request)
  }

  function live(token: TokenFacts | null, request: Request): TokenFacts | Promise<TokenFacts> {
    if (!token) hub.lineage.noteUnknownToken(request.headers.get(CALLER_HEADER))
    if (!token) throw invalid()
    if (hasExpired(hub, token)) {
      if (token.kind !== 'session') throw invalid()
      return endSession(hub, token.id).then(() => {
        throw invalid()
      })
    }
    hub.lastSeen.noteTokenUse(token.id)
    return token
  }

  return authenticate
}

const invalid = () => new CadreError('unauthorized', 'the token is not valid: unknown, revoked or expired')

/** A token with its owner: a row for each realm that it grants, and one if it grants none. */
const tokenWith = prepared((store, db, slot: Slot<'hash'>) => {
  const { tokens, users, tokenRealms, realms, orgMembers, realmMembers } = store
  const { id, name, type, kind, grant, expires_at, revoked_at } = tokens
  const { username, site_admin, suspended_at } = users
  const ofOrg = and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, users.id))
  const ofRealm = and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, users.id))
  return db
    .select({
      id,
      name,
      type,
      kind,
      grant,
      expires_at,
      revoked_at,
      user_id: users.id,
      username,
      site_admin,
      suspended_at,
      realm_id: realms.id,
      org_id: realms.org_id,
      org: orgMembers.role,
      own: realmMembers.role,
    })
    .from(tokens)
    .innerJoin(users, eq(users.id, tokens.user_id))
    .leftJoin(tokenRealms, eq(tokenRealms.token_id, tokens.id))
    .leftJoin(realms, eq(realms.id, tokenRealms.realm_id))
    .leftJoin(orgMembers, ofOrg)
    .leftJoin(realmMembers, ofRealm)
    .where(eq(tokens.hash, slot('hash')))
})
