// GET /metrics: what the daemon does.

import { buildInfo, eventLoopDelay, gauge, metricsReply, type Sample } from '../../http/metrics.ts'
import { resource } from '../../http/resource.ts'
import { build } from '../../program/version.ts'
import { RUN_STATES, type Store } from '../../run/engine.ts'
import { GetMetrics } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

export function metrics(daemon: Daemon, kit: DaemonKit) {
  return resource('metrics', kit, [
    answer(GetMetrics, async ({ durations }) => {
      const counts = await countRuns(daemon.engine.store.runLists)
      return metricsReply([text(counts), durations.text(), eventLoopDelay()])
    }),
  ])

  function text(counts: Sample[]): string {
    const { slots, free } = daemon.engine.load
    const { left } = daemon.outbox
    return [
      buildInfo(build()),
      gauge('cadre_runs', 'Runs by state, sub-runs included.', counts),
      gauge('cadre_slots_used', 'Leaf phases that run now.', [[{}, slots]]),
      gauge('cadre_slots_free', 'Leaf phases that could start now.', [[{}, free]]),
      gauge('cadre_stalled', '1 while nothing new begins, as on a full disk or in a drain.', [
        [{}, daemon.halted === null ? 0 : 1],
      ]),
      gauge('cadre_outbox_changes', 'Changes that the hub has not acknowledged.', [[{}, left.changes]]),
      gauge('cadre_outbox_lines', 'Log lines that the hub has not acknowledged.', [[{}, left.lines]]),
      gauge('cadre_hub_connected', '1 while the hub answers. Absent where the daemon has no hub.', connected()),
      gauge(
        'cadre_hub_token_replaced',
        '1 where another realm token was stored since the daemon started, which takes it at its next start.',
        replaced(),
      ),
    ].join('')
  }

  function connected(): Sample[] {
    const { remote } = daemon
    return remote ? [[{}, remote.connected() ? 1 : 0]] : []
  }

  function replaced(): Sample[] {
    const { remote, settings } = daemon
    const stored = settings.value('hub.realm_token')
    return remote && typeof stored === 'string' ? [[{}, remote.uses(stored) ? 0 : 1]] : []
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
