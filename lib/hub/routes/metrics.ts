// GET /metrics: the state of the hub for those who operate it. It tells of all realms, so no member of one may read it.

import { Elysia } from 'elysia'
import { eventLoopDelay, gauge, METRICS_TYPE, metricsReply } from '../../http/metrics.ts'
import { closed } from '../../schema/schema.ts'
import { hubKit } from '../access/kit.ts'
import type { Hub } from '../core/hub.ts'
import { stored } from '../metrics.ts'

export function metrics(hub: Hub, version: string) {
  return new Elysia({ name: 'metrics' })
    .use(hubKit(hub))
    .get(
      '/metrics',
      async ({ durations }) =>
        metricsReply([
          gauge('cadre_build_info', 'Version of the hub.', [[{ version }, 1]]),
          await stored(hub),
          hub.counts.text(),
          durations.text(),
          eventLoopDelay(),
        ]),
      { operator: true, query: closed({}), media: METRICS_TYPE, detail: { summary: 'Prometheus metrics' } },
    )
}
