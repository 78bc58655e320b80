// The process of a server: its metrics, and how a daemon ends.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { OWNER, READER } from '../access.ts'
import { call } from '../call.ts'
import { AnyText, NullableText, Time } from '../parts.ts'

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

const Trouble = Type.Object({
  step: Type.String({ description: 'What fails: `heartbeat`, `poll`, `sync`, `upload` or `offer`.' }),
  code: Type.String({ description: 'The code of the error, or `unanswered` where the hub did not answer.' }),
  error: AnyText,
  since: Type.Integer({ description: 'Since when it has failed each time, in epoch milliseconds.' }),
})

const WaitingSince = nullable(Time, {
  description: 'When the oldest was queued, in epoch milliseconds; null also where an older program has queued it.',
})
const HowMany = Type.Integer({ description: 'How many wait.' })
const HowLarge = Type.Integer({ description: 'How many bytes they have.' })

export const GetHubLink = call('/v1/daemon/hub', {
  summary: 'Show what waits to be sent to the hub, and what keeps it from being sent',
  daemon: READER,
  body: closed({}),
  data: Type.Object({
    url: Type.Union([Type.String(), Type.Null()], { description: 'The address of the hub; null without one.' }),
    connected: nullable(Type.Boolean(), {
      description: 'Whether the hub has answered lately; null where the daemon has no hub.',
    }),
    paused: Type.Boolean({ description: 'Whether an operator has paused this daemon, which then takes no more runs.' }),
    troubles: Type.Array(Trouble, { description: 'What fails at present.' }),
    waiting: Type.Object({
      changes: Type.Object({ count: HowMany, bytes: HowLarge, oldest_at: WaitingSince }),
      lines: Type.Integer({ description: 'How many lines of logs wait.' }),
      files: Type.Object({
        count: HowMany,
        bytes: HowLarge,
        oldest_at: WaitingSince,
        error: Type.Union([Type.String(), Type.Null()], {
          description: 'Why the oldest file that has failed did so last; null where none has.',
        }),
      }),
    }),
  }),
})
export type HubLink = Static<(typeof GetHubLink)['data']>
