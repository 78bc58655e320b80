// GET /metrics: what the daemon does.

import { Gauge, type Sample } from '../../http/metrics.ts'
import { metricsReply } from '../../http/process-metrics.ts'
import { resource } from '../../http/resource.ts'
import { RUN_STATES, type Store } from '../../run/engine.ts'
import { GetMetrics } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { waitingMetrics } from './waiting-metrics.ts'

const RUNS = new Gauge({ name: 'cadre_runs', help: 'Runs by state, sub-runs included.' })
const SLOTS_USED = new Gauge({ name: 'cadre_slots_used', help: 'Leaf phases that run now.' })
const SLOTS_FREE = new Gauge({ name: 'cadre_slots_free', help: 'Leaf phases that could start now.' })
const STALLED = new Gauge({
  name: 'cadre_stalled',
  help: '1 while nothing new begins, as on a full disk or in a drain.',
})
const CONNECTED = new Gauge({
  name: 'cadre_hub_connected',
  help: '1 while the hub answers. Absent where the daemon has no hub.',
})
const TOKEN_REPLACED = new Gauge({
  name: 'cadre_hub_token_replaced',
  help: '1 where another realm token was stored since the daemon started, which takes it at its next start.',
})

export function metrics(daemon: Daemon, kit: DaemonKit) {
  return resource('metrics', kit, [
    answer(GetMetrics, async ({ durations }) => {
      const counts = await countRuns(daemon.engine.store.runLists)
      const waiting = await waitingMetrics(daemon)
      const parts = [RUNS.text(counts), ...now(), ...waiting, daemon.counts.text(), durations.text()]
      return metricsReply(parts, daemon.telemetry)
    }),
  ])

  function now(): string[] {
    const { slots, free } = daemon.engine.load
    return [
      SLOTS_USED.text(slots),
      SLOTS_FREE.text(free),
      STALLED.text(daemon.halted === null ? 0 : 1),
      CONNECTED.text(daemon.remote && (daemon.remote.connected() ? 1 : 0)),
      TOKEN_REPLACED.text(replaced()),
    ]
  }

  function replaced(): number | null {
    const { remote, settings } = daemon
    const stored = settings.value('hub.realm_token')
    return remote && typeof stored === 'string' ? (remote.uses(stored) ? 0 : 1) : null
  }
}

/** Other calls run between the parts that are counted. */
async function countRuns(runLists: Store['runLists']): Promise<Sample[]> {
  const samples: Sample[] = []
  for (const state of RUN_STATES) {
    let count = 0
    for (const part of runLists.counts(state)) {
      count += part
      await Bun.sleep(0)
    }
    samples.push([{ state }, count])
  }
  return samples
}
