// The process of a server: its metrics, and how a daemon ends.

import type { Static } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { OWNER, READER } from '../access.ts'
import { call } from '../call.ts'
import { AnyText, NullableText } from '../parts.ts'

/** The text format of Prometheus. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export const GetMetrics = call('/metrics', {
  summary: 'Prometheus metrics',
  hub: { operator: true },
  daemon: READER,
  query: closed({}),
  media: METRICS_TYPE,
})

/** No drain takes longer. */
export const LONGEST_DRAIN_MS = 24 * 60 * 60_000

const UnderWay = Type.Array(
  Type.Object({
    run_id: AnyText,
    team: AnyText,
    /** Null while files or messages of the run are under way. */
    phase: NullableText,
  }),
  { description: 'What is waited for.' },
)
export type UnderWay = Static<typeof UnderWay>

export const DrainDaemon = call('/v1/daemon/drain', {
  summary: 'Let what is executed end, begin nothing new, and end the process; again: what it waits for',
  daemon: OWNER,
  body: closed({
    most_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LONGEST_DRAIN_MS,
        description:
          'After how many milliseconds what is still executed is interrupted; ten minutes, or as it was, if absent.',
      }),
    ),
  }),
  data: Type.Object({
    pid: Type.Integer({ description: 'The id of the process that ends.' }),
    left_ms: Type.Integer({ description: 'After how many milliseconds what is still executed is interrupted.' }),
    under_way: UnderWay,
  }),
})
