// The records in the hub's replies, which are named components of OpenAPI. What only one route returns is declared
// beside that route.

import type { Static, TProperties, TSchema } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { Grant } from '../grants.ts'
import { OfferedAgent } from '../needs.ts'
import { AnyList, AnyText as Text, Time } from '../parts.ts'
import { PublicKey } from '../protocol.ts'
import { Standing } from '../standing.ts'
import { SEAL } from './audit.ts'
import { REALM_QUOTAS } from './quotas.ts'
import { AskedReview } from './review-records.ts'
import { RunView } from './run-records.ts'

/** ISO 8601. */
const Iso = Type.String({ format: 'date-time' })

/** A record with additional properties, which has no name of its own. */
export function withMore<P extends TProperties, Q extends TProperties>(known: { properties: P }, more: Q) {
  return Type.Object({ ...known.properties, ...more })
}

export const User = named('user', {
  id: Type.Integer(),
  username: Text,
  site_admin: Type.Boolean(),
  created_at: Time,
  suspended_at: nullable(Time),
})

export const Token = named('token', {
  id: Type.Integer(),
  user_id: Type.Integer(),
  name: Text,
  type: Type.Enum(['user', 'realm']),
  kind: Type.Enum(['durable', 'session']),
  permissions: Type.Object({
    org_ids: Type.Array(Type.Integer()),
    access: Type.Enum(['read', 'write', 'admin', 'none']),
  }),
  grant: Grant,
  realm_ids: Type.Array(Text),
  created_at: Iso,
  last_used_at: nullable(Iso),
  expires_at: nullable(Iso),
  revoked_at: nullable(Iso),
})
export type Token = Static<typeof Token>

export const Org = named('org', {
  id: Type.Integer(),
  slug: Text,
  display_name: Text,
  created_at: Time,
  my_role: Type.Enum(['member', 'admin', 'owner']),
})
export type Org = Static<typeof Org>

export const Scope = named('scope', {
  id: Type.Integer(),
  org_id: Type.Integer(),
  slug: Text,
  display_name: Text,
  created_at: Time,
  my_role: Type.Enum(['org', 'member', 'owned']),
})
export type Scope = Static<typeof Scope>

export const RealmRole = Type.Enum(['member', 'operator', 'admin'])
export type RealmRole = Static<typeof RealmRole>

export const Realm = named('realm', {
  id: Text,
  org_id: Type.Integer(),
  slug: Text,
  name: Text,
  created_at: Time,
  my_role: RealmRole,
})
export type Realm = Static<typeof Realm>

/** A realm with its quotas and what is used of them, and with who is told of failures. */
export const RealmDetail = named('realm_detail', {
  ...Realm.properties,
  ...REALM_QUOTAS,
  /** Older hubs have none of this. */
  notify: Type.Optional(
    nullable(
      Type.Object({
        on_fail: Type.Array(Text, { description: 'The accounts that are told of what fails.' }),
        unreached: Type.Array(Text, { description: 'Those that no daemon has which is online now.' }),
      }),
      { description: 'Who is told of what fails in the realm and has no listener; null: nobody.' },
    ),
  ),
})

/** An account in an org, a scope or a realm. */
export const Member = named('member', { user_id: Type.Integer(), username: Text, role: Text })
export type Member = Static<typeof Member>

/** The reply to setting a member's role in `of`. Without the role, it is the reply to removing the member. */
export function memberOf<K extends string, S extends TSchema>(key: K, of: S) {
  const gone = Type.Object({
    id: Type.Integer(),
    ...({ [key]: of } as Record<K, S>),
    user_id: Type.Integer(),
    username: Text,
  })
  return { set: withMore(gone, { role: Text }), gone }
}

const Owned = Type.Object({ id: Text, realm_id: Text, name: Text })
/** What somebody owns who lost a role. It does nothing until somebody takes it over or makes another. */
export const OWNS = {
  /** Older hubs do not list it. */
  owns: Type.Optional(
    Type.Object(
      {
        ...{ webhooks: Type.Array(Owned), tokens: Type.Array(Owned), invitations: Type.Array(Owned) },
        triggers: Type.Optional(Type.Array(Owned)),
      },
      { description: 'What the account made and what acts for it in the realms that it left, at most 100 of each.' },
    ),
  ),
}

/** The keys of an org, current first. */
export const Keys = named('dispatch_keys', {
  id: Text,
  org_id: Type.Integer(),
  kid: Text,
  dispatch_public_key: Text,
  dispatch_keys: Type.Array(PublicKey),
  rotated_at: Time,
})

export const Daemon = named('daemon', {
  id: Text,
  daemon_id: Text,
  realm_id: Text,
  name: Text,
  hostname: nullable(Text),
  version: nullable(Text),
  commit: Type.Optional(
    nullable(Text, { description: 'The commit that it is made of; null: it does not say. Older hubs do not say.' }),
  ),
  capacity: nullable(Type.Integer()),
  agents: Type.Array(OfferedAgent),
  labels: Type.Record(Type.String(), Text),
  workspaces: Type.Array(Text),
  sandbox: nullable(Text),
  accounts: Type.Optional(
    Type.Array(Text, { description: 'Where it can tell people something, as `agent:channel`. Older hubs do not say.' }),
  ),
  environments: Type.Optional(
    Type.Array(Text, { description: 'The environments of its settings that runs can have. Older hubs do not say.' }),
  ),
  status: Text,
  stuck: Type.Boolean(),
  starts: Type.Optional(nullable(Type.Integer())),
  /** Whether the daemon gets jobs. */
  approved: Type.Boolean(),
  /** Whether an operator lets it take no more runs. */
  paused: Type.Boolean(),
  /** Milliseconds by which its clock is ahead; null while this hub has not heard it. Older hubs do not say. */
  clock_offset: Type.Optional(nullable(Type.Integer())),
  standing: Type.Optional(
    nullable(Standing, { description: 'How it stands; null: it does not say. Older hubs do not say.' }),
  ),
  examine: Type.Optional(
    nullable(Time, { description: 'When an operator last asked that its doctors look now. Older hubs do not say.' }),
  ),
  examined: Type.Optional(nullable(Time, { description: 'The `examine` for which they have. Older hubs do not say.' })),
  token_expires_at: Type.Optional(
    nullable(Time, { description: 'When its realm token expires; null for never. Older hubs do not say.' }),
  ),
  registered_at: Time,
  last_seen_at: Time,
  removed_at: nullable(Time),
})

export type Daemon = Static<typeof Daemon>

/** Daemons may be newer than this program and have states and kinds that it does not know. */
const RunState = Text

/** A run as a hub lists it: as its daemon does, and with what only a hub knows. */
export const Run = named('run', {
  ...RunView.properties,
  realm_id: Text,
  daemon_id: nullable(Text),
  job_id: nullable(Text),
  created_at: Time,
})

export const Artifact = named('artifact', {
  phase: Text,
  name: Text,
  path: Text,
  bytes: Type.Integer(),
  sha256: Text,
  /** Whether `artifacts/get` has it. The file is on the daemon of its run in any case. */
  stored: Type.Boolean(),
})

export const Review = named('review', {
  ...AskedReview.properties,
  realm_id: Text,
  /** The form as the daemon reported it, also with kinds of fields that the hub does not know. */
  inputs: AnyList,
  reviewers: Type.Array(Text),
})

/** A job that waits, and what it waits for. */
export const QueuedJob = named('queued_job', {
  job_id: Text,
  run_id: Text,
  kind: Text,
  state: Text,
  priority: Type.Integer(),
  team: nullable(Text),
  daemon_id: nullable(Text),
  workspace: nullable(Text),
  deliveries: Type.Integer(),
  created_at: Time,
  expires_at: nullable(Time),
  waiting_for: nullable(Text),
})
export const Dispatched = named('dispatched', {
  run_id: Text,
  job_id: Text,
  state: RunState,
  waiting_for: Type.Optional(Text),
})
export type Dispatched = Static<typeof Dispatched>
/** What became of an order besides its job. */
export const ORDER_FATE = {
  already_waits: Type.Optional(
    Type.Boolean({ description: 'Whether the same order was given before and its daemon has not answered it.' }),
  ),
}
/** An order about a run, and its state so far. */
export const Ordered = named('ordered', { id: Text, run_id: Text, job_id: Text, state: RunState, ...ORDER_FATE })

export const AuditEntry = named('audit_entry', {
  id: Type.Integer(),
  at: Time,
  user_id: nullable(Type.Integer()),
  username: nullable(Text),
  token_id: nullable(Type.Integer()),
  address: nullable(Text),
  org_id: nullable(Type.Integer()),
  realm_id: nullable(Text),
  action: Text,
  target: nullable(Text),
  ...SEAL,
})
