// What a serving hub does besides answering calls: it opens the database, creates the first account, and runs the
// chores.

import { openStore } from '../../db/hub/store.ts'
import { messageOf } from '../error.ts'
import type { Log } from '../log.ts'
import { firstStart } from './accounts.ts'
import type { HubConfig } from './config.ts'
import { createHub, type Hub } from './hub.ts'
import { forgetRuns, loseOverdueRuns } from './runs.ts'

const HOUR_MS = 3_600_000
/** A run that no daemon asks for ends at most this much later than its deadline. */
const LOOK_MS = 2_000

export async function openHub(config: HubConfig, log: Log): Promise<Hub> {
  const { database, key, trustProxy, home, agentsFolder } = config
  const hub = createHub({ store: await openStore(database), log, key, trustProxy, home, agentsFolder })
  const password = await firstStart(hub, config.admin)
  if (password !== null) {
    process.stderr.write(`first start: account ${config.admin.username} with password ${password} (shown only now)\n`)
  }
  return hub
}

/** Ends overdue runs every two seconds and deletes old runs every hour, until the returned function is called. */
export function keepChores(hub: Hub, { keepRunsDays }: Pick<HubConfig, 'keepRunsDays'>): () => void {
  let busy = false
  let next = 0
  const work = async () => {
    if (busy) return
    busy = true
    await chore(hub, 'overdue runs could not be ended', () => loseOverdueRuns(hub))
    if (Date.now() >= next) {
      next = Date.now() + HOUR_MS
      await chore(hub, 'old runs could not be deleted', () => forgetOldRuns(hub, keepRunsDays))
    }
    busy = false
  }
  void work()
  const chores = setInterval(() => void work(), LOOK_MS)
  chores.unref()
  return () => clearInterval(chores)
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
