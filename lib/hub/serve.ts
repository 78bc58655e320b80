// The hub as a process: store, routes, listening, and the chores beside them.

import { openStore } from '../../db/hub/store.ts'
import manifest from '../../package.json'
import { messageOf } from '../error.ts'
import { type Api, createApi } from '../http/api.ts'
import { health, type Listening, listen, stopOnSignal } from '../http/listen.ts'
import { openapiRoutes } from '../http/openapi/routes.ts'
import type { Log } from '../log.ts'
import { firstStart } from './accounts.ts'
import type { HubConfig } from './config.ts'
import { createHub, type Hub } from './hub.ts'
import { hubRoutes } from './routes.ts'
import { forgetRuns } from './runs.ts'

const HOUR_MS = 3_600_000

const INFO = {
  title: 'cadre hub',
  version: manifest.version,
  description: 'Tokens, tenancy, packages, dispatch, and the runs of all daemons.',
}

export async function openHub(config: HubConfig, log: Log): Promise<Hub> {
  const { database, key, trustProxy, home, agentsFolder } = config
  const hub = createHub({ store: await openStore(database), log, key, trustProxy, home, agentsFolder })
  const password = await firstStart(hub, config.admin)
  if (password !== null) {
    process.stderr.write(`first start: account ${config.admin.username} with password ${password} (shown only now)\n`)
  }
  return hub
}

/** Serves until SIGTERM or SIGINT. */
export async function serveHub(config: HubConfig, log: Log): Promise<void> {
  const hub = await openHub(config, log)
  const { listening, chores } = startHub(hub, config)
  stopOnSignal(listening, log, async () => {
    clearInterval(chores)
    await hub.close()
  })
  process.stdout.write(`hub listening on ${listening.url}\n`)
}

/** Every route, declared and not served yet. */
export function hubApi(hub: Hub): Api {
  const api = createApi({ log: hub.log })
  health(api, () => ({ version: manifest.version }))
  hubRoutes(api, hub)
  openapiRoutes(api, INFO)
  return api
}

export function startHub(
  hub: Hub,
  config: Pick<HubConfig, 'host' | 'port' | 'keepRunsDays'>,
): { listening: Listening; chores: Timer } {
  const api = hubApi(hub)
  const listening = listen(api, { host: config.host, port: config.port })
  const forget = () => void forgetOldRuns(hub, config.keepRunsDays)
  forget()
  const chores = setInterval(forget, HOUR_MS)
  chores.unref()
  return { listening, chores }
}

async function forgetOldRuns(hub: Hub, days: number): Promise<void> {
  try {
    while ((await forgetRuns(hub, hub.now() - days * 24 * HOUR_MS)) > 0) await Bun.sleep(100)
  } catch (error) {
    hub.log.warn('old runs were not deleted', { error: messageOf(error) })
  }
}
