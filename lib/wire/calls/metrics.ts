// The metrics of a server.

import { closed } from '../../schema/schema.ts'
import { READER } from '../access.ts'
import { call } from '../call.ts'

/** The text format of Prometheus. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export const GetMetrics = call('/metrics', {
  summary: 'Prometheus metrics',
  hub: { operator: true },
  daemon: READER,
  query: closed({}),
  media: METRICS_TYPE,
})
