// `GET /health`, which says that the process lives, and `GET /ready`, which says that it can work: both without
// credential.

import { Elysia } from 'elysia'
import { CadreError } from '../error.ts'
import { Type } from '../schema/type.ts'
import { httpKit } from './kit.ts'

const Health = Type.Object({ status: Type.Literal('ok') }, { additionalProperties: true })
const Ready = Type.Object({
  status: Type.Literal('ready'),
  older_copy: Type.Optional(
    Type.String({ description: 'That the hub is on an older copy of its database, and what it waits for.' }),
  ),
  degraded: Type.Optional(
    Type.Array(Type.Enum(['database_read_only', 'database_full']), {
      description: 'Why nothing can be changed now, while reads work. `/ready?for=writes` is 503 then.',
    }),
  ),
  wake_ups: Type.Optional(
    Type.Enum(['polled'], {
      description:
        'That the hub has noticed a pooler, or an engine without sessions, and polls for the words of other hubs; not where `CADRE_HUB_POOLER` says so.',
    }),
  ),
  clocks_apart_ms: Type.Optional(
    Type.Integer({
      description: 'By how much the clocks of hubs on the same database differ, in milliseconds; only above 2000.',
    }),
  ),
  lack_key: Type.Optional(
    Type.Array(Type.String(), {
      description: 'The ids of hubs on the same database that lack the first key of this hub’s CADRE_HUB_KEY.',
    }),
  ),
  refused_starts: Type.Optional(
    Type.Array(Type.Enum(['wrong_key', 'no_key']), {
      description:
        'Why hubs on the same database refused to start in the last day, one for each. Metrics and log name their machines.',
    }),
  ),
})

/** A load balancer asks every few seconds and does not wait long. */
const PATIENCE_MS = 2_000

type Degraded = 'database_read_only' | 'database_full'
type Besides = {
  older_copy?: string
  clocks_apart_ms?: number
  lack_key?: string[]
  refused_starts?: ('wrong_key' | 'no_key')[]
  degraded?: Degraded[]
  wake_ups?: 'polled'
}

/**
 * `trouble` says what keeps the program from working, or null. `besides` says what else is to be known of one that works.
 * A part that does not answer in time is in trouble.
 */
export const health = (
  report: () => Record<string, unknown>,
  trouble: () => string | null | Promise<string | null>,
  besides: () => Besides | Promise<Besides> = () => ({}),
) =>
  new Elysia({ name: 'health' })
    .use(httpKit())
    .get('/health', () => ({ status: 'ok', ...report() }), {
      open: true,
      data: Health,
      detail: { summary: 'Liveness' },
    })
    .get(
      '/ready',
      async ({ leaving, stopping, query }) => {
        const stops = leaving.signal.aborted || stopping.signal.aborted
        const found = stops ? 'this process is stopping' : await inTime(async () => (await trouble()) ?? besides())
        if (typeof found === 'string') throw new CadreError('unavailable', `not ready: ${found}`)
        if (query.for === 'writes' && found.degraded) {
          throw new CadreError('unavailable', `not ready for writes: ${found.degraded.join(', ')}`)
        }
        return { status: 'ready' as const, ...found }
      },
      {
        open: true,
        data: Ready,
        detail: {
          summary: 'Readiness: 503 says what is missing',
          parameters: [
            {
              ...{ name: 'for', in: 'query', schema: { type: 'string', enum: ['writes'] } },
              description: 'Asks whether changes can be made, too.',
            },
          ],
        },
      },
    )

async function inTime<T>(look: () => Promise<T>): Promise<T | string> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`the database has not answered for ${PATIENCE_MS} ms`), PATIENCE_MS)
  try {
    return await Promise.race([look(), late.promise])
  } catch {
    return 'the database does not answer'
  } finally {
    clearTimeout(timer)
  }
}
