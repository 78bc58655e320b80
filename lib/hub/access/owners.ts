// What acts for a person without that person: webhooks, invitations, tokens, triggers. Each has an owner and works only as long as
// the owner has the role in the realm that making it took. A reply about somebody's removal names what that person owns.

import { and, eq, exists, gt, inArray, isNull, like, not, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Db, Store } from '../../../db/hub/store.ts'
import { ROLES, type Role } from '../../wire/access.ts'

/** The condition that `owner` has this role in the realm now, as `roleIn` decides it for one person. */
export function hasRole(store: Store, owner: SQLiteColumn, realm: SQLiteColumn, role: Role<'realm'>): SQL {
  const enough = ROLES.realm.slice(ROLES.realm.indexOf(role))
  return stands(store, owner, realm, inArray(store.realmMembers.role, enough))
}

/** The condition that `owner` leads the org of the realm, or is in the realm as `own` says. */
function stands(store: Store, owner: SQLiteColumn, realm: SQLiteColumn, own?: SQL): SQL {
  const { db, users, realms, realmMembers, orgMembers } = store
  const roles = or(eq(users.site_admin, true), inArray(orgMembers.role, ['owner', 'admin']), own)
  return exists(
    db
      .select({ one: sql`1` })
      .from(users)
      .innerJoin(realms, eq(realms.id, realm))
      .leftJoin(realmMembers, and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, users.id)))
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, users.id)))
      .where(and(eq(users.id, owner), isNull(users.suspended_at), isNull(users.deleted_at), roles)),
  )
}

/** The condition that the webhook delivers: its owner could still add it. Events of the audit log take an org admin. */
export function delivers(store: Store): SQL {
  const { created_by, realm_id, events } = store.webhooks
  const hasNoAuditEvents = not(like(sql`${events}`, '%"audit.%'))
  return and(hasRole(store, created_by, realm_id, 'admin'), or(hasNoAuditEvents, stands(store, created_by, realm_id)))!
}

/** At most this many of each kind are named. */
const MOST = 100

/** What an account owns in these realms: its webhooks, its triggers, its realm tokens, and its invitations that are open. */
export async function ownedBy(
  { webhooks, triggers, tokens, tokenRealms, invitations, realms }: Store,
  db: Db,
  at: Owner,
) {
  const inRealms = (realm: SQLiteColumn) =>
    at.realms === undefined ? undefined : inArray(realm, db.select({ id: realms.id }).from(realms).where(at.realms))
  const hooks = await db
    .select({ id: webhooks.id, realm_id: webhooks.realm_id, name: webhooks.url })
    .from(webhooks)
    .where(and(eq(webhooks.created_by, at.userId), inRealms(webhooks.realm_id)))
    .orderBy(webhooks.created_at)
    .limit(MOST)
  const starting = await db
    .select({ id: triggers.id, realm_id: triggers.realm_id, name: triggers.name })
    .from(triggers)
    .where(and(eq(triggers.owner_id, at.userId), isNull(triggers.removed_at), inRealms(triggers.realm_id)))
    .orderBy(triggers.created_at)
    .limit(MOST)
  const enrolling = await db
    .select({ id: tokens.id, realm_id: tokenRealms.realm_id, name: tokens.name })
    .from(tokens)
    .innerJoin(tokenRealms, eq(tokenRealms.token_id, tokens.id))
    .where(
      and(
        eq(tokens.user_id, at.userId),
        isNull(tokens.revoked_at),
        or(isNull(tokens.expires_at), gt(tokens.expires_at, at.now)),
        inRealms(tokenRealms.realm_id),
      ),
    )
    .orderBy(tokens.id)
    .limit(MOST)
  const open = await db
    .select({ id: invitations.id, realm_id: invitations.realm_id, name: invitations.username, role: invitations.role })
    .from(invitations)
    .where(
      and(
        eq(invitations.created_by, at.userId),
        isNull(invitations.accepted_at),
        isNull(invitations.revoked_at),
        gt(invitations.expires_at, at.now),
        inRealms(invitations.realm_id),
      ),
    )
    .orderBy(invitations.created_at)
    .limit(MOST)
  return {
    webhooks: hooks,
    triggers: starting,
    tokens: enrolling.map(({ id, ...token }) => ({ id: String(id), ...token })),
    invitations: open.map(({ name, role, ...invitation }) => ({ ...invitation, name: name ?? role })),
  }
}

interface Owner {
  userId: number
  /** The realms that are meant, as a condition; undefined: all. */
  realms: SQL | undefined
  now: number
}
