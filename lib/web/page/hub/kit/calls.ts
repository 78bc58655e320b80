// The calls of the hub's API that its pages make: what each takes and returns. The schemas of `lib/wire` stay on the
// server.

import type { Static } from 'typebox'
import type { JsonObject } from '../../../../json.ts'
import type { Field } from '../../../../wire/calls/forms.ts'
import type { Grant } from '../../../../wire/grants.ts'
import type * as Hooks from '../../../../wire/records/hooks.ts'
import type * as Records from '../../../../wire/records/hub-records.ts'
import type * as Copies from '../../../../wire/records/older-copies.ts'
import type * as Packages from '../../../../wire/records/packages.ts'

export type Realm = Static<typeof Records.Realm>
export type Role = Realm['my_role']
export type Daemon = Static<typeof Records.Daemon>
export type Run = Static<typeof Records.Run>
export type HubReview = Static<typeof Records.Review>
export type HubPhase = Static<typeof Records.Phase>
export type QueuedJob = Static<typeof Records.QueuedJob>
export type Token = Static<typeof Records.Token>
export type AuditEntry = Static<typeof Records.AuditEntry>
export type Package = Static<typeof Packages.Package>
export type Webhook = Static<typeof Hooks.Webhook>
export type Delivery = Static<typeof Hooks.WebhookDelivery>
export type Reconciliation = Copies.Reconciliation
type Org = Static<typeof Records.Org>
type Member = Static<typeof Records.Member>
type Line = Static<typeof Records.Line>
type State = { [K in keyof typeof Records.LOG_STATE]: Static<(typeof Records.LOG_STATE)[K]> }

export interface Invitation {
  id: string
  realm_id: string
  role: Role
  username: string | null
  expires_at: number
  created_by: string
  created_at: number
}

/** What `teams/reach` says of a version. */
export type Reach = Packages.Reach

interface Page {
  limit?: number
  offset?: number
}
interface OfRealm {
  realm_id: string
}
interface OfRun {
  run_id: string
}
type Anything = Promise<unknown>

/** By path below `/v1`: a function from the body to the data. */
export interface HubCalls {
  'audit/list': (
    body: Page & { org_id?: number; action?: string; since?: number; until?: number },
  ) => Promise<{ audit: AuditEntry[]; total: number }>
  'auth/generate_token': (body: {
    type: 'user' | 'realm'
    name: string
    permissions?: Grant
    realm_ids?: string[]
    expires_in_days?: number
  }) => Promise<{ id: number; token: string }>
  'auth/get_tokens': (body: Page) => Promise<{ tokens: Token[]; total: number }>
  'auth/revoke_token': (body: { id: number }) => Anything
  'auth/rotate_token': (body: { id: number }) => Promise<{ token: string }>
  'daemons/approve': (body: { daemon_id: string }) => Anything
  'daemons/get': (body: { daemon_id: string }) => Promise<Daemon>
  'daemons/list': (body: Page & Partial<OfRealm>) => Promise<{ daemons: Daemon[]; total: number }>
  'daemons/remove': (body: { daemon_id: string }) => Anything
  'daemons/reconcile': (body: OfRealm & { without?: string }) => Promise<Reconciliation>
  'daemons/update': (body: { daemon_id: string; paused: boolean }) => Anything
  'dispatch/cancel': (body: OfRun) => Anything
  'dispatch/queue': (body: Page & OfRealm) => Promise<{ jobs: QueuedJob[]; total: number }>
  'dispatch/resume': (body: OfRun & { from_phase?: string }) => Anything
  'dispatch/run': (body: {
    realm_id: string
    daemon_id?: string
    team: string
    inputs: JsonObject
    run_name?: string
    workspace?: string
    queue_timeout?: string
    requires?: { labels: string[] }
  }) => Promise<{ run_id: string }>
  'orgs/list': (body: Page) => Promise<{ orgs: Org[]; total: number }>
  'realms/accept_invite': (body: {
    token: string
    username?: string
    password?: string
  }) => Promise<OfRealm & { role: Role; user: { username: string } }>
  'realms/add_member': (body: OfRealm & { username: string; role: Role }) => Anything
  'realms/add_team': (body: OfRealm & { team: string }) => Anything
  'realms/add_webhook': (
    body: OfRealm & { url: string; events: Webhook['events'] },
  ) => Promise<Webhook & { secret: string }>
  'realms/create': (body: { org_id: number; slug: string; name: string }) => Promise<Realm>
  'realms/invitations': (body: Page & OfRealm) => Promise<{ invitations: Invitation[]; total: number }>
  'realms/invite': (
    body: OfRealm & { role: Role; username?: string },
  ) => Promise<{ id: string; token: string; expires_at: number }>
  'realms/list': (body: Page) => Promise<{ realms: Realm[]; total: number }>
  'realms/members': (body: Page & OfRealm) => Promise<{ members: Member[]; total: number }>
  'realms/remove_member': (body: OfRealm & { username: string }) => Anything
  'realms/remove_team': (body: OfRealm & { team: string }) => Anything
  'realms/remove_webhook': (body: OfRealm & { id: string }) => Anything
  'realms/revoke_invite': (body: { id: string }) => Anything
  'realms/teams': (body: Page & OfRealm) => Promise<{ teams: { team: string; added_at: number }[]; total: number }>
  'realms/webhook_deliveries': (body: Page & OfRealm) => Promise<{ deliveries: Delivery[]; total: number }>
  'realms/get': (body: OfRealm) => Promise<Required<Static<typeof Records.RealmDetail>>>
  'realms/webhook_take_over': (body: OfRealm & { id: string }) => Anything
  'realms/webhooks': (body: Page & OfRealm) => Promise<{ webhooks: Webhook[]; total: number }>
  'reviews/decide': (body: JsonObject) => Anything
  'reviews/list': (
    body: Page & { run_id?: string; state?: string; review_id?: string },
  ) => Promise<{ reviews: HubReview[]; total: number }>
  'runs/artifacts': (body: OfRun) => Promise<{ artifacts: Static<typeof Records.Artifact>[]; total: number }>
  'runs/get': (body: OfRun) => Promise<Static<typeof Records.WholeRun>>
  'runs/list': (body: Page & { team?: string; state?: string }) => Promise<{ runs: Run[]; total: number }>
  'runs/logs': (
    body: OfRun & { phase?: string; after_seq?: number; limit?: number },
  ) => Promise<{ lines: Line[]; next: number } & State>
  'runs/phases': (body: OfRun & { phase?: string }) => Promise<{ run_id: string; state: string; phases: HubPhase[] }>
  'runs/tree': (body: OfRun) => Promise<{ root_run_id: string; runs: Static<typeof Records.TreeEntry>[] }>
  'scopes/list': (body: Page) => Promise<{ scopes: Static<typeof Records.Scope>[]; total: number }>
  'teams/download': (body: { team: string }) => Promise<Packages.Download>
  'teams/get': (body: { team: string }) => Promise<Package & { inputs: Field[]; dependencies: string[] }>
  'teams/list': (body: Page & { query?: string }) => Promise<{ teams: Package[]; total: number }>
  'teams/reach': (body: { team: string }) => Promise<Reach>
  'teams/versions': (body: Page & { team: string }) => Promise<{ versions: Package[]; total: number }>
  'teams/yank': (body: { team: string }) => Anything
  'users/change_password': (body: { password: string; new_password: string; revoke_tokens?: boolean }) => Anything
}
