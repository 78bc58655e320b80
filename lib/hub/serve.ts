// Opens a hub: fills the `Hub` from the configuration, and creates the first account.

import { serveAlone } from '../../db/hub/alone.ts'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { type MetricsOptions, metricsOptions } from '../http/metrics.ts'
import type { Log, ProcessLog } from '../log/log.ts'
import { openTelemetry, type Telemetry } from '../log/telemetry.ts'
import { build } from '../program/version.ts'
import { environmentSecrets } from '../secrets/environment-secrets.ts'
import { createRedactor } from '../secrets/redact.ts'
import { line } from '../text/printable.ts'
import { printMessage } from '../text/terminal.ts'
import type { QuotaValues } from '../wire/records/quotas.ts'
import { firstStart } from './access/accounts.ts'
import { siteQuotas } from './access/quotas.ts'
import { createSignInLimit } from './access/sign-in-limit.ts'
import { countedStore } from './artifacts/counted-store.ts'
import type { HubConfig } from './config.ts'
import type { ArtifactStore } from './core/artifact-store.ts'
import { Counts } from './core/counts.ts'
import type { Hub, OwnBackups, PasswordCost } from './core/hub.ts'
import { DatabaseClock, type HubClock } from './core/hub-clock.ts'
import { LastSeen } from './core/last-seen.ts'
import { createMemo } from './core/memo.ts'
import { createNotifier } from './core/notifier.ts'
import { HubRunIds } from './core/run-ids.ts'
import { createSealer } from './core/sealer.ts'
import { Sealing } from './core/sealing.ts'
import { HubKeys } from './keys/hub-keys.ts'
import { checkKeys, hubName } from './keys/refused-starts.ts'
import { createLineage } from './lineage/lineage.ts'
import { PackageChecker } from './packages/packages.ts'

const HEARTBEAT_MS = 15_000
/** A hash takes a fraction of a second on purpose, to make guessing slow. */
const PASSWORD_COST: PasswordCost = { memoryCost: 65_536, timeCost: 2 }

export interface HubOptions {
  store: Store
  log: Log
  /** The default is that of the database. */
  clock?: HubClock
  /** Encrypts private dispatch keys and the secrets of webhooks at rest (`CADRE_HUB_KEY`). */
  key?: string | undefined
  /** The default is `PASSWORD_COST`. Tests choose a lower one. */
  passwordCost?: PasswordCost
  /** The default is 15 s. Tests choose less. */
  beatMs?: number
  trustProxy?: boolean
  publicUrl?: string | null
  hookHosts?: readonly string[]
  webhookAllow?: readonly string[]
  /** The default is what the environment says. */
  quotas?: QuotaValues
  metricsToken?: string | undefined
  /** The default is what the environment says. */
  metrics?: MetricsOptions
  artifacts?: ArtifactStore | null
  backups?: OwnBackups | null
  telemetry?: Telemetry | null
  /** Where agents that the user added lie: in the hub's home, and in the folder `CADRE_AGENTS`. */
  home: string
  agentsFolder?: string | undefined
}

export function createHub(options: HubOptions): Hub {
  const { store, log, key, passwordCost = PASSWORD_COST, beatMs = HEARTBEAT_MS, trustProxy = false } = options
  const { clock = new DatabaseClock({ store, log }) } = options
  const now = () => clock.now()
  const lived = () => clock.lived()
  const { webhookAllow = [], quotas = siteQuotas(process.env), metrics = metricsOptions(process.env) } = options
  if (!key) log.warn('CADRE_HUB_KEY is not set: private dispatch keys and webhook secrets are stored unencrypted')
  const checker = new PackageChecker({ home: options.home, extra: options.agentsFolder })
  const lastSeen = new LastSeen(store, log, { now, lived })
  const notifier = createNotifier(store.channel)
  const id = crypto.randomUUID()
  const sealer = createSealer(key)
  const keys = new HubKeys({ store, log, sealer, now, process: id })
  const lineage = createLineage({ store, log, now, lived, notifier, process: id, keys: () => keys.text() })
  options.telemetry?.describe({ 'service.instance.id': id })
  const counts = new Counts(metrics)
  return {
    id,
    store,
    log,
    now,
    lived,
    clock,
    clocksApart: { ms: 0 },
    refusedStarts: [],
    startedAt: lived(),
    memo: createMemo(() => store.epoch()),
    lineage,
    lastSeen,
    clocks: new Map(),
    fullDisks: new Map(),
    notifier,
    runIds: new HubRunIds(store, now),
    signInLimit: createSignInLimit(store, lived),
    sealer,
    keys,
    sealing: new Sealing(),
    passwordCost,
    beatMs,
    trustProxy,
    publicUrl: options.publicUrl ?? null,
    hookHosts: options.hookHosts ?? [],
    webhookAllow,
    quotas,
    metricsToken: options.metricsToken ?? null,
    metrics,
    artifacts: options.artifacts ? countedStore(options.artifacts, counts.storeCalls) : null,
    backups: options.backups ?? null,
    telemetry: options.telemetry ?? null,
    counts,
    ownChores: new Map(),
    checker,
    async close() {
      options.backups?.stop()
      await checker.close()
      await lastSeen.close()
      await lineage.close()
      await store.close()
      await options.telemetry?.close()
    },
  }
}

/** Opens the database as the configuration says. `log` is told what a migration waits for. */
export const openConfigured = ({ database, connections }: HubConfig, log: Pick<Log, 'warn'>): Promise<Store> =>
  openStore(database, { ...connections, log })

/** What a hub exports. Its log has no secrets, and those of its environment are masked once more. */
export async function hubTelemetry(
  env: Record<string, string | undefined>,
  log: ProcessLog,
): Promise<Telemetry | null> {
  const telemetry = await openTelemetry(env, 'cadre-hub', log, build)
  if (!telemetry) return null
  const { json } = createRedactor(environmentSecrets(env))
  telemetry.exportLines(json)
  return telemetry
}

/** Throws `conflict` while another hub serves the same SQLite database. */
export async function openHub(config: HubConfig, log: ProcessLog): Promise<Hub> {
  const hold = serveAlone(config.database)
  try {
    const telemetry = await hubTelemetry(process.env, log)
    try {
      return await openHeld(config, log, telemetry, hold)
    } catch (error) {
      // What the log has said of it is still exported.
      await telemetry?.close()
      throw error
    }
  } catch (error) {
    hold.release()
    throw error
  }
}

async function openHeld(
  config: HubConfig,
  log: ProcessLog,
  telemetry: Telemetry | null,
  hold: { release(): void },
): Promise<Hub> {
  const { key, trustProxy, webhookAllow, quotas, metricsToken, artifacts, home, agentsFolder } = config
  const { publicUrl, hookHosts, backups, metrics } = config
  const store = await openConfigured(config, log)
  if (store.polling?.noticed) {
    const why = { noticed: store.polling.noticed }
    log.warn(
      'connections to the database keep no sessions, so the hub does without: set CADRE_HUB_POOLER=transaction if that is meant, or give CADRE_HUB_DATABASE the address of PostgreSQL itself',
      why,
    )
  }
  const clock = new DatabaseClock({ store, log })
  const options = {
    publicUrl,
    hookHosts,
    log,
    telemetry,
    key,
    trustProxy,
    webhookAllow,
    quotas,
    metricsToken,
    metrics,
    artifacts,
    backups,
    home,
    agentsFolder,
  }
  await clock.open()
  const hub = createHub({ store, clock, ...options })
  await checkKeys(hub, hubName(config.port))
  await hub.lineage.open()
  await hub.keys.refresh()
  const password = await firstStart(hub, config.admin)
  if (password !== null) {
    printMessage(line`first start: account ${config.admin.username} with password ${password} (shown only now)`)
  }
  const close = async () => {
    await clock.close()
    await hub.close()
    hold.release()
  }
  return { ...hub, close }
}
