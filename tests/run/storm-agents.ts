// Agents that do what no agent should, and the quiet one whose calls are counted: it belongs to runs that the storm must
// not touch.

import { appendFileSync } from 'node:fs'
import type { Static } from 'typebox'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { Json } from '../../lib/json.ts'

/** What a leaf of the storm may do. `well` behaves; a `never` neither returns nor heeds its signal. */
export const MANNERS = [
  'well',
  'late',
  'never',
  'deaf',
  'string',
  'null',
  'undefined',
  'number',
  'liar',
  'circular',
  'retryable',
  'nothing',
  'text',
  'data',
  'bigint',
  'trap',
  'loop',
  'large',
  'files',
  'name',
  'log',
  'says',
] as const
export type Manner = (typeof MANNERS)[number]

const circular: Record<string, unknown> = {}
circular.self = circular
const trap = () =>
  new Proxy(
    {},
    {
      get() {
        throw new Error('do not look')
      },
      ownKeys() {
        throw new Error('do not look')
      },
    },
  )
const anything = (value: unknown) => value as AgentResult

/** How long the engine waits for a `find` after the time of its phase is over. */
const ASK_MS = 30_000

export interface Call {
  runId: string
  phase: string
  attempt: number
  /** The time at which the phase's own clock was over, of `performance.now()`. */
  due: number
}

/** What the agents of a process know of it. */
export interface Wilderness {
  /** Calls that do not come back until it is over. */
  stuck: Call[]
  over: AbortSignal
  calm: boolean
}

async function misbehave(
  { manner, token = 'nothing' }: { manner: string; token?: string | null },
  context: AgentContext<unknown>,
  wild: Wilderness,
): Promise<AgentResult> {
  switch (manner as Manner) {
    case 'late':
      // Heeds its signal, but takes its time, and then says that all went well.
      await Bun.sleep(50)
      break
    case 'deaf':
      await Bun.sleep(1_500)
      break
    case 'never':
      if (!wild.calm) await new Promise(resolve => wild.over.addEventListener('abort', resolve))
      break
    case 'string':
      throw 'a string'
    case 'null':
      throw null
    case 'undefined':
      return Promise.reject()
    case 'number':
      throw 7
    case 'liar':
      throw Object.defineProperty(new Error('x'), 'message', {
        get() {
          throw new Error('even its message throws')
        },
      })
    case 'circular':
      throw new AgentError('goes round', { cause: circular })
    case 'retryable':
      throw new AgentError(`again, with ${token}`, { retryable: true })
    case 'nothing':
      return anything(undefined)
    case 'text':
      return anything({ text: { not: 'a text' }, data: 1 })
    case 'data':
      return anything({ text: 'x', data: { of: () => {}, at: new Date(Number.NaN), n: Number.NaN, s: Symbol('s') } })
    case 'bigint':
      return anything({ text: 'x', data: { n: 1n } })
    case 'trap':
      return anything({ text: 'x', data: trap() })
    case 'loop':
      return anything({ text: 'x', data: circular })
    case 'large':
      return { text: 'x', data: { text: 'x'.repeat(1_200_000) } }
    case 'files':
      return anything({ text: 'x', data: {}, files: 'none', external: 5 })
    case 'name':
      await context.write('../../../up.txt', 'x')
      break
    case 'log':
      context.log(undefined as unknown as string, circular as never)
      context.log('x'.repeat(200_000), { of: 1n } as never)
      break
    case 'says':
      context.log(`it is ${token}`, { where: token })
      return { text: `it is ${token}`, data: { secret: token } }
  }
  return { text: 'well', data: { items: [0, 1, 2] } }
}

export function wildAgents(wild: Wilderness) {
  const Fields = Type.Object({
    name: Type.String(),
    manner: Type.String(),
    bytes: Type.Number(),
    clock: Type.Number(),
    token: Type.Union([Type.String(), Type.Null()]),
  })
  /** `ms`: how much time the call has. */
  async function act(entry: Static<typeof Fields>, context: AgentContext<unknown>, ms = entry.clock) {
    const { run, phase, attempt } = context
    if (entry.manner === 'never' && !wild.calm) {
      // A `find` may be asked when the time of the phase is over, and has its own.
      wild.stuck = wild.stuck.filter(call => call.runId !== run.id || call.phase !== phase.name)
      wild.stuck.push({ runId: run.id, phase: phase.name, attempt, due: performance.now() + ms })
    }
    if (entry.bytes >= 0) await context.write(entry.name, Buffer.alloc(entry.bytes, `${run.id} ${attempt} `))
    return misbehave(entry, context, wild)
  }
  const wildest = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Does what it is told, which is no good.',
    settings: Type.Object({}),
    actions: {
      read: { direction: 'source', effect: 'read', entry: Fields, run: act },
      once: {
        direction: 'target',
        effect: 'once',
        entry: Fields,
        run: act,
        find: (entry, context) => (wild.calm ? Promise.resolve(null) : act({ ...entry, bytes: -1 }, context, ASK_MS)),
      },
    },
    notify: {
      effect: 'once',
      entry: Type.Object({ manner: Type.Optional(Type.String()) }),
      run: ({ manner = 'well' }, context) => misbehave({ manner }, context, wild),
    },
  })
  return wildest
}

/** Writes a line for each of its calls to `calls`: what, run, attempt, the engine's time. */
export function quietAgent(calls: string, now: () => number) {
  return agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Says that it was called.',
    settings: Type.Object({}),
    source: {
      effect: 'idempotent',
      entry: Type.Object({ name: Type.String(), does: Type.String(), bytes: Type.Number() }),
      async run({ name, does, bytes }, context) {
        appendFileSync(calls, `${JSON.stringify([does, context.run.id, name, context.attempt, now()])}\n`)
        if (does === 'fail') throw new AgentError('later', { retryable: true })
        if (does === 'stay') {
          await new Promise(resolve => context.signal.addEventListener('abort', resolve))
          throw new AgentError('told to stop', { code: 'aborted' })
        }
        await context.write(name, Buffer.alloc(bytes, 'quiet '))
        return { text: name, data: { bytes } satisfies Json }
      },
    },
  })
}
