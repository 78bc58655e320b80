// Who calls the hub, and what routes declare about it. `admit` finds the token and its owner, and `permit` checks its
// grant. A handler asks the caller for the role on an object, which is compared with the role that the route declared.

import { and, eq, sql } from 'drizzle-orm'
import type { Db } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { Access, Incoming } from '../http/admission.ts'
import { sameSecret } from '../secret-form.ts'
import { type Ask, allows, type Grant, reaches } from '../wire/grants.ts'
import { atLeast, decide, type Kind, ROLES, type Role, roleIn, type Standing } from './decision.ts'
import type { Hub } from './hub.ts'
import { hashSecret, isSecretForm, PREFIX } from './token-secrets.ts'

/**
 * What a route requires of user tokens: the grant and the role on its object. If the grant names entities, any one of
 * them is enough; if it names none, no grant is required.
 */
export interface UserRule {
  grant?: Ask
  org?: Role<'org'>
  scope?: Role<'scope'>
  realm?: Role<'realm'>
  /** Only site admins may call. */
  site?: true
}

export interface TokenFacts {
  id: number
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

/** A caller without a token. */
export interface Stranger {
  readonly kind: 'stranger'
  /** The address of the caller: the other end of the socket, or the address that the trusted proxy reports. */
  address(): string
}

export interface RealmCaller {
  readonly kind: 'realm'
  readonly token: TokenFacts
  address(): string
  /** Throws 403 when the token does not grant the realm, or when its minter has left the realm. */
  within(realmId: string): void
  /**
   * The same caller with current facts, for calls that wait. Throws whatever the call would throw if it were made now.
   */
  again(): Promise<RealmCaller>
}

export class UserCaller {
  readonly kind = 'user'
  readonly token: TokenFacts
  readonly address: () => string
  /**
   * The same caller with current facts, for calls that wait. Throws whatever the call would throw if it were made now.
   */
  readonly again: () => Promise<UserCaller>
  readonly #hub: Hub
  readonly #rule: UserRule

  constructor(hub: Hub, token: TokenFacts, rule: UserRule, from: Pick<UserCaller, 'address' | 'again'>) {
    this.#hub = hub
    this.token = token
    this.#rule = rule
    this.address = from.address
    this.again = from.again
  }

  get user() {
    return this.token.user
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
    const standing = { org: row?.org ?? null, own: row?.own ?? null }
    const role = this.#settle('scope', need, row && { org_id: row.scope.org_id }, standing, name)
    return { ...row!.scope, role }
  }

  /** The realm, if the grant reaches it and the live role is high enough. */
  async realm(id: string, need = this.#rule.realm, db = this.#hub.store.db) {
    const { row, target, standing } = await this.#realmRow(id, db)
    const role = this.#settle('realm', need, target, standing, `realm ${id}`)
    return { ...row!.realm, role }
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
    const { target, standing } = await this.#realmRow(id, this.#hub.store.db)
    return target && this.reaches(target) ? roleIn('realm', { ...standing, siteAdmin: false }) : null
  }

  async #realmRow(id: string, db: Db) {
    const { realms, realmMembers, orgMembers } = this.#hub.store
    const [row] = await db
      .select({ realm: realms, org: orgMembers.role, own: realmMembers.role })
      .from(realms)
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, this.user.id)))
      .leftJoin(realmMembers, and(eq(realmMembers.realm_id, realms.id), eq(realmMembers.user_id, this.user.id)))
      .where(eq(realms.id, id))
    const target = row && { org_id: row.realm.org_id, realm_id: id }
    return { row, target, standing: { org: row?.org ?? null, own: row?.own ?? null } }
  }

  /** The role that the given memberships give the caller. For lists, which have already read the memberships. */
  roleIn<K extends Kind>(kind: K, known: Omit<Standing, 'siteAdmin'>): Role<K> | null {
    return roleIn(kind, { ...known, siteAdmin: this.user.siteAdmin })
  }

  /** For permissions that depend on the body: throws the same error as a route that declares the grant `ask`. */
  mustAllow(ask: Ask): void {
    if (!allows(this.token.grant, ask)) throw lacksGrant(ask)
  }

  reaches(target: { org_id: number; realm_id?: string }): boolean {
    return reaches(this.token.grant, target)
  }

  #settle<K extends Kind>(
    kind: K,
    need: Role<K> | undefined,
    target: { org_id: number; realm_id?: string } | undefined,
    known: Omit<Standing, 'siteAdmin'>,
    name: string,
  ): Role<K> {
    if (need === undefined) throw new Error(`the route declares no role for a ${kind}`)
    const standing = { ...known, siteAdmin: this.user.siteAdmin }
    const verdict = target ? decide(kind, need, this.token.grant, target, standing) : 'hidden'
    if (verdict === 'hidden') throw new CadreError('not_found', `no ${name} that you may see`)
    if (verdict === 'too_low') {
      const enough = ROLES[kind].filter(role => atLeast(kind, role as Role<K>, need)).join(' or ')
      throw new CadreError('forbidden', `your role in ${name} is too low: this call takes ${enough}`)
    }
    return roleIn(kind, standing)!
  }
}

/** The accesses that the hub's routes declare. */
export function createCallers(hub: Hub) {
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
    return { id: row.id, type: row.type, kind: row.kind, grant: row.grant, expires_at: row.expires_at, user, ...reach }
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

  function asUser(incoming: Incoming, token: TokenFacts, rule: UserRule): UserCaller {
    if (token.type !== 'user')
      throw new CadreError('forbidden', 'this call does not accept a realm token; use a user token')
    const again = async () => {
      const caller = asUser(incoming, await authenticate(incoming), rule)
      permit(caller, rule)
      return caller
    }
    return new UserCaller(hub, token, rule, { address: () => addressOf(incoming), again })
  }

  /** Checks the grant of a token before anything is looked up. */
  function permit({ token }: UserCaller, rule: UserRule): void {
    if (rule.grant && !allows(token.grant, rule.grant)) throw lacksGrant(rule.grant)
    if (rule.site && !token.user.siteAdmin) throw new CadreError('forbidden', 'only a site admin may do this')
  }

  function addressOf({ request, peer }: Incoming): string {
    const forwarded = hub.trustProxy ? request.headers.get('x-forwarded-for') : null
    return forwarded?.split(',').at(-1)?.trim() || (peer() ?? 'unknown')
  }

  const asStranger = (incoming: Incoming): Stranger => ({ kind: 'stranger', address: () => addressOf(incoming) })

  function asRealm(incoming: Incoming, token: TokenFacts): RealmCaller {
    return {
      kind: 'realm',
      token,
      address: () => addressOf(incoming),
      within(realmId) {
        if (token.live.some(each => each.realm_id === realmId)) return
        throw new CadreError('forbidden', `this token does not grant realm ${realmId}, or its owner has left it`)
      },
      again: async () => asRealm(incoming, await authenticate(incoming)),
    }
  }

  return {
    /** Routes that anybody may call, without a credential. */
    stranger(): Access<Stranger> {
      return { rule: 'none', admit: asStranger }
    },
    user(rule: UserRule): Access<UserCaller> {
      return {
        rule: describe(rule),
        admit: async incoming => asUser(incoming, await authenticate(incoming), rule),
        permit: caller => permit(caller, rule),
      }
    },
    /** Routes for realm tokens only. A user token is refused with the code `refusal`. */
    realm(refusal: 'unauthorized' | 'forbidden' = 'unauthorized'): Access<RealmCaller> {
      return {
        rule: 'realm token',
        async admit(incoming) {
          const token = await authenticate(incoming)
          if (token.type === 'realm') return asRealm(incoming, token)
          throw new CadreError(refusal, 'this call does not accept a user token; use a realm token (cadre_dt_…)')
        },
      }
    },
    either(rule: UserRule): Access<UserCaller | RealmCaller> {
      return {
        rule: `${describe(rule)}, or realm token`,
        async admit(incoming) {
          const token = await authenticate(incoming)
          return token.type === 'realm' ? asRealm(incoming, token) : asUser(incoming, token, rule)
        },
        permit: caller => caller.kind === 'user' && permit(caller, rule),
      }
    },
    /**
     * Routes about the hub as a whole: for whoever presents `CADRE_METRICS_TOKEN`, and for a site admin whose token
     * grants reading every realm.
     */
    operator(): Access<UserCaller | null> {
      const rule: UserRule = { grant: { realms: 'read' }, site: true }
      return {
        rule: `CADRE_METRICS_TOKEN, or ${describe(rule)}, all orgs`,
        async admit(incoming) {
          const { metricsToken } = hub
          if (metricsToken !== null && incoming.bearer !== null && sameSecret(incoming.bearer, metricsToken))
            return null
          return asUser(incoming, await authenticate(incoming), rule)
        },
        permit(caller) {
          if (caller === null) return
          permit(caller, rule)
          if (caller.token.grant.domains.orgs === '*') return
          throw new CadreError('forbidden', 'the token’s grant must reach all orgs (domains.orgs: "*")')
        },
      }
    },
    /** Routes that use the user token when the request has one, and do not require it. */
    optional(rule: UserRule): Access<UserCaller | Stranger> {
      return {
        rule: `none, or ${describe(rule)}`,
        admit: async incoming =>
          incoming.bearer === null ? asStranger(incoming) : asUser(incoming, await authenticate(incoming), rule),
        permit: caller => caller.kind === 'user' && permit(caller, rule),
      }
    },
  }
}

const invalid = () => new CadreError('unauthorized', 'the token is not valid: unknown, revoked or expired')

const lacksGrant = (ask: Ask) => new CadreError('forbidden', `the token’s grant lacks ${asked(ask)}`)

const asked = (ask: Ask) =>
  Object.entries(ask)
    .map(([entity, level]) => `${entity}:${level}`)
    .join(' or ')

function describe({ grant, site, ...roles }: UserRule): string {
  const parts = Object.entries(roles).map(([kind, role]) => `${kind} role ${role}`)
  return ['user token', ...(grant ? [`grant ${asked(grant)}`] : []), ...parts, ...(site ? ['site admin'] : [])].join(
    ', ',
  )
}
