// The members of a realm. They join by invitation, or an admin of the realm adds them.

import { and, desc, eq, gt, inArray, isNull, type SQL } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import {
  AcceptInvitation,
  AddRealmMember,
  Invite,
  ListInvitations,
  ListRealmMembers,
  RemoveRealmMember,
  RevokeInvitation,
} from '../../wire/calls/realm-members.ts'
import { page } from '../../wire/page.ts'
import type { RealmRole } from '../../wire/records/hub-records.ts'
import { addUser, hashPassword, userNamed } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { hubKit } from '../access/kit.ts'
import { keepRealmAdmin } from '../access/last-leader.ts'
import { hasRole, ownedBy } from '../access/owners.ts'
import { hashSecret, mintSecret } from '../access/token-secrets.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'

const INVITATION_MS = 14 * 86_400_000

export function realmMembers(hub: Hub) {
  const { store } = hub
  const { realms, realmMembers, orgMembers, users, invitations } = store

  return resource('realm-members', hubKit(hub), [
    answer(ListRealmMembers, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const where = eq(realmMembers.realm_id, body.realm_id)
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ user_id: users.id, username: users.username, role: realmMembers.role })
        .from(realmMembers)
        .innerJoin(users, eq(users.id, realmMembers.user_id))
        .where(where)
        .orderBy(users.username)
        .limit(limit)
        .offset(offset)
      return { members: rows, total: await countOf(store.db, realmMembers, where) }
    }),
    answer(Invite, ({ body: { realm_id, role = 'member', username }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        const token = mintSecret('invitation')
        const row = {
          id: crypto.randomUUID(),
          realm_id,
          role,
          username: username ?? null,
          hash: hashSecret(token),
          created_by: caller.user.id,
          created_at: hub.now(),
          expires_at: hub.now() + INVITATION_MS,
        }
        await tx.insert(invitations).values(row)
        const target = `${username ?? 'anyone'} as ${role}`
        const entry = { action: 'realms/invite', target, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        return { id: row.id, realm_id, role, username: row.username, token, expires_at: row.expires_at }
      }),
    ),
    answer(AcceptInvitation, async ({ body: { token, username, password }, caller }) => {
      const signedIn = caller.kind === 'user' ? caller.user : null
      if (signedIn && (username !== undefined || password !== undefined)) {
        throw new CadreError(
          'invalid_request',
          'either sign in, or give the user name and password of a new account, not both',
        )
      }
      if (!signedIn && (username === undefined || password === undefined)) {
        throw new CadreError('invalid_request', 'sign in, or give the user name and password of a new account', {
          details: ['username', 'password'].map(name => ({
            path: `/${name}`,
            message: 'is required without a token',
          })),
        })
      }
      // Hashing is expensive on purpose, so the invitation is checked before.
      await openInvitation(store.db, token, signedIn?.username ?? username!)
      const passwordHash = password === undefined ? '' : await hashPassword(hub, password)
      return caller.write(async tx => {
        const invitation = await openInvitation(tx, token, signedIn?.username ?? username!)
        const account = signedIn ?? (await addUser(hub, tx, username!, passwordHash))
        const [realm] = await tx.select().from(realms).where(eq(realms.id, invitation.realm_id))
        await join(tx, realm!, account.id, invitation.role, { keepHigher: true })
        await tx.update(invitations).set({ accepted_at: hub.now() }).where(eq(invitations.id, invitation.id))
        await record(hub, tx, caller, {
          action: 'realms/accept_invite',
          target: account.username,
          org_id: realm!.org_id,
          realm_id: realm!.id,
        })
        const { id, username: name } = account
        return { id: realm!.id, realm_id: realm!.id, role: invitation.role, user: { id, username: name } }
      })
    }),
    answer(AddRealmMember, ({ body: { realm_id, username, role }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        const account = await userNamed(hub, tx, username)
        if (role !== 'admin') await keepRealmAdmin(hub, tx, eq(realms.id, realm.id), account.id)
        await join(tx, realm, account.id, role)
        const target = `${username} as ${role}`
        await record(hub, tx, caller, { action: 'realms/add_member', target, org_id: realm.org_id, realm_id })
        return { id: account.id, realm_id, user_id: account.id, username, role }
      }),
    ),
    answer(RemoveRealmMember, ({ body: { realm_id, username }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        const account = await userNamed(hub, tx, username)
        await keepRealmAdmin(hub, tx, eq(realms.id, realm.id), account.id)
        const gone = await tx
          .delete(realmMembers)
          .where(and(eq(realmMembers.realm_id, realm_id), eq(realmMembers.user_id, account.id)))
          .returning()
        if (gone.length === 0) throw new CadreError('not_found', `${username} is not a member of realm ${realm.slug}`)
        const entry = { action: 'realms/remove_member', target: username, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        const owns = await ownedBy(store, tx, { userId: account.id, realms: eq(realms.id, realm_id), now: hub.now() })
        return { id: account.id, realm_id, user_id: account.id, username, owns }
      }),
    ),
    answer(ListInvitations, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const where = and(
        eq(invitations.realm_id, body.realm_id),
        isNull(invitations.accepted_at),
        isNull(invitations.revoked_at),
        gt(invitations.expires_at, hub.now()),
      )
      const open = alive(store.db, where)
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ invitation: invitations, created_by: users.username })
        .from(invitations)
        .innerJoin(users, eq(users.id, invitations.created_by))
        .where(inArray(invitations.id, open))
        .orderBy(desc(invitations.created_at), invitations.id)
        .limit(limit)
        .offset(offset)
      return {
        invitations: rows.map(
          ({ invitation: { id, realm_id, role, username, expires_at, created_at }, created_by }) => ({
            id,
            realm_id,
            role,
            username,
            expires_at,
            created_by,
            created_at,
          }),
        ),
        total: await countOf(store.db, invitations, inArray(invitations.id, open)),
      }
    }),
    answer(RevokeInvitation, ({ body: { id }, caller }) =>
      caller.write(async tx => {
        const [found] = await tx.select().from(invitations).where(eq(invitations.id, id))
        // For a missing invitation the realm id is empty, so that the error is the same as for an invitation to a
        // realm that the caller may not see.
        const realm = await caller.realm(found?.realm_id ?? '', 'admin', tx).catch(error => {
          if (!(error instanceof CadreError && error.code === 'not_found')) throw error
          throw new CadreError('not_found', `no invitation ${id} that you may see`)
        })
        if (found!.accepted_at !== null) {
          throw new CadreError(
            'invalid_state',
            'this invitation has been used: remove the member with realms/remove_member',
          )
        }
        if (found!.revoked_at === null) {
          await tx.update(invitations).set({ revoked_at: hub.now() }).where(eq(invitations.id, id))
          const entry = { action: 'realms/revoke_invite', target: id, org_id: realm.org_id, realm_id: realm.id }
          await record(hub, tx, caller, entry)
        }
        return { id, realm_id: realm.id }
      }),
    ),
  ])

  /**
   * The ids of the invitations among `where` whose creator may still invite: a user who is not suspended and still is
   * an admin of the realm.
   */
  function alive(db: Db, where: SQL | undefined) {
    const leads = hasRole(store, invitations.created_by, invitations.realm_id, 'admin')
    return db.select({ id: invitations.id }).from(invitations).where(and(where, leads))
  }

  /** The invitation that `name` may accept. An unknown one gives 404. The other errors say what to do. */
  async function openInvitation(tx: Db, token: string, name: string) {
    const [found] = await tx
      .select()
      .from(invitations)
      .where(eq(invitations.hash, hashSecret(token)))
    if (!found) throw new CadreError('not_found', 'there is no such invitation; ask for a new one')
    if (found.accepted_at !== null) throw new CadreError('expired', 'this invitation has been used; ask for a new one')
    if (found.revoked_at !== null) throw new CadreError('expired', 'this invitation was revoked; ask for a new one')
    if (found.expires_at <= hub.now()) throw new CadreError('expired', 'this invitation has expired; ask for a new one')
    if (found.username !== null && found.username !== name) {
      throw new CadreError('forbidden', 'this invitation is for another user name')
    }
    const [live] = await alive(tx, eq(invitations.id, found.id))
    if (!live) {
      throw new CadreError(
        'expired',
        'the user who made this invitation is no longer an admin of the realm; ask an admin for a new one',
      )
    }
    return found
  }

  /** Sets the role in the realm, and makes the account a member of the org. */
  async function join(
    tx: Db,
    realm: { id: string; org_id: number },
    userId: number,
    role: RealmRole,
    { keepHigher = false } = {},
  ): Promise<void> {
    const [current] = await tx
      .select()
      .from(realmMembers)
      .where(and(eq(realmMembers.realm_id, realm.id), eq(realmMembers.user_id, userId)))
    const order = ['member', 'operator', 'admin']
    if (!(keepHigher && current && order.indexOf(current.role) >= order.indexOf(role))) {
      await tx
        .insert(realmMembers)
        .values({ realm_id: realm.id, user_id: userId, role })
        .onConflictDoUpdate({ target: [realmMembers.realm_id, realmMembers.user_id], set: { role } })
    }
    await tx.insert(orgMembers).values({ org_id: realm.org_id, user_id: userId, role: 'member' }).onConflictDoNothing()
  }
}
