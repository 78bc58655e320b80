// Who may make a call, as its declaration says it. The hub enforces `HubAccess` (lib/hub/access), and the daemon
// `DaemonAccess` (lib/daemon/access).

import type { RequiredAccess } from './grants.ts'

/** Roles, from lowest to highest. */
export const ROLES = {
  org: ['member', 'admin', 'owner'],
  scope: ['org', 'member', 'owned'],
  realm: ['member', 'operator', 'admin'],
} as const

export type Kind = keyof typeof ROLES
export type Role<K extends Kind> = (typeof ROLES)[K][number]

/**
 * What a call requires of user tokens: the grant and the role on its object. If the grant names entities, any one of
 * them is enough; if it names none, no grant is required.
 */
export interface UserRule {
  readonly grant?: RequiredAccess
  /** What the grant must have besides: of these entities, any one is enough. */
  readonly also?: RequiredAccess
  readonly org?: Role<'org'>
  readonly scope?: Role<'scope'>
  readonly realm?: Role<'realm'>
  /** Only site admins may call. */
  readonly site?: true
}

/** Who may make a call to the hub. */
export type HubAccess =
  /** Anybody, without a credential. */
  | { readonly stranger: true }
  /** Callers with a user token that has this grant, and with this role. */
  | { readonly user: UserRule }
  /** Callers with a realm token. `refusal` is the code that a user token gets instead of 401. */
  | { readonly realm: true | { readonly refusal: 'forbidden' } }
  /** Callers with a realm token, or with a user token that has this grant and with this role. */
  | { readonly either: UserRule }
  /** Those who operate the hub: site admins, and programs with `CADRE_METRICS_TOKEN`. */
  | { readonly operator: true }
  /** Callers with a user token or without a credential. */
  | { readonly optional: true }

/** What a remote caller's credential must allow. */
export type RemoteAction = 'access' | 'execute' | 'cancel'

/** Who may make a call to a daemon. */
export interface DaemonAccess {
  /** What a caller on this machine must present: nothing, or the local token. */
  readonly local: 'open' | 'token'
  /** What a caller from another machine must be allowed to do. Null means that such callers are always refused. */
  readonly remote: RemoteAction | null
  /**
   * The call is about a run, and the route checks which. Calls without this mark refuse a credential that is bound to
   * one run.
   */
  readonly ofRun?: true
}

/** Every caller on this machine, and nobody else. */
export const HERE = { local: 'open', remote: null } as const satisfies DaemonAccess
/** Whoever has the local token. */
export const OWNER = { local: 'token', remote: null } as const satisfies DaemonAccess
/** Whoever may read runs. */
export const READER = { local: 'open', remote: 'access' } as const satisfies DaemonAccess
/** Whoever may read the run that the call is about. */
export const READER_OF_RUN = { ...READER, ofRun: true } as const satisfies DaemonAccess

/** Whoever may read the runs of a realm at a hub, and what belongs to them. */
export const READ = { grant: { runs: 'read', dispatch: 'read' }, realm: 'member' } as const
/** The same by the grant for runs alone, for what is told of many runs at once. */
export const READ_RUNS = { grant: { runs: 'read' }, realm: 'member' } as const
/** Whoever may start, cancel and answer runs of a realm at a hub. */
export const WRITE = { grant: { runs: 'write', dispatch: 'write' }, realm: 'operator' } as const
