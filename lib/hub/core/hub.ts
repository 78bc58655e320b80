// What all parts of the hub share: the database, the clock, and the little state that is kept in memory. `createHub` in
// lib/hub/serve.ts makes it.

import type { Store } from '../../../db/hub/store.ts'
import type { Log } from '../../log/log.ts'
import type { Tracer } from '../../log/trace.ts'
import type { QuotaValues } from '../../wire/records/quotas.ts'
import type { PackageChecker } from '../packages/packages.ts'
import type { ArtifactStore } from './artifact-store.ts'
import type { Counts } from './counts.ts'
import type { LastSeen } from './last-seen.ts'
import type { Memo } from './memo.ts'
import type { Memory } from './memory.ts'
import type { Notifier } from './notifier.ts'
import type { Sealer } from './sealer.ts'
import type { Sealing } from './sealing.ts'
import type { Throttle } from './throttle.ts'

/** What the hash of a password costs. */
export interface PasswordCost {
  /** In KiB. */
  readonly memoryCost: number
  /** The number of passes over that memory. */
  readonly timeCost: number
}

export interface Hub {
  readonly store: Store
  readonly log: Log
  /** The current time in epoch milliseconds. */
  readonly now: () => number
  /** When this process began to listen. */
  readonly startedAt: number
  readonly memo: Memo
  /** Whether the database is the one that was here, and whole. */
  readonly memory: Memory
  readonly lastSeen: LastSeen
  /** By how many milliseconds the clocks of daemons are ahead, as far as this process has heard their heartbeats. */
  readonly clocks: Map<string, number>
  /** When daemons last said that their disk is full, as far as this process has heard their polls. */
  readonly fullDisks: Map<string, number>
  readonly notifier: Notifier
  readonly throttle: Throttle
  readonly sealer: Sealer
  /** Of the audit log. */
  readonly sealing: Sealing
  readonly passwordCost: PasswordCost
  /** The interval between heartbeats that is asked of daemons. */
  readonly beatMs: number
  /** Whether the caller's address is read from `X-Forwarded-For` (`CADRE_TRUST_PROXY`). */
  readonly trustProxy: boolean
  /** Addresses, ranges and names that webhooks may reach although they are not public (`CADRE_WEBHOOK_ALLOW`). */
  readonly webhookAllow: readonly string[]
  /** The quotas of realms that have none of their own (`CADRE_QUOTA_*`). */
  readonly quotas: QuotaValues
  /** Whoever presents it may read `/metrics` (`CADRE_METRICS_TOKEN`). */
  readonly metricsToken: string | null
  /** Where files of runs are kept (`CADRE_ARTIFACTS`). Null: they stay on the daemons. */
  readonly artifacts: ArtifactStore | null
  /** Exports spans (`OTEL_EXPORTER_OTLP_ENDPOINT`), or null. */
  readonly tracer: Tracer | null
  readonly counts: Counts
  readonly checker: PackageChecker
  close(): Promise<void>
}
