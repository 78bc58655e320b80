// Accounts. An admin, the first start or an invitation creates them. Passwords are stored as argon2id hashes.

import { availableParallelism } from 'node:os'
import { and, eq, inArray, isNull, ne, or } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Hub } from '../core/hub.ts'
import { rotateKeys } from './dispatch-keys.ts'
import { keepOrgOwner, keepRealmAdmin, keepScopeOwner } from './last-leader.ts'

/** Hashes at the same time leave one processor to everything else, and hold little memory. The others wait. */
let free = Math.max(1, availableParallelism() - 1)
const waiting: (() => void)[] = []

async function withHashSlot<T>(hash: () => Promise<T>): Promise<T> {
  if (free > 0) free--
  else await new Promise<void>(go => waiting.push(go))
  try {
    return await hash()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
}

export function hashPassword({ passwordCost }: Hub, password: string): Promise<string> {
  return withHashSlot(() => Bun.password.hash(password, { algorithm: 'argon2id', ...passwordCost }))
}

export function checkPassword(password: string, hash: string): Promise<boolean> {
  return withHashSlot(() => Bun.password.verify(password, hash))
}

/** A hash that no known password has, and that takes as long to check as the others. */
export function decoyHash({ passwordCost: { memoryCost, timeCost } }: Hub): string {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes)).toBase64({ omitPadding: true })
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$${random(32)}$${random(32)}`
}

/** Adds an account. Throws `conflict` when the name is taken. */
export async function addUser(hub: Hub, tx: Db, username: string, passwordHash: string, siteAdmin = false) {
  try {
    const values = { username, password_hash: passwordHash, site_admin: siteAdmin, created_at: hub.now() }
    const [row] = await tx.insert(hub.store.users).values(values).returning()
    return row!
  } catch (error) {
    if (isDuplicate(error)) throw new CadreError('conflict', `the user name ${username} is taken`)
    throw error
  }
}

/** The account with that user name. Throws `not_found` when there is none. */
export async function userNamed({ store }: Hub, tx: Db, username: string) {
  const { users } = store
  const [row] = await tx
    .select()
    .from(users)
    .where(and(eq(users.username, username), isNull(users.deleted_at)))
  if (!row) throw new CadreError('not_found', `there is no user ${username}`)
  return row
}

/** Revokes the sessions of an account, or all its tokens, except the token `except`, which made the request. */
export async function endTokens(
  { store, now }: Hub,
  tx: Db,
  userId: number,
  which: 'sessions' | 'all',
  except?: number,
): Promise<void> {
  const { tokens } = store
  const live = and(
    eq(tokens.user_id, userId),
    isNull(tokens.revoked_at),
    which === 'sessions' ? eq(tokens.kind, 'session') : undefined,
    except === undefined ? undefined : ne(tokens.id, except),
  )
  await tx.update(tokens).set({ revoked_at: now() }).where(live)
}

/**
 * Deletes an account with its tokens, sessions and memberships. Its row stays, so that its name is never given to
 * anybody else. Throws `conflict` while the account is the last owner or admin of something.
 */
export async function deleteUser(hub: Hub, tx: Db, userId: number): Promise<void> {
  const { users, orgs, orgMembers, scopes, scopeMembers, realms, realmMembers } = hub.store
  const inOrgs = tx.select({ id: orgMembers.org_id }).from(orgMembers).where(eq(orgMembers.user_id, userId))
  const inScopes = tx.select({ id: scopeMembers.scope_id }).from(scopeMembers).where(eq(scopeMembers.user_id, userId))
  const inRealms = tx.select({ id: realmMembers.realm_id }).from(realmMembers).where(eq(realmMembers.user_id, userId))
  await keepOrgOwner(hub, tx, inArray(orgs.id, inOrgs), userId)
  await keepScopeOwner(hub, tx, inArray(scopes.id, inScopes), userId)
  await keepRealmAdmin(hub, tx, inArray(realms.id, inRealms), userId)
  await tx.delete(orgMembers).where(eq(orgMembers.user_id, userId))
  await tx.delete(scopeMembers).where(eq(scopeMembers.user_id, userId))
  await tx.delete(realmMembers).where(eq(realmMembers.user_id, userId))
  await endTokens(hub, tx, userId, 'all')
  const gone = { password_hash: '', site_admin: false, suspended_at: hub.now(), deleted_at: hub.now() }
  await tx.update(users).set(gone).where(eq(users.id, userId))
}

/** Adds an org with its first owner and its dispatch key. */
export async function addOrg(hub: Hub, tx: Db, org: { slug: string; display_name: string }, ownerId: number) {
  const { orgs, orgMembers } = hub.store
  try {
    const [row] = await tx
      .insert(orgs)
      .values({ ...org, created_at: hub.now() })
      .returning()
    await tx.insert(orgMembers).values({ org_id: row!.id, user_id: ownerId, role: 'owner' })
    await rotateKeys(hub, tx, row!.id)
    return row!
  } catch (error) {
    if (isDuplicate(error)) throw new CadreError('conflict', `the org ${org.slug} already exists`)
    throw error
  }
}

/** Adds a scope with its owner. Throws `conflict` when the slug is in use or belonged to a scope that was deleted. */
export async function addScope(
  hub: Hub,
  tx: Db,
  scope: { org_id: number; slug: string; display_name: string },
  userId: number,
) {
  const { scopes, scopeSlugs, scopeMembers } = hub.store
  const { slug } = scope
  const [there] = await tx.select({ id: scopes.id }).from(scopes).where(eq(scopes.slug, slug))
  if (there) throw new CadreError('conflict', `the scope @${slug} already exists`)
  try {
    await tx.insert(scopeSlugs).values({ slug })
    const [row] = await tx
      .insert(scopes)
      .values({ ...scope, created_at: hub.now() })
      .returning()
    await tx.insert(scopeMembers).values({ scope_id: row!.id, user_id: userId, role: 'owned' })
    return row!
  } catch (error) {
    if (!isDuplicate(error)) throw error
    const why = 'its packages may still be named somewhere, so its slug is never given again; choose another'
    throw new CadreError('conflict', `the scope @${slug} exists or was deleted: ${why}`)
  }
}

/** Adds a realm with its first admin, who thereby becomes a member of the org. */
export async function addRealm(
  hub: Hub,
  tx: Db,
  realm: { org_id: number; slug: string; name: string },
  userId: number,
) {
  const { realms, realmMembers, orgMembers } = hub.store
  try {
    const [row] = await tx
      .insert(realms)
      .values({ id: crypto.randomUUID(), ...realm, created_at: hub.now() })
      .returning()
    await tx.insert(realmMembers).values({ realm_id: row!.id, user_id: userId, role: 'admin' })
    await tx.insert(orgMembers).values({ org_id: realm.org_id, user_id: userId, role: 'member' }).onConflictDoNothing()
    return row!
  } catch (error) {
    if (isDuplicate(error)) throw new CadreError('conflict', `the org already has a realm ${realm.slug}`)
    throw error
  }
}

/**
 * Gives a database without a site admin the first account, which is one, and an org, a scope and a realm of the same name.
 * Returns the password when it was generated here, and null when there was nothing to do or the password was given.
 */
export async function firstStart(hub: Hub, admin: { username: string; password?: string | undefined }) {
  const { users } = hub.store
  // Commands may have added accounts before, but without a site admin nobody could manage the hub.
  const needsAdmin = async (db: Db) => {
    const inTheWay = or(users.site_admin, eq(users.username, admin.username))
    return (await db.select().from(users).where(inTheWay).limit(1)).length === 0
  }
  if (!(await needsAdmin(hub.store.db))) return null
  const { username } = admin
  const password = admin.password ?? Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString('base64url')
  const hash = await hashPassword(hub, password)
  const made = await hub.store.write(async tx => {
    if (!(await needsAdmin(tx))) return false
    const user = await addUser(hub, tx, username, hash, true)
    const slug = username.replaceAll(/[._]/g, '-')
    const org = await addOrg(hub, tx, { slug, display_name: username }, user.id)
    await addScope(hub, tx, { org_id: org.id, slug, display_name: username }, user.id)
    await addRealm(hub, tx, { org_id: org.id, slug, name: username }, user.id)
    return true
  })
  return made && admin.password === undefined ? password : null
}
