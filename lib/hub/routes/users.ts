// Accounts. Site admins create them; there is no public sign-up.

import { and, eq, exists, inArray, isNull, or, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import {
  ChangePassword,
  CreateUser,
  DeleteUser,
  GetUser,
  ListUsers,
  SuspendUser,
  UpdateUser,
} from '../../wire/calls/users.ts'
import { page } from '../../wire/page.ts'
import { addUser, checkPassword, deleteUser, endTokens, hashPassword } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { hubKit } from '../access/kit.ts'
import { ownedBy } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'

export function users(hub: Hub) {
  const { store } = hub
  const { users, orgMembers } = store
  const present = isNull(users.deleted_at)

  return resource('users', hubKit(hub), [
    answer(CreateUser, async ({ body: { username, password, site_admin = false }, caller }) => {
      if (site_admin) caller.mustAllow({ users: 'admin' })
      const hash = await hashPassword(hub, password)
      return caller.write(async tx => {
        const row = await addUser(hub, tx, username, hash, site_admin)
        await record(hub, tx, caller, {
          action: 'users/create',
          target: site_admin ? `${username} as site admin` : username,
        })
        return userRecord(row)
      })
    }),
    answer(ListUsers, async ({ body }) => {
      const { limit, offset } = page(body)
      const rows = await store.db
        .select()
        .from(users)
        .where(present)
        .orderBy(users.username)
        .limit(limit)
        .offset(offset)
      return { users: rows.map(userRecord), total: await countOf(store.db, users, present) }
    }),
    answer(GetUser, async ({ body, caller }) => {
      const own = body.user_id === undefined && body.username === undefined
      const given = own ? { user_id: caller.user.id } : body
      const { id, siteAdmin } = caller.user
      const seen = siteAdmin ? undefined : or(eq(users.id, id), exists(sharedOrg(id)))
      // One statement finds the account and checks that the caller may see it, so that the time of the reply does not
      // reveal whether a hidden account exists.
      const [row] = await store.db
        .select()
        .from(users)
        .where(and(named(given), seen))
      if (!row) throw missing(body)
      if (row.id === id || siteAdmin) return userRecord(row)
      return { id: row.id, username: row.username, created_at: row.created_at }
    }),
    answer(UpdateUser, async ({ body: { user_id, password, revoke_tokens = false, ...changes }, caller }) => {
      // Whoever sets a password can sign in, and a session may do more than this token: also with one's own account.
      const takesOver = password !== undefined || (revoke_tokens && user_id !== caller.user.id)
      if (takesOver || changes.site_admin !== undefined) caller.mustAllow({ users: 'admin' })
      const hash = password === undefined ? {} : { password_hash: await hashPassword(hub, password) }
      return caller.write(async tx => {
        const row = await find(tx, { user_id })
        if (changes.site_admin === false) await keepASiteAdmin(tx, row.id)
        if (changes.username !== undefined && changes.username !== row.username) {
          const [other] = await tx.select().from(users).where(eq(users.username, changes.username))
          if (other) throw new CadreError('conflict', `the user name ${changes.username} is taken`)
        }
        const set = { ...changes, ...hash }
        if (Object.keys(set).length === 0 && !revoke_tokens) return userRecord(row)
        // An update has to set at least one column, so the name is set to what it is when nothing else changes.
        const [updated] = await tx
          .update(users)
          .set({ username: row.username, ...set })
          .where(eq(users.id, row.id))
          .returning()
        if (revoke_tokens) await endTokens(hub, tx, row.id, 'all', caller.token.id)
        else if (password !== undefined) await endTokens(hub, tx, row.id, 'sessions', caller.token.id)
        const what = [
          changes.username !== undefined && changes.username !== row.username && `renamed to ${changes.username}`,
          changes.site_admin === true && !row.site_admin && 'made a site admin',
          changes.site_admin === false && row.site_admin && 'no longer a site admin',
          password !== undefined && 'password set',
          revoke_tokens && 'tokens revoked',
        ].filter(each => each !== false)
        const target = what.length === 0 ? row.username : `${row.username}: ${what.join(', ')}`
        await record(hub, tx, caller, { action: 'users/update', target })
        return userRecord(updated!)
      })
    }),
    answer(SuspendUser, ({ body: { user_id, suspended = true }, caller }) =>
      caller.write(async tx => {
        const row = await find(tx, { user_id })
        if (suspended) await keepASiteAdmin(tx, row.id)
        const set = { suspended_at: suspended ? (row.suspended_at ?? hub.now()) : null }
        const [updated] = await tx.update(users).set(set).where(eq(users.id, row.id)).returning()
        await record(hub, tx, caller, { action: 'users/suspend', target: `${row.username} ${suspended}` })
        const owns = await ownedBy(store, tx, { userId: row.id, realms: undefined, now: hub.now() })
        return { ...userRecord(updated!), owns }
      }),
    ),
    answer(DeleteUser, ({ body: { user_id }, caller }) =>
      caller.write(async tx => {
        const row = await find(tx, { user_id })
        await keepASiteAdmin(tx, row.id)
        await deleteUser(hub, tx, row.id)
        await record(hub, tx, caller, { action: 'users/delete', target: row.username })
        return { id: row.id }
      }),
    ),
    answer(ChangePassword, async ({ body, caller }) => {
      const { id, username } = caller.user
      const row = await find(store.db, { user_id: id })
      const right = await hub.signInLimit.attempt(username, caller.address(), () =>
        checkPassword(body.password, row.password_hash),
      )
      if (!right) {
        const entry = { action: 'users/change_password_failed', target: username }
        await caller.write(tx => record(hub, tx, caller, entry))
        throw wrongPassword()
      }
      const password_hash = await hashPassword(hub, body.new_password)
      return caller.write(async tx => {
        // The condition keeps a change that somebody else made after the check.
        const same = and(eq(users.id, id), eq(users.password_hash, row.password_hash))
        const changed = await tx.update(users).set({ password_hash }).where(same).returning({ id: users.id })
        if (changed.length === 0) throw wrongPassword()
        await endTokens(hub, tx, id, body.revoke_tokens ? 'all' : 'sessions', caller.token.id)
        await record(hub, tx, caller, {
          action: 'users/change_password',
          target: body.revoke_tokens ? `${username}: tokens revoked` : username,
        })
        return userRecord(row)
      })
    }),
  ])

  async function find(tx: Db, { user_id }: { user_id: number }) {
    const [row] = await tx.select().from(users).where(named({ user_id }))
    if (!row) throw missing({ user_id })
    return row
  }

  /** The condition that finds the account with the given id and name; either may be absent. */
  function named({ user_id, username }: { user_id?: number | undefined; username?: string | undefined }) {
    return and(
      user_id === undefined ? undefined : eq(users.id, user_id),
      username === undefined ? undefined : eq(users.username, username),
      present,
    )
  }

  /** A subquery for memberships of the outer query's account in the orgs of `userId`. */
  function sharedOrg(userId: number) {
    const mine = store.db.select({ id: orgMembers.org_id }).from(orgMembers).where(eq(orgMembers.user_id, userId))
    const theirs = sql`${orgMembers}.${sql.identifier('user_id')} = ${users}.${sql.identifier('id')}`
    return store.db
      .select({ one: sql`1` })
      .from(orgMembers)
      .where(and(theirs, inArray(orgMembers.org_id, mine)))
  }

  async function keepASiteAdmin(tx: Db, userId: number): Promise<void> {
    const admins = (await tx.select().from(users).where(eq(users.site_admin, true))).filter(row => !row.suspended_at)
    if (admins.length !== 1 || admins[0]!.id !== userId) return
    throw new CadreError(
      'conflict',
      'the last site admin cannot be suspended, deleted or demoted; make another first, with users/update',
    )
  }
}

const wrongPassword = () => new CadreError('forbidden', 'the present password is wrong')

function missing({ user_id, username }: { user_id?: number | undefined; username?: string | undefined }) {
  return new CadreError('not_found', `no user ${username ?? user_id} that you may see`)
}

function userRecord({ password_hash: _, deleted_at: __, ...row }: Tables['users']['$inferSelect']) {
  return row
}
