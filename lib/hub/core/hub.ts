// What all parts of the hub share: the database, the clock, and the little state that is kept in memory. `createHub` in
// lib/hub/serve.ts makes it.

import type { RefusedStart } from '../../../db/hub/lineage-tables.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import type { MetricsOptions } from '../../http/metrics.ts'
import type { Log } from '../../log/log.ts'
import type { Telemetry } from '../../log/telemetry.ts'
import type { Remembered } from '../../wire/protocol.ts'
import type { QuotaValues } from '../../wire/records/quotas.ts'
import type { PackageChecker } from '../packages/packages.ts'
import type { ArtifactStore } from './artifact-store.ts'
import type { ChoreOutcome } from './chore.ts'
import type { Counts } from './counts.ts'
import type { HubClock } from './hub-clock.ts'
import type { LastSeen } from './last-seen.ts'
import type { Memo } from './memo.ts'
import type { Notifier } from './notifier.ts'
import type { HubRunIds } from './run-ids.ts'
import type { Sealer } from './sealer.ts'
import type { Sealing } from './sealing.ts'

/** What the hash of a password costs. */
export interface PasswordCost {
  /** In KiB. */
  readonly memoryCost: number
  /** The number of passes over that memory. */
  readonly timeCost: number
}

export interface OwnBackups {
  newest(now: number): { at: number; bytes: number } | null
  makeIfDue(now: number): Promise<void>
  stop(): void
}

export interface Hub {
  /** The id of this process in `hub_processes`. */
  readonly id: string
  readonly store: Store
  readonly log: Log
  /** The time as it stands, in epoch milliseconds: for people, and for sessions, tokens and invitations. */
  readonly now: () => number
  /** What every limit of runs, jobs and daemons counts, in milliseconds. */
  readonly lived: () => number
  readonly clock: HubClock
  /** How far the clocks of the machines of hubs were apart when they were last compared, in milliseconds. */
  readonly clocksApart: { ms: number }
  /** The hubs on the same database that refused to start lately, by the names of their machines. */
  readonly refusedStarts: { hub: string; reason: RefusedStart }[]
  /** When this process began to listen, in lived time. */
  readonly startedAt: number
  readonly memo: Memo
  readonly lineage: Lineage
  readonly lastSeen: LastSeen
  /** By how many milliseconds the clocks of daemons are ahead, from the heartbeats that this process has received. */
  readonly clocks: Map<string, number>
  /** When daemons last said that their disk is full, from the polls that this process has received. */
  readonly fullDisks: Map<string, number>
  readonly notifier: Notifier
  readonly runIds: HubRunIds
  readonly signInLimit: SignInLimit
  readonly sealer: Sealer
  /** Which of its keys the hub seals with. lib/hub/keys has the rules. */
  readonly keys: Keys
  /** Of the audit log. */
  readonly sealing: Sealing
  readonly passwordCost: PasswordCost
  /** The interval between heartbeats that is asked of daemons. */
  readonly beatMs: number
  /** Whether the caller's address is read from `X-Forwarded-For` (`CADRE_TRUST_PROXY`). */
  readonly trustProxy: boolean
  /** The hub's address for people and senders, without a slash at its end (`CADRE_HUB_PUBLIC_URL`); null: it is not known. */
  readonly publicUrl: string | null
  /** The names of hosts by which hooks may be called (`CADRE_HOOK_HOSTS`); none: any. */
  readonly hookHosts: readonly string[]
  /** Addresses, ranges and names that webhooks may reach although they are not public (`CADRE_WEBHOOK_ALLOW`). */
  readonly webhookAllow: readonly string[]
  /** The quotas of realms that have none of their own (`CADRE_QUOTA_*`). */
  readonly quotas: QuotaValues
  /** Whoever presents it may read `/metrics` (`CADRE_METRICS_TOKEN`). */
  readonly metricsToken: string | null
  readonly metrics: MetricsOptions
  /** Where files of runs are kept (`CADRE_ARTIFACTS`). Null: they stay on the daemons. */
  readonly artifacts: ArtifactStore | null
  /** The backups that it makes by itself; null if it makes none. */
  readonly backups: OwnBackups | null
  /** Exports spans and the log (`OTEL_EXPORTER_OTLP_ENDPOINT`), or null. */
  readonly telemetry: Telemetry | null
  readonly counts: Counts
  /** What came of the chores that each hub does, by their names. What one hub does for all is in the table of chores. */
  readonly ownChores: Map<string, ChoreOutcome>
  readonly checker: PackageChecker
  close(): Promise<void>
}

export interface Keys {
  /** Throws `invalid_request` when the database needs a key that this hub lacks. Nothing may be sealed before. */
  check(): Promise<void>
  /** Chooses the key that seals, by what the other living hubs hold. */
  refresh(): Promise<void>
  /** The ids of living hubs that lack the first key of this one. */
  readonly lacking: readonly string[]
}

type DaemonRow = Tables['daemons']['$inferSelect']
type JobRow = Tables['jobs']['$inferSelect']

/**
 * Whether the database is the one that this hub had before, with all of its commits, or an older copy. lib/hub/lineage has
 * the rules.
 */
export interface Lineage {
  /** Compares the database with what is known of it. Nothing may be served before. */
  open(): Promise<void>
  /** The same while the hub serves. */
  check(): Promise<void>
  close(): Promise<void>
  readonly isOlderCopy: boolean
  /** The ids of daemons that call with a token that the older copy does not know. */
  readonly unknownDaemons: readonly string[]
  /** The count of commits that a reply to a daemon carries. */
  replyTo(daemon: Pick<DaemonRow, 'id' | 'realm_id' | 'approved_at'>): { memory?: Remembered }
  /** Compares the count that a daemon sends. No promise when the daemon has seen no more than there is. */
  compareCount(daemon: DaemonRow, seen: Remembered | undefined): Promise<void> | undefined
  /** Records that a daemon has sent everything that it has, in the transaction of the last of it. */
  recordFullReport(tx: Db, daemon: DaemonRow, copyId: string): Promise<void>
  /** Releases the held jobs that are no longer in doubt, after a daemon has reported or a person has decided. */
  applyConfirmations(): Promise<void>
  /** A call came with a token that the database does not know, from a daemon that says its id. */
  noteUnknownToken(daemonId: string | null): void
  /** Whether a message about an event of this time may have been sent before, as far as that is known. */
  doubtAt(realmId: string, at: number): 'unclear' | 'lost' | null
  /** Whether the hub does not know yet what the daemon has executed since an older copy was made. */
  awaitsDaemon(daemonId: string): boolean
  /** The names of the daemons that have to report before a held job is released. */
  awaitedDaemons(job: Pick<JobRow, 'copy_id' | 'realm_id' | 'daemon_id' | 'needs'>): string[]
  /** What people have to know, as text. */
  notice(): { older_copy?: string }
}

/** Limits the guessing of passwords. lib/hub/access/sign-in-limit.ts has the rules. */
export interface SignInLimit {
  /**
   * Returns the result of `check`, which says whether the password was right. Throws `rate_limited` without calling it
   * when too many attempts have failed, and waits while attempts that are still being checked could use up the limit.
   * What other hubs are checking counts as failed.
   */
  attempt(account: string, address: string, check: () => Promise<boolean>): Promise<boolean>
}
