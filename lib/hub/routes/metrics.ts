// GET /metrics: the state of the hub for those who operate it. It counts all realms, so no member of one may read it.

import { metricsReply } from '../../http/process-metrics.ts'
import { resource } from '../../http/resource.ts'
import { GetMetrics } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import { hubKit } from '../access/kit.ts'
import type { Hub } from '../core/hub.ts'
import { HubMetrics } from '../metrics.ts'

export function metrics(hub: Hub) {
  const metrics = new HubMetrics(hub)
  return resource('metrics', hubKit(hub), [
    answer(GetMetrics, async ({ durations }) =>
      metricsReply([await metrics.text(), hub.counts.text(), durations.text()], hub.telemetry),
    ),
  ])
}
