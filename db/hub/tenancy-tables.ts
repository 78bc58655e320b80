// The hub's tables of accounts, tenancy and credentials.

import type { Grant } from '../../lib/wire/grants.ts'
import type { Quotas } from '../../lib/wire/records/quotas.ts'
import type { Columns } from './columns.ts'

export function tenancyTables({ table, index, uniqueIndex, primaryKey, id, text, sealed, int, bool, json }: Columns) {
  const users = table('users', {
    id: id(),
    username: text().notNull().unique(),
    password_hash: text().notNull(),
    site_admin: bool().notNull(),
    created_at: int().notNull(),
    suspended_at: int(),
    /** The row of a deleted account is kept, so that its name is never reused. */
    deleted_at: int(),
  })

  const ofUser = () =>
    int()
      .notNull()
      .references(() => users.id)

  const orgs = table('orgs', {
    id: id(),
    slug: text().notNull().unique(),
    display_name: text().notNull(),
    created_at: int().notNull(),
  })

  const ofOrg = () =>
    int()
      .notNull()
      .references(() => orgs.id, { onDelete: 'cascade' })

  const orgMembers = table(
    'org_members',
    {
      org_id: ofOrg(),
      user_id: ofUser(),
      role: text().$type<'owner' | 'admin' | 'member'>().notNull(),
    },
    row => [primaryKey({ columns: [row.org_id, row.user_id] }), index('org_members_user').on(row.user_id)],
  )

  const scopes = table(
    'scopes',
    {
      id: id(),
      org_id: ofOrg(),
      slug: text().notNull().unique(),
      display_name: text().notNull(),
      created_at: int().notNull(),
    },
    row => [index('scopes_org').on(row.org_id)],
  )

  const ofScope = () =>
    int()
      .notNull()
      .references(() => scopes.id, { onDelete: 'cascade' })

  /** Every slug that a scope has or had: a name of a package means one scope for ever. */
  const scopeSlugs = table('scope_slugs', { slug: text().primaryKey() })

  const scopeMembers = table(
    'scope_members',
    {
      scope_id: ofScope(),
      user_id: ofUser(),
      role: text().$type<'owned' | 'member'>().notNull(),
    },
    row => [primaryKey({ columns: [row.scope_id, row.user_id] }), index('scope_members_user').on(row.user_id)],
  )

  const realms = table(
    'realms',
    {
      id: text().primaryKey(),
      org_id: int()
        .notNull()
        .references(() => orgs.id),
      slug: text().notNull(),
      name: text().notNull(),
      created_at: int().notNull(),
      /** What a site admin set for this realm; what is not there is as the site has it. */
      quotas: json<Quotas>(),
      /** Who is told of what fails in the realm, as `agent:channel`; null: nobody. */
      notify: json<{ on_fail: string[] }>(),
    },
    row => [uniqueIndex('realms_slug').on(row.org_id, row.slug)],
  )

  const ofRealm = () =>
    text()
      .notNull()
      .references(() => realms.id, { onDelete: 'cascade' })

  /**
   * What a realm uses of its quotas. A realm without a quota has no row, and null is not counted, so that a realm without
   * quotas pays nothing for them.
   */
  const realmUse = table('realm_use', {
    realm_id: text()
      .primaryKey()
      .references(() => realms.id, { onDelete: 'cascade' }),
    /** Dispatched runs that no daemon has accepted. */
    waiting: int(),
    /** Bytes of files of runs, from when a daemon may send them. */
    stored_bytes: int(),
    /** Bytes of log lines. */
    log_bytes: int(),
    /** When the minute began, in lived time, in which `dispatched` runs were dispatched. */
    minute_at: int().notNull().default(0),
    dispatched: int().notNull().default(0),
  })

  /** Streams that are open in realms with a quota of them. */
  const openStreams = table(
    'open_streams',
    {
      id: text().primaryKey(),
      realm_id: ofRealm(),
      /** The hub that serves it repeats before then that it is open. In lived time. */
      until: int().notNull(),
    },
    row => [index('open_streams_realm').on(row.realm_id, row.until)],
  )

  const realmMembers = table(
    'realm_members',
    {
      realm_id: ofRealm(),
      user_id: ofUser(),
      role: text().$type<'admin' | 'operator' | 'member'>().notNull(),
    },
    row => [primaryKey({ columns: [row.realm_id, row.user_id] }), index('realm_members_user').on(row.user_id)],
  )

  const realmTeams = table(
    'realm_teams',
    {
      realm_id: ofRealm(),
      /** `@scope/name`. */
      team: text().notNull(),
      /** The scope of that name. */
      scope_id: ofScope(),
      added_at: int().notNull(),
      /** By whose membership the realm has a team of another org; null where that was not written down. */
      added_by: int().references(() => users.id),
    },
    row => [primaryKey({ columns: [row.realm_id, row.team] }), index('realm_teams_scope').on(row.scope_id)],
  )

  const invitations = table(
    'invitations',
    {
      id: text().primaryKey(),
      realm_id: ofRealm(),
      role: text().$type<'admin' | 'operator' | 'member'>().notNull(),
      /** If set, only this account may accept the invitation. */
      username: text(),
      hash: text().notNull().unique(),
      created_by: int().notNull(),
      created_at: int().notNull(),
      expires_at: int().notNull(),
      accepted_at: int(),
      revoked_at: int(),
    },
    row => [index('invitations_realm').on(row.realm_id)],
  )

  const tokens = table(
    'tokens',
    {
      id: id(),
      user_id: ofUser(),
      type: text().$type<'user' | 'realm'>().notNull(),
      kind: text().$type<'durable' | 'session'>().notNull(),
      name: text().notNull(),
      /** SHA-256 of the secret, in hexadecimal. */
      hash: text().notNull().unique(),
      grant: json<Grant>().notNull(),
      created_at: int().notNull(),
      last_used_at: int(),
      expires_at: int(),
      revoked_at: int(),
    },
    row => [index('tokens_user').on(row.user_id, row.id)],
  )

  const tokenRealms = table(
    'token_realms',
    {
      token_id: int()
        .notNull()
        .references(() => tokens.id, { onDelete: 'cascade' }),
      realm_id: ofRealm(),
    },
    row => [primaryKey({ columns: [row.token_id, row.realm_id] }), index('token_realms_realm').on(row.realm_id)],
  )

  const dispatchKeys = table(
    'dispatch_keys',
    {
      kid: text().primaryKey(),
      org_id: ofOrg(),
      public_pem: text().notNull(),
      /** PKCS #8 in PEM. */
      private_key: sealed().notNull(),
      created_at: int().notNull(),
      /** Set by a rotation: the time until which the key is still accepted. */
      not_after: int(),
    },
    row => [index('dispatch_keys_org').on(row.org_id)],
  )

  const signInFailures = table(
    'sign_in_failures',
    {
      /** A digest of the account name, of the address, or of both. */
      key: text().notNull(),
      /** In lived time: a clock that was ahead keeps nobody from signing in after its correction. */
      at: int().notNull(),
      /** The id of the attempt, which has one row for each of the three keys. Ids of later attempts sort later. */
      attempt: text().notNull().default(''),
    },
    row => [
      index('sign_in_failures_key').on(row.key, row.at),
      index('sign_in_failures_at').on(row.at),
      index('sign_in_failures_attempt').on(row.attempt),
    ],
  )

  const audit = table(
    'audit',
    {
      id: id(),
      at: int().notNull(),
      user_id: int(),
      username: text(),
      token_id: int(),
      /** The address that the call came from. */
      address: text(),
      org_id: int(),
      realm_id: text(),
      /** The route, such as `orgs/add_member`, or the name of an event that is more specific than the route. */
      action: text().notNull(),
      /** The object of the action. */
      target: text(),
      /** Its place among all sealed entries, and its number and hash in the chain of its org; null until it is sealed. */
      position: int(),
      seq: int(),
      hash: text(),
    },
    row => [
      index('audit_org').on(row.org_id, row.id),
      index('audit_position').on(row.position, row.id),
      index('audit_org_position').on(row.org_id, row.position),
    ],
  )

  /** A chain an org, and one for what belongs to none. The row `*` counts the positions of all. */
  const auditChains = table('audit_chains', {
    chain: text().primaryKey(),
    org_id: int(),
    /** Of the last entry. */
    position: int().notNull(),
    seq: int().notNull(),
    hash: text().notNull(),
    /** The last entry that retention has removed. */
    anchor_seq: int().notNull(),
    anchor_hash: text().notNull(),
    anchor_at: int(),
  })

  return {
    users,
    orgs,
    orgMembers,
    scopes,
    scopeSlugs,
    scopeMembers,
    realms,
    realmUse,
    openStreams,
    realmMembers,
    realmTeams,
    invitations,
    tokens,
    tokenRealms,
    dispatchKeys,
    signInFailures,
    audit,
    auditChains,
  }
}
