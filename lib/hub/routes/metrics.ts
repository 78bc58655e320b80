// GET /metrics: the state of the hub for those who operate it. It counts all realms, so no member of one may read it.

import { buildInfo, eventLoopDelay, metricsReply } from '../../http/metrics.ts'
import { resource } from '../../http/resource.ts'
import { build } from '../../program/version.ts'
import { GetMetrics } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import { hubKit } from '../access/kit.ts'
import type { Hub } from '../core/hub.ts'
import { stored } from '../metrics.ts'

export function metrics(hub: Hub) {
  return resource('metrics', hubKit(hub), [
    answer(GetMetrics, async ({ durations }) =>
      metricsReply([buildInfo(build()), await stored(hub), hub.counts.text(), durations.text(), eventLoopDelay()]),
    ),
  ])
}
