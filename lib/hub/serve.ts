// What a serving hub does besides answering calls: it opens the database, creates the first account, and runs the
// chores.

import { serveAlone } from '../../db/hub/alone.ts'
import { openStore } from '../../db/hub/store.ts'
import { messageOf } from '../error.ts'
import type { Log } from '../log/log.ts'
import { openTracer } from '../log/tracing.ts'
import { line } from '../text/printable.ts'
import { tell } from '../text/terminal.ts'
import { firstStart } from './access/accounts.ts'
import { ONLINE_MS } from './access/daemons.ts'
import { type HubConfig, KEEP_AUDIT_DAYS } from './config.ts'
import { createHub, type Hub } from './core/hub.ts'
import { removeLeftFiles } from './reports/kept-files.ts'
import { passSilentHolders } from './runs/places.ts'
import { countAllUse } from './runs/quotas.ts'
import { forgetRuns, loseOverdueRuns } from './runs/runs.ts'
import { forgetAudit, sealAudit } from './webhooks/audit-chain.ts'
import { forgetDeliveries, sendWebhooks } from './webhooks/webhook-delivery.ts'
import { tellStaleDaemons } from './webhooks/webhooks.ts'

const HOUR_MS = 3_600_000
/** A run that no daemon asks for ends at most this much later than its deadline. */
const LOOK_MS = 2_000

/** Throws `conflict` while another hub serves the same SQLite database. */
export async function openHub(config: HubConfig, log: Log): Promise<Hub> {
  const { database, key, trustProxy, webhookAllow, quotas, metricsToken, artifacts, home, agentsFolder } = config
  const hold = serveAlone(database)
  const tracer = await openTracer(process.env, 'cadre-hub', log)
  const options = { log, tracer, key, trustProxy, webhookAllow, quotas, metricsToken, artifacts, home, agentsFolder }
  const hub = createHub({ store: await openStore(database), ...options })
  await hub.memory.open()
  const password = await firstStart(hub, config.admin)
  if (password !== null) {
    tell(line`first start: account ${config.admin.username} with password ${password} (shown only now)`)
  }
  const close = async () => {
    await hub.close()
    hold.release()
  }
  return { ...hub, close }
}

/**
 * Ends overdue runs and looks for silent daemons every two seconds, seals the audit log, deletes what is old every hour, and sends webhooks,
 * until `stop` is called. `look` does at once what is done every two seconds.
 */
export function keepChores(
  hub: Hub,
  { keepRunsDays, keepAuditDays = KEEP_AUDIT_DAYS }: Pick<HubConfig, 'keepRunsDays'> & Partial<HubConfig>,
): { look(): Promise<void>; stop(): Promise<void> } {
  let busy = false
  let next = 0
  // While this hub was away, no daemon could call it.
  const daemonsJudged = hub.now() + ONLINE_MS
  const work = async () => {
    if (busy) return
    busy = true
    await chore(hub, 'the database could not be compared with what is known of it', () => hub.memory.tick())
    await chore(hub, 'overdue runs could not be ended', () => loseOverdueRuns(hub))
    await chore(hub, 'runs could not pass those of silent daemons', () => passSilentHolders(hub))
    if (hub.now() >= daemonsJudged) {
      await chore(hub, 'silent daemons could not be found', () => tellStaleDaemons(hub))
    }
    // Those of a command, or of a hub that was killed.
    hub.sealing.wake()
    if (Date.now() >= next) {
      next = Date.now() + HOUR_MS
      await chore(hub, 'what realms use could not be counted', () => countAllUse(hub))
      await chore(hub, 'old runs could not be deleted', () => forgetOld(hub, keepRunsDays, forgetRuns))
      await chore(hub, 'old webhook deliveries could not be deleted', () =>
        forgetOld(hub, keepRunsDays, forgetDeliveries),
      )
      await chore(hub, 'old audit entries could not be removed', () => forgetOld(hub, keepAuditDays, forgetAudit))
      await chore(hub, 'files of deleted runs could not be removed', () => removeLeftFiles(hub))
    }
    busy = false
  }
  void work()
  const chores = setInterval(() => void work(), LOOK_MS)
  chores.unref()
  hub.sealing.start(() => sealAudit(hub))
  const stopSending = sendWebhooks(hub)
  const stop = async () => {
    clearInterval(chores)
    await Promise.all([hub.sealing.stop(), stopSending()])
  }
  return { look: work, stop }
}

async function chore(hub: Hub, failed: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    hub.log.warn(failed, { error: messageOf(error).split('\n', 1)[0] })
  }
}

type Forget = (hub: Hub, before: number) => Promise<number>

async function forgetOld(hub: Hub, days: number, forget: Forget): Promise<void> {
  while ((await forget(hub, hub.now() - days * 24 * HOUR_MS)) > 0) await Bun.sleep(100)
}
