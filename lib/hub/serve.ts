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
import { forgetRuns, loseOverdueRuns } from './runs.ts'

const HOUR_MS = 3_600_000
/** Runs that no daemon asks for end at most this much later than they should. */
const LOOK_MS = 2_000

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
  let busy = false
  let next = 0
  const work = async () => {
    if (busy) return
    busy = true
    await chore(hub, 'overdue runs were not ended', () => loseOverdueRuns(hub))
    if (Date.now() >= next) {
      next = Date.now() + HOUR_MS
      await chore(hub, 'old runs were not deleted', () => forgetOldRuns(hub, config.keepRunsDays))
    }
    busy = false
  }
  void work()
  const chores = setInterval(() => void work(), LOOK_MS)
  chores.unref()
  return { listening, chores }
}

async function chore(hub: Hub, failed: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    hub.log.warn(failed, { error: messageOf(error).split('\n', 1)[0] })
  }
}

async function forgetOldRuns(hub: Hub, days: number): Promise<void> {
  while ((await forgetRuns(hub, hub.now() - days * 24 * HOUR_MS)) > 0) await Bun.sleep(100)
}
