// The hub's tables, once for both dialects. Rows are named as the wire names them.

import type { Grant } from '../../lib/hub/grant.ts'
import type { Json, JsonObject } from '../../lib/json.ts'
import type { Field } from '../../lib/team/team.ts'
import type { Columns } from './columns.ts'

export interface FileContent {
  path: string
  content_base64: string
}

export function tables({ table, index, uniqueIndex, primaryKey, id, text, int, bool, json }: Columns) {
  const users = table('users', {
    id: id(),
    username: text().notNull().unique(),
    password_hash: text().notNull(),
    site_admin: bool().notNull(),
    created_at: int().notNull(),
    suspended_at: int(),
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
      added_at: int().notNull(),
    },
    row => [primaryKey({ columns: [row.realm_id, row.team] })],
  )

  const invitations = table(
    'invitations',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      role: text().$type<'admin' | 'operator' | 'member'>().notNull(),
      /** When set, only this account may accept. */
      username: text(),
      hash: text().notNull().unique(),
      created_by: int().notNull(),
      created_at: int().notNull(),
      expires_at: int().notNull(),
      accepted_at: int(),
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
      /** SHA-256 of the secret, hex. */
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
      /** PKCS #8 in PEM, or sealed under the hub's key. */
      private_key: text().notNull(),
      created_at: int().notNull(),
      /** Set by rotation: until when the key is still accepted. */
      not_after: int(),
    },
    row => [index('dispatch_keys_org').on(row.org_id)],
  )

  const daemons = table(
    'daemons',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      token_id: int()
        .notNull()
        .references(() => tokens.id),
      name: text().notNull(),
      hostname: text(),
      version: text(),
      capacity: int(),
      agents: json<{ name: string; version: string }[]>().notNull(),
      workspaces: json<string[]>().notNull(),
      registered_at: int().notNull(),
      last_seen_at: int().notNull(),
      stuck: bool().notNull(),
      removed_at: int(),
      /** Of its outbox: what has been applied. */
      epoch: text(),
      acked_seq: int().notNull(),
    },
    row => [index('daemons_realm').on(row.realm_id), index('daemons_token').on(row.token_id)],
  )

  const packages = table(
    'packages',
    {
      id: id(),
      scope_id: int()
        .notNull()
        .references(() => scopes.id, { onDelete: 'cascade' }),
      /** `@scope/name`. */
      name: text().notNull(),
      version: text().notNull(),
      description: text().notNull(),
      sha256: text().notNull(),
      bytes: int().notNull(),
      /** What its team.yml declares, for checking a dispatch. */
      inputs: json<Field[]>().notNull(),
      /** Names of the packages that it calls. */
      dependencies: json<string[]>().notNull(),
      published_at: int().notNull(),
      published_by: int().notNull(),
      yanked_at: int(),
    },
    row => [uniqueIndex('packages_version').on(row.name, row.version), index('packages_scope').on(row.scope_id)],
  )

  const packageFiles = table(
    'package_files',
    {
      package_id: int()
        .notNull()
        .references(() => packages.id, { onDelete: 'cascade' }),
      files: json<FileContent[]>().notNull(),
    },
    row => [primaryKey({ columns: [row.package_id] })],
  )

  const runs = table(
    'runs',
    {
      run_id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      /** The daemon that it is pinned to; null while it waits. */
      daemon_id: text(),
      job_id: text(),
      run_name: text(),
      root_run_id: text().notNull(),
      parent_run_id: text(),
      parent_phase: text(),
      call_path: json<string[]>().notNull(),
      call_depth: int().notNull(),
      /** Sorts the runs of a tree depth first. */
      tree_key: text().notNull(),
      team: text().notNull(),
      version: text(),
      state: text().notNull(),
      reason: text(),
      error: json<Json>(),
      inputs: json<JsonObject>().notNull(),
      outputs: json<Json>(),
      deliveries: json<Json[]>(),
      workspace: text(),
      attempt: int().notNull(),
      created_at: int().notNull(),
      started_at: int(),
      completed_at: int(),
    },
    row => [
      index('runs_tree').on(row.root_run_id, row.tree_key),
      index('runs_realm').on(row.realm_id, row.created_at),
      index('runs_completed').on(row.completed_at),
    ],
  )

  const runOf = () =>
    text()
      .notNull()
      .references(() => runs.run_id, { onDelete: 'cascade' })

  const phases = table(
    'phases',
    {
      run_id: runOf(),
      index: int().notNull(),
      name: text().notNull(),
      type: text().notNull(),
      agent: text(),
      action: text(),
      state: text().notNull(),
      reason: text(),
      attempt: int().notNull(),
      depends_on: json<string[]>().notNull(),
      started_at: int(),
      completed_at: int(),
      error: json<Json>(),
      ok: bool(),
      text: text().notNull(),
      data: json<Json>(),
      files: json<Json[]>().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.index] })],
  )

  const logs = table(
    'logs',
    {
      run_id: runOf(),
      seq: int().notNull(),
      phase: text(),
      at: int().notNull(),
      stream: text().notNull(),
      text: text().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.seq] })],
  )

  const events = table(
    'events',
    {
      id: id(),
      run_id: runOf(),
      name: text().notNull(),
      phase: text(),
      at: int().notNull(),
      data: json<Json>(),
    },
    row => [index('events_run').on(row.run_id, row.id)],
  )

  const artifacts = table(
    'artifacts',
    {
      run_id: runOf(),
      path: text().notNull(),
      phase: text().notNull(),
      name: text().notNull(),
      bytes: int().notNull(),
      sha256: text().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.path] })],
  )

  const receipts = table(
    'receipts',
    {
      run_id: runOf(),
      phase: text().notNull(),
      entry: text().notNull(),
      state: text().notNull(),
      receipt: json<JsonObject>().notNull(),
    },
    row => [primaryKey({ columns: [row.run_id, row.phase, row.entry] })],
  )

  const reviews = table(
    'reviews',
    {
      id: text().primaryKey(),
      run_id: runOf(),
      realm_id: text().notNull(),
      run_name: text(),
      phase: text().notNull(),
      entries: json<Json[]>().notNull(),
      kind: text().$type<'gate' | 'escalation'>().notNull(),
      reason: text(),
      prompt: text(),
      inputs: json<Json[]>().notNull(),
      reviewers: json<string[]>().notNull(),
      state: text().$type<'pending' | 'decided'>().notNull(),
      decision: text(),
      decided_by: text(),
      comment: text(),
      created_at: int().notNull(),
      decided_at: int(),
    },
    row => [index('reviews_realm').on(row.realm_id, row.state), index('reviews_run').on(row.run_id)],
  )

  const jobs = table(
    'jobs',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      run_id: runOf(),
      kind: text().$type<'run' | 'cancel' | 'resume' | 'decide'>().notNull(),
      payload: json<JsonObject>().notNull(),
      priority: int().notNull(),
      state: text().$type<'waiting' | 'leased' | 'accepted' | 'done' | 'failed' | 'dead' | 'cancelled'>().notNull(),
      /** Who alone may take it: chosen at dispatch, or the daemon that the run is pinned to. */
      daemon_id: text(),
      /** A workspace name that the daemon must have. */
      workspace: text(),
      /** Who holds or held it. */
      leased_to: text(),
      lease_id: text(),
      lease_until: int(),
      deliveries: int().notNull(),
      created_at: int().notNull(),
      /** From `queue_timeout`. */
      expires_at: int(),
      finished_at: int(),
      error: text(),
      idempotency_key: text(),
      created_by: int().notNull(),
    },
    row => [
      index('jobs_queue').on(row.realm_id, row.state, row.priority, row.created_at),
      index('jobs_run').on(row.run_id),
      uniqueIndex('jobs_idempotency').on(row.realm_id, row.idempotency_key),
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
      org_id: int(),
      realm_id: text(),
      /** The route: `orgs/add_member`. */
      action: text().notNull(),
      /** What it was done to. */
      target: text(),
    },
    row => [index('audit_org').on(row.org_id, row.id)],
  )

  return {
    users,
    orgs,
    orgMembers,
    scopes,
    scopeMembers,
    realms,
    realmMembers,
    realmTeams,
    invitations,
    tokens,
    tokenRealms,
    dispatchKeys,
    daemons,
    packages,
    packageFiles,
    runs,
    phases,
    logs,
    events,
    artifacts,
    receipts,
    reviews,
    jobs,
    audit,
  }
}

export type Tables = ReturnType<typeof tables>
