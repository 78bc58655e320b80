// What the hub's routes share: the database, the clock, and the little state that is kept in memory.

import type { Store } from '../../../db/hub/store.ts'
import type { Log } from '../../log/log.ts'
import type { Tracer } from '../../log/trace.ts'
import type { QuotaValues } from '../../wire/records/quotas.ts'
import type { ArtifactStore } from '../artifacts/artifacts.ts'
import { PackageChecker } from '../packages/packages.ts'
import { Counts } from './counts.ts'
import { LastSeen } from './last-seen.ts'
import { createMemo, type Memo } from './memo.ts'
import { Memory } from './memory.ts'
import { createNotifier, type Notifier } from './notifier.ts'
import { createSealer, type Sealer } from './sealer.ts'
import { Sealing } from './sealing.ts'
import { siteQuotas } from './site-quotas.ts'
import { createThrottle, type Throttle } from './throttle.ts'

/** What the hash of a password costs. */
export interface PasswordCost {
  /** In KiB. */
  readonly memoryCost: number
  /** The number of passes over that memory. */
  readonly timeCost: number
}

const BEAT_MS = 15_000
/** A hash takes a fraction of a second on purpose, to make guessing slow. */
export const PASSWORD_COST: PasswordCost = { memoryCost: 65_536, timeCost: 2 }

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

export interface HubOptions {
  store: Store
  log: Log
  now?: () => number
  /** Encrypts private dispatch keys and the secrets of webhooks at rest (`CADRE_HUB_KEY`). */
  key?: string | undefined
  /** The default is `PASSWORD_COST`. Tests choose a lower one. */
  passwordCost?: PasswordCost
  /** The default is 15 s. Tests choose less. */
  beatMs?: number
  trustProxy?: boolean
  webhookAllow?: readonly string[]
  /** The default is what the environment says. */
  quotas?: QuotaValues
  metricsToken?: string | undefined
  artifacts?: ArtifactStore | null
  tracer?: Tracer | null
  /** Where agents that the user added lie: in the hub's home, and in the folder `CADRE_AGENTS`. */
  home: string
  agentsFolder?: string | undefined
}

export function createHub(options: HubOptions): Hub {
  const {
    store,
    log,
    now = Date.now,
    key,
    passwordCost = PASSWORD_COST,
    beatMs = BEAT_MS,
    trustProxy = false,
  } = options
  const { webhookAllow = [], quotas = siteQuotas(process.env) } = options
  if (!key) log.warn('CADRE_HUB_KEY is not set: private dispatch keys and webhook secrets are stored unencrypted')
  const checker = new PackageChecker({ home: options.home, extra: options.agentsFolder })
  const lastSeen = new LastSeen(store, log, now)
  const notifier = createNotifier(store.channel)
  const memory = new Memory({ store, log, now, notifier })
  return {
    store,
    log,
    now,
    startedAt: now(),
    memo: createMemo(() => store.epoch()),
    memory,
    lastSeen,
    clocks: new Map(),
    fullDisks: new Map(),
    notifier,
    throttle: createThrottle(store, now),
    sealer: createSealer(key),
    sealing: new Sealing(log),
    passwordCost,
    beatMs,
    trustProxy,
    webhookAllow,
    quotas,
    metricsToken: options.metricsToken ?? null,
    artifacts: options.artifacts ?? null,
    tracer: options.tracer ?? null,
    counts: new Counts(),
    checker,
    async close() {
      await checker.close()
      await lastSeen.close()
      await memory.close()
      await options.tracer?.close()
      await store.close()
    },
  }
}
