// Accounts: made by an admin, by the first start, or by an invitation. Passwords are kept as argon2id.

import { and, eq, isNull, ne } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { Hub } from './hub.ts'
import { rotateKeys } from './keys.ts'

/** The hash of a password; a fraction of a second of work on purpose. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, 'argon2id')
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

/** Throws `not_found`. */
export async function userNamed({ store }: Hub, tx: Db, username: string) {
  const [row] = await tx.select().from(store.users).where(eq(store.users.username, username))
  if (!row) throw new CadreError('not_found', `no user ${username}`)
  return row
}

/** Whoever signed in with the former password is out, but for the session `except`, which changes it. */
export async function endSessions({ store, now }: Hub, tx: Db, userId: number, except?: number): Promise<void> {
  const { tokens } = store
  const live = and(eq(tokens.user_id, userId), eq(tokens.kind, 'session'), isNull(tokens.revoked_at))
  await tx
    .update(tokens)
    .set({ revoked_at: now() })
    .where(and(live, except === undefined ? undefined : ne(tokens.id, except)))
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
    if (isDuplicate(error)) throw new CadreError('conflict', `the org ${org.slug} exists already`)
    throw error
  }
}

export async function addScope(
  hub: Hub,
  tx: Db,
  scope: { org_id: number; slug: string; display_name: string },
  userId: number,
) {
  const { scopes, scopeMembers } = hub.store
  try {
    const [row] = await tx
      .insert(scopes)
      .values({ ...scope, created_at: hub.now() })
      .returning()
    await tx.insert(scopeMembers).values({ scope_id: row!.id, user_id: userId, role: 'owned' })
    return row!
  } catch (error) {
    if (isDuplicate(error)) throw new CadreError('conflict', `the scope @${scope.slug} exists already`)
    throw error
  }
}

/** Adds a realm with its first admin, who is a member of the org from then on. */
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
    if (isDuplicate(error)) throw new CadreError('conflict', `the org has a realm ${realm.slug} already`)
    throw error
  }
}

/**
 * On an empty database: the first account, a site admin, with an org, a scope and a realm of its own name.
 * Returns the password when it was made here; null when nothing had to be done or the password was given.
 */
export async function firstStart(hub: Hub, admin: { username: string; password?: string | undefined }) {
  const isEmpty = async (db: Db) => (await db.select().from(hub.store.users).limit(1)).length === 0
  if (!(await isEmpty(hub.store.db))) return null
  const { username } = admin
  const password = admin.password ?? Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString('base64url')
  const hash = await hashPassword(password)
  const made = await hub.store.write(async tx => {
    if (!(await isEmpty(tx))) return false
    const user = await addUser(hub, tx, username, hash, true)
    const slug = username.replaceAll(/[._]/g, '-')
    const org = await addOrg(hub, tx, { slug, display_name: username }, user.id)
    await addScope(hub, tx, { org_id: org.id, slug, display_name: username }, user.id)
    await addRealm(hub, tx, { org_id: org.id, slug, name: username }, user.id)
    return true
  })
  return made && admin.password === undefined ? password : null
}
