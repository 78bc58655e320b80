// Who calls the hub. A handler asks the caller for the role on an object, which is compared with the role that the route
// declared (accesses.ts).

import { type AnyColumn, and, eq, type Placeholder } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { type Kind, ROLES, type Role, type UserRule } from '../../wire/access.ts'
import { allows, type RequiredAccess, reaches } from '../../wire/grants.ts'
import { LACKS_GRANT } from '../../wire/reasons.ts'
import type { StartedBy, Via } from '../../wire/records/started-by.ts'
import type { Hub } from '../core/hub.ts'
import { atLeast, decide, type Memberships, roleIn } from './decision.ts'
import { type TokenFacts, writeWhileLive } from './live-token.ts'

/** A caller without a token. */
export interface Stranger {
  readonly kind: 'stranger'
  /** The write of the store, as callers with a token have it. */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T>
  /** The address of the caller: the other end of the socket, or the address that the trusted proxy reports. */
  address(): string
}

type DaemonRow = Tables['daemons']['$inferSelect']

/** How a caller came: where from, and how the same call is admitted anew. */
export interface Way<Caller> {
  address(): string
  again(): Promise<Caller>
  /** The daemon that the head of the request names, which was looked for with the token; null: it names none. */
  named: { id: string; row: Promise<DaemonRow | undefined> } | null
}

export class RealmCaller {
  readonly kind = 'realm'
  readonly token: TokenFacts
  readonly #hub: Hub
  readonly #way: Way<RealmCaller>

  constructor(hub: Hub, token: TokenFacts, way: Way<RealmCaller>) {
    this.#hub = hub
    this.token = token
    this.#way = way
  }

  address(): string {
    return this.#way.address()
  }

  /** What is known of the daemon by now, if the head of the request names it. */
  daemonNamed(id: string): Promise<DaemonRow | undefined> | null {
    return this.#way.named?.id === id ? this.#way.named.row : null
  }

  /** Like the write of the store, but throws 401 when the token has ended since the request was admitted. */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return writeWhileLive(this.#hub, this.token, work)
  }

  /** Throws 403 when the token does not grant the realm, or when its minter has left the realm. */
  within(realmId: string): void {
    if (this.token.live.some(each => each.realm_id === realmId)) return
    throw new CadreError('forbidden', `this token does not grant realm ${realmId}, or its owner has left it`)
  }

  /**
   * The same caller with current facts, for calls that wait. Throws whatever the call would throw if it were made now.
   */
  again(): Promise<RealmCaller> {
    return this.#way.again()
  }
}

/** The org of a realm that the token grants. */
export function orgOf(caller: RealmCaller, realmId: string): number {
  return caller.token.live.find(each => each.realm_id === realmId)!.org_id
}

export class UserCaller {
  readonly kind = 'user'
  readonly token: TokenFacts
  readonly address: () => string
  /** With what the call was made. */
  readonly via: Via
  /**
   * The same caller with current facts, for calls that wait. Throws whatever the call would throw if it were made now.
   */
  readonly again: () => Promise<UserCaller>
  readonly #hub: Hub
  readonly #rule: UserRule

  constructor(hub: Hub, token: TokenFacts, rule: UserRule, from: Pick<UserCaller, 'address' | 'via' | 'again'>) {
    this.#hub = hub
    this.token = token
    this.#rule = rule
    this.address = from.address
    this.via = from.via
    this.again = from.again
  }

  get user() {
    return this.token.user
  }

  /** Whom a run names that this caller starts: the person of a session, or a token. */
  get startedBy(): StartedBy {
    const { kind, name, user } = this.token
    if (kind === 'session') return { kind: 'person', name: user.username, via: this.via }
    return { kind: 'token', name, owner: user.username, via: this.via }
  }

  /** Like the write of the store, but throws 401 when the token has ended since the request was admitted. */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    return writeWhileLive(this.#hub, this.token, work)
  }

  /** The org, if the grant reaches it and the live role is at least the one that the route declared (or `need`). */
  async org(id: number, need = this.#rule.org, db = this.#hub.store.db) {
    const { orgs, orgMembers } = this.#hub.store
    const [row] = await db
      .select({ org: orgs, role: orgMembers.role })
      .from(orgs)
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, orgs.id), eq(orgMembers.user_id, this.user.id)))
      .where(eq(orgs.id, id))
    const role = this.#settle('org', need, row && { org_id: id }, { org: row?.role ?? null }, `org ${id}`)
    return { ...row!.org, role }
  }

  /** The scope, if the live role in it is high enough. Grants do not matter here, because they do not name scopes. */
  async scope(key: { id: number } | { slug: string }, need = this.#rule.scope, db = this.#hub.store.db) {
    const { scopes, scopeMembers, orgMembers } = this.#hub.store
    const [row] = await db
      .select({ scope: scopes, org: orgMembers.role, own: scopeMembers.role })
      .from(scopes)
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, scopes.org_id), eq(orgMembers.user_id, this.user.id)))
      .leftJoin(scopeMembers, and(eq(scopeMembers.scope_id, scopes.id), eq(scopeMembers.user_id, this.user.id)))
      .where('id' in key ? eq(scopes.id, key.id) : eq(scopes.slug, key.slug))
    const name = `scope ${'id' in key ? key.id : `@${key.slug}`}`
    const memberships = { org: row?.org ?? null, own: row?.own ?? null }
    const role = this.#settle('scope', need, row && { org_id: row.scope.org_id }, memberships, name)
    return { ...row!.scope, role }
  }

  /** The realm, if the grant reaches it and the live role is high enough. */
  async realm(id: string, need = this.#rule.realm, db = this.#hub.store.db) {
    return this.realmOf(id, await this.#realmRow(id, db), need)
  }

  /** The same when a statement has found the realm with the roles of the caller (`rolesIn`). */
  realmOf(id: string, row: RealmWithRoles | undefined, need = this.#rule.realm) {
    const { target, memberships } = placeOf(id, row)
    const role = this.#settle('realm', need, target, memberships, `realm ${id}`)
    return { ...row!.realm, role }
  }

  /** What a statement adds to find a realm with the roles of the caller: its columns, and the conditions of its joins. */
  rolesIn(realmId: AnyColumn) {
    return rolesIn(this.#hub.store, realmId, this.user.id)
  }

  /** Like `realm`, but returns null instead of throwing. */
  async realmRole(id: string): Promise<Role<'realm'> | null> {
    try {
      return (await this.realm(id, 'member')).role
    } catch (error) {
      if (error instanceof CadreError && error.code === 'not_found') return null
      throw error
    }
  }

  /** The role in a realm that comes from memberships alone. A site admin gets no additional rights on daemons. */
  async membership(id: string): Promise<Role<'realm'> | null> {
    const { target, memberships } = placeOf(id, await this.#realmRow(id, this.#hub.store.db))
    return target && this.reaches(target) ? roleIn('realm', { ...memberships, siteAdmin: false }) : null
  }

  async #realmRow(id: string, db: Db) {
    const { store, memo } = this.#hub
    const userId = this.user.id
    const find = () => realmFor(store, db, { id, userId })
    // A transaction looks for itself.
    const [row] = await (db === store.db ? memo.get(`realm ${id} for user ${userId}`, find) : find())
    return row
  }

  /** The role that the given memberships give the caller. For lists, which have already read the memberships. */
  roleIn<K extends Kind>(kind: K, known: Omit<Memberships, 'siteAdmin'>): Role<K> | null {
    return roleIn(kind, { ...known, siteAdmin: this.user.siteAdmin })
  }

  /** For permissions that depend on the body: throws the same error as a route that declares the grant `ask`. */
  mustAllow(required: RequiredAccess): void {
    if (!allows(this.token.grant, required)) throw lacksGrant(required)
  }

  reaches(target: { org_id: number; realm_id?: string }): boolean {
    return reaches(this.token.grant, target)
  }

  #settle<K extends Kind>(
    kind: K,
    need: Role<K> | undefined,
    target: { org_id: number; realm_id?: string } | undefined,
    known: Omit<Memberships, 'siteAdmin'>,
    name: string,
  ): Role<K> {
    if (need === undefined) throw new Error(`the route declares no role for a ${kind}`)
    const memberships = { ...known, siteAdmin: this.user.siteAdmin }
    const verdict = target ? decide(kind, need, this.token.grant, target, memberships) : 'hidden'
    if (verdict === 'hidden') throw new CadreError('not_found', `no ${name} that you may see`)
    if (verdict === 'too_low') {
      const enough = ROLES[kind].filter(role => atLeast(kind, role as Role<K>, need)).join(' or ')
      throw new CadreError('forbidden', `your role in ${name} is too low: this call takes ${enough}`)
    }
    return roleIn(kind, memberships)!
  }
}

export const lacksGrant = (required: RequiredAccess) =>
  new CadreError('forbidden', `the token’s grant lacks ${accessText(required)}`, { reason: LACKS_GRANT })

export const accessText = (required: RequiredAccess) =>
  Object.entries(required)
    .map(([entity, level]) => `${entity}:${level}`)
    .join(' or ')

interface RealmWithRoles {
  realm: Tables['realms']['$inferSelect']
  org: Role<'org'> | null
  own: Role<'realm'> | null
}

const placeOf = (id: string, row: RealmWithRoles | undefined) => ({
  target: row && { org_id: row.realm.org_id, realm_id: id },
  memberships: { org: row?.org ?? null, own: row?.own ?? null },
})

function rolesIn(
  { realms, realmMembers, orgMembers }: Store,
  realmId: AnyColumn | Placeholder,
  userId: number | Placeholder,
) {
  return {
    columns: { realm: realms, org: orgMembers.role, own: realmMembers.role },
    ofRealm: eq(realms.id, realmId),
    ofOrg: and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, userId)),
    ofMember: and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, userId)),
  }
}

const realmFor = prepared((store, db, slot: Slot<'id' | 'userId'>) => {
  const { realms, realmMembers, orgMembers } = store
  const { columns, ofRealm, ofOrg, ofMember } = rolesIn(store, slot('id'), slot('userId'))
  return db.select(columns).from(realms).leftJoin(orgMembers, ofOrg).leftJoin(realmMembers, ofMember).where(ofRealm)
})
