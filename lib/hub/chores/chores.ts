// What a serving hub does by itself, at intervals, besides answering calls. Of several hubs on one database, one at a time
// does each chore (leases.ts). Where two did it nevertheless, each transaction would decide which of them wins.

import { ONLINE_MS } from '../access/daemons.ts'
import { countQuotaUseOfAllRealms } from '../access/quotas.ts'
import { deleteFilesOfDeletedRuns } from '../artifacts/kept-files.ts'
import type { HubConfig } from '../config.ts'
import { BatchSize } from '../core/batch-size.ts'
import type { ChoreOutcome, Steps } from '../core/chore.ts'
import type { Hub } from '../core/hub.ts'
import { readRefusedStarts } from '../keys/refused-starts.ts'
import { grantKeysOfSilentDaemons } from '../queue/concurrency-keys.ts'
import { endUndeliverableRunsOfAllRealms } from '../queue/run-ends.ts'
import { deleteOldRuns } from '../reports/old-runs.ts'
import { addTexts } from '../reports/run-texts.ts'
import { deleteOldTells, endLostTells } from '../tells/tell-jobs.ts'
import { checkTriggers } from '../triggers/check-triggers.ts'
import { deleteOldBodies } from '../triggers/hook-table.ts'
import { lookAtTriggers } from '../triggers/loop.ts'
import { deleteOldFirings } from '../triggers/old-firings.ts'
import { deleteOldEntries, sealAudit, sealInSteps } from '../webhooks/audit-chain.ts'
import { deleteOldDeliveries, sendWebhooks } from '../webhooks/webhook-delivery.ts'
import { queueStaleDaemonMessages } from '../webhooks/webhooks.ts'
import { type Chore, ChoreLoop } from './chore-loop.ts'
import { compareClocks } from './compare-clocks.ts'
import { Leases } from './leases.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A run that no daemon asks for ends at most this much later than its deadline. */
const TICK_MS = 2 * SECOND_MS

/** How long things are kept. */
type Retention = Pick<HubConfig, 'keepRunsDays' | 'keepAuditDays'>

interface HubChore extends Chore {
  run(hub: Hub, retention: Retention): Steps
}

const CHORES: readonly HubChore[] = [
  {
    name: 'check_lineage',
    isOfEachHub: true,
    everyMs: TICK_MS,
    failure: 'the database could not be compared with what is known of it',
    run: hub => hub.lineage.check(),
  },
  {
    name: 'choose_sealing_key',
    isOfEachHub: true,
    everyMs: 5 * SECOND_MS,
    failure: 'the keys of the other hubs could not be read',
    run: hub => hub.keys.refresh(),
  },
  {
    name: 'compare_clocks',
    isOfEachHub: true,
    everyMs: 5 * SECOND_MS,
    failure: 'the clocks of the hubs could not be compared',
    run: compareClocks,
  },
  {
    name: 'read_refused_starts',
    isOfEachHub: true,
    everyMs: 5 * SECOND_MS,
    failure: 'the hubs that did not start could not be read',
    run: readRefusedStarts,
  },
  {
    name: 'end_undeliverable_runs',
    everyMs: TICK_MS,
    failure: 'runs that cannot be delivered could not be ended',
    run: endUndeliverableRunsOfAllRealms,
  },
  {
    name: 'grant_keys_of_silent_daemons',
    everyMs: TICK_MS,
    failure: 'concurrency keys of silent daemons could not be granted to waiting runs',
    run: grantKeysOfSilentDaemons,
  },
  {
    name: 'report_stale_daemons',
    everyMs: TICK_MS,
    failure: 'silent daemons could not be found',
    // While this hub was away, no daemon could call it.
    run: async function* (hub) {
      if (hub.lived() >= hub.startedAt + ONLINE_MS) yield* queueStaleDaemonMessages(hub)
    },
  },
  {
    name: 'seal_audit_entries',
    isOfEachHub: true,
    everyMs: TICK_MS,
    failure: 'audit entries could not be sealed',
    // Those of a command, or of a hub that was killed: this process seals its own ones when they are committed.
    run: sealInSteps,
  },
  {
    name: 'index_runs',
    everyMs: HOUR_MS,
    failure: 'older runs could not be indexed for searches',
    run: addTexts,
  },
  {
    name: 'count_quotas',
    everyMs: HOUR_MS,
    failure: 'what realms use could not be counted',
    run: countQuotaUseOfAllRealms,
  },
  {
    name: 'delete_runs',
    everyMs: HOUR_MS,
    failure: 'old runs could not be deleted',
    run: (hub, { keepRunsDays }) => deleteOld(hub, keepRunsDays, deleteOldRuns),
  },
  {
    name: 'delete_webhook_deliveries',
    everyMs: HOUR_MS,
    failure: 'old webhook deliveries could not be deleted',
    run: (hub, { keepRunsDays }) => deleteOld(hub, keepRunsDays, deleteOldDeliveries),
  },
  {
    name: 'end_lost_tells',
    everyMs: TICK_MS,
    failure: 'messages to accounts that nobody takes could not be ended',
    run: endLostTells,
  },
  {
    name: 'delete_tells',
    everyMs: HOUR_MS,
    failure: 'old messages to accounts could not be deleted',
    run: (hub, { keepRunsDays }) => deleteOld(hub, keepRunsDays, deleteOldTells),
  },
  {
    name: 'delete_firings',
    everyMs: HOUR_MS,
    failure: 'old firings of triggers could not be deleted',
    run: (hub, { keepRunsDays }) => deleteOldFirings(hub, keepRunsDays * DAY_MS),
  },
  {
    name: 'delete_hook_bodies',
    everyMs: HOUR_MS,
    failure: 'old deliveries of hooks could not be deleted',
    run: hub => deleteOld(hub, 0, deleteOldBodies),
  },
  {
    name: 'find_broken_triggers',
    everyMs: 30 * SECOND_MS,
    failure: 'triggers could not be checked for problems',
    run: checkTriggers,
  },
  {
    name: 'delete_audit_entries',
    everyMs: HOUR_MS,
    failure: 'old audit entries could not be removed',
    run: (hub, { keepAuditDays }) => deleteOld(hub, keepAuditDays, deleteOldEntries),
  },
  {
    name: 'delete_files',
    everyMs: 20 * SECOND_MS,
    failure: 'files of deleted runs could not be removed',
    run: deleteFilesOfDeletedRuns,
  },
  {
    name: 'tidy_files',
    everyMs: HOUR_MS,
    failure: 'what uploads left behind could not be removed',
    run: async hub => hub.artifacts?.tidy(hub.now()),
  },
]

/** Of a hub that makes backups of its database, which no other hub serves. */
const BACK_UP: HubChore = {
  name: 'back_up',
  isOfEachHub: true,
  everyMs: MINUTE_MS,
  stepMs: HOUR_MS,
  failure: 'the database could not be backed up',
  run: async hub => hub.backups?.makeIfDue(hub.now()),
}

/** Deletes what is older than `days` by the time that is believed. `deleteSome` returns how many rows it deleted. */
async function* deleteOld(
  hub: Hub,
  days: number,
  deleteSome: (hub: Hub, before: number, most: number) => Promise<number>,
): AsyncGenerator<void> {
  const size = new BatchSize()
  const some = (most: number) => deleteSome(hub, hub.clock.believed() - days * DAY_MS, most)
  while ((await size.timed(some)) > 0) yield
}

/**
 * Runs the chores when they are due, looks at triggers, seals audit entries, and sends webhooks, until `stop` is called.
 * `runDue` runs at once what is due every two seconds.
 */
export function startChores(serving: Hub, retention: Retention): { runDue(): void; stop(): Promise<void> } {
  const hub: Hub = { ...serving, store: serving.store.forChores }
  const { store, clock, log, now, id: holder, ownChores } = hub
  const names = CHORES.filter(({ isOfEachHub }) => !isOfEachHub).map(({ name }) => name)
  const leases = new Leases({ store, clock, log, holder, names, taken })
  const chores = serving.backups ? [...CHORES, BACK_UP] : CHORES
  const loops = new Map(chores.map(chore => [chore, loopOf(chore)]))

  function loopOf(chore: HubChore): ChoreLoop {
    const { name, isOfEachHub } = chore
    const run = () => chore.run(hub, retention)
    const own = { isMine: () => true, note: (outcome: ChoreOutcome) => void ownChores.set(name, outcome) }
    const leased = { isMine: () => leases.holds(name), note: (outcome: ChoreOutcome) => leases.note(name, outcome) }
    return new ChoreLoop({ chore, run, now, log, ...(isOfEachHub ? own : leased) })
  }

  function taken(names: string[]): void {
    for (const [{ name }, loop] of loops) if (names.includes(name)) loop.wake()
  }

  leases.start()
  serving.sealing.start(() => sealAudit(hub))
  const stopSending = sendWebhooks(serving)
  const stopLooking = lookAtTriggers(serving)
  return {
    runDue() {
      for (const [{ everyMs }, loop] of loops) if (everyMs <= TICK_MS) loop.wake()
    },
    async stop() {
      await Promise.all([stopLooking(), ...[...loops.values()].map(loop => loop.stop())])
      await Promise.all([leases.stop(), serving.sealing.stop(), stopSending()])
    },
  }
}
