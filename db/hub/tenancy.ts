// The hub's tables of accounts, tenancy and credentials.

import type { Grant } from '../../lib/wire/grants.ts'
import type { Columns } from './columns.ts'

export function tenancyTables({ table, index, uniqueIndex, primaryKey, id, text, int, bool, json }: Columns) {
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

  const orgs = table('orgs', {
    id: id(),
    slug: text().notNull().unique(),
    display_name: text().notNull(),
    created_at: int().notNull(),
  })

  const orgMembers = table(
    'org_members',
    {
      org_id: int()
        .notNull()
        .references(() => orgs.id, { onDelete: 'cascade' }),
      user_id: int()
        .notNull()
        .references(() => users.id),
      role: text().$type<'owner' | 'admin' | 'member'>().notNull(),
    },
    row => [primaryKey({ columns: [row.org_id, row.user_id] }), index('org_members_user').on(row.user_id)],
  )

  const scopes = table(
    'scopes',
    {
      id: id(),
      org_id: int()
        .notNull()
        .references(() => orgs.id, { onDelete: 'cascade' }),
      slug: text().notNull().unique(),
      display_name: text().notNull(),
      created_at: int().notNull(),
    },
    row => [index('scopes_org').on(row.org_id)],
  )

  /** Every slug that a scope has or had: a name of a package means one scope for ever. */
  const scopeSlugs = table('scope_slugs', { slug: text().primaryKey() })

  const scopeMembers = table(
    'scope_members',
    {
      scope_id: int()
        .notNull()
        .references(() => scopes.id, { onDelete: 'cascade' }),
      user_id: int()
        .notNull()
        .references(() => users.id),
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
    },
    row => [uniqueIndex('realms_slug').on(row.org_id, row.slug)],
  )

  const realmMembers = table(
    'realm_members',
    {
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      user_id: int()
        .notNull()
        .references(() => users.id),
      role: text().$type<'admin' | 'operator' | 'member'>().notNull(),
    },
    row => [primaryKey({ columns: [row.realm_id, row.user_id] }), index('realm_members_user').on(row.user_id)],
  )

  const realmTeams = table(
    'realm_teams',
    {
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      /** `@scope/name`. */
      team: text().notNull(),
      /** The scope of that name. */
      scope_id: int()
        .notNull()
        .references(() => scopes.id, { onDelete: 'cascade' }),
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
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
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
      user_id: int()
        .notNull()
        .references(() => users.id),
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
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
    },
    row => [primaryKey({ columns: [row.token_id, row.realm_id] }), index('token_realms_realm').on(row.realm_id)],
  )

  const dispatchKeys = table(
    'dispatch_keys',
    {
      kid: text().primaryKey(),
      org_id: int()
        .notNull()
        .references(() => orgs.id, { onDelete: 'cascade' }),
      public_pem: text().notNull(),
      /** PKCS #8 in PEM, or encrypted with the hub's key. */
      private_key: text().notNull(),
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
    },
    row => [index('audit_org').on(row.org_id, row.id)],
  )

  return {
    users,
    orgs,
    orgMembers,
    scopes,
    scopeSlugs,
    scopeMembers,
    realms,
    realmMembers,
    realmTeams,
    invitations,
    tokens,
    tokenRealms,
    dispatchKeys,
    signInFailures,
    audit,
  }
}
