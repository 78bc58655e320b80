// A hub in this process that serves like `bun hub.ts serve`, but a test can set its clock, read its log and flush the
// buffered times of use.

import { openStore } from '../../db/hub/open-store.ts'
import { isPostgres } from '../../db/hub/store.ts'
import { hubApp } from '../../hub.ts'
import { listen } from '../../lib/http/listen.ts'
import { firstStart } from '../../lib/hub/access/accounts.ts'
import { artifactStore } from '../../lib/hub/artifacts/artifacts.ts'
import { startChores } from '../../lib/hub/chores/chores.ts'
import { hubConfig } from '../../lib/hub/config.ts'
import type { Hub, PasswordCost } from '../../lib/hub/core/hub.ts'
import { createHub, hubTelemetry } from '../../lib/hub/serve.ts'
import { WEBHOOK_TOPIC } from '../../lib/hub/webhooks/webhooks.ts'
import { createLog } from '../../lib/log/log.ts'
import { copyBegun } from './begun.ts'
import { drivenClock } from './driven-clock.ts'
import { environmentAt } from './program.ts'

/** `CADRE_METRICS_TOKEN` of the hubs. */
export const METRICS_TOKEN = 'a-token-that-reads-metrics'

export interface HubPlace {
  database: string
  home: string
  /** The password of `admin`, who is created on an empty database. */
  password: string
  passwordCost: PasswordCost
  port?: number
  /** By how many milliseconds the clock is ahead at first. */
  skew?: number
  /** Variables of the environment, such as `CADRE_ARTIFACTS`. */
  env?: Record<string, string>
  /** Whether it does nothing by itself. */
  isIdle?: boolean
}

export interface ServedHub {
  url: string
  /** Does what is asked, and returns the lines of the log if asked for them. */
  ask(ask: 'skew' | 'flush' | 'log' | 'webhooks', ms?: number): Promise<string[]>
  stop(): Promise<void>
}

export async function serveHub(place: HubPlace): Promise<ServedHub & { hub: Hub }> {
  const { database, home, password, passwordCost, port = 0 } = place
  const env: Record<string, string> = { ...environmentAt(home), ...place.env }
  const config = hubConfig({}, env)
  const lines: string[] = []
  let { skew = 0 } = place
  if (!isPostgres(database)) copyBegun('hub.db', database)
  const log = createLog({ level: 'debug', format: 'json', write: line => lines.push(line) })
  const hub = createHub({
    store: await openStore(database),
    log,
    telemetry: await hubTelemetry(env, log),
    clock: drivenClock(() => Date.now() + skew),
    home,
    passwordCost,
    ...(env.TEST_BEAT_MS && { beatMs: Number(env.TEST_BEAT_MS) }),
    // Receivers of the tests. The other addresses of this machine stay refused.
    webhookAllow: ['127.0.0.1'],
    metricsToken: METRICS_TOKEN,
    metrics: config.metrics,
    artifacts: artifactStore(env),
    key: config.key,
    trustProxy: config.trustProxy,
    publicUrl: config.publicUrl,
    hookHosts: config.hookHosts,
    quotas: config.quotas,
  })
  await hub.lineage.open()
  await firstStart(hub, { username: 'admin', password })
  const listening = listen(hubApp(hub), { host: '127.0.0.1', port })
  const chores = place.isIdle ? null : startChores(hub, config)
  return {
    hub,
    url: listening.url,
    async ask(ask, ms = 0) {
      if (ask === 'skew') {
        skew = ms
        // What is due by now is not waited for.
        chores?.runDue()
        hub.notifier.notify(WEBHOOK_TOPIC)
      }
      if (ask === 'flush') await hub.lastSeen.flush()
      if (ask === 'webhooks') hub.notifier.notify(WEBHOOK_TOPIC)
      return ask === 'log' ? lines : []
    },
    async stop() {
      listening.leave()
      await listening.stop()
      await chores?.stop()
      await hub.close()
    },
  }
}
