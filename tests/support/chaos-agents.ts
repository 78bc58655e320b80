// The agents of the kill storm: a slow one that writes files of any size, and a vendor with tickets that can be
// searched for and mails that cannot.

import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'

/** Content that differs in every run and attempt, sometimes as a value and sometimes as a stream. */
function contentOf(line: string, bytes: number): Uint8Array | ReadableStream<Uint8Array> {
  const content = Buffer.alloc(bytes, line)
  return bytes % 2 === 0 ? content : new Blob([content]).stream()
}

/** Items that differ in every attempt, also in their order. */
const itemsOf = (attempt: number) => [0, 1, 2, 3].map(n => (n * 3 + attempt) % 5).filter(n => n !== attempt % 3)

const Post = Type.Object({ name: Type.String() })
interface Caller {
  key: string
  settings: { url: string }
  fetch(url: string, options?: { method?: string; body?: string; timeout?: number }): Promise<Response>
}

/** Posts to the vendor. A refusal proves that nothing was written; after any other failure it is unknown. */
async function post({ key, settings, fetch }: Caller, what: string) {
  const reply = await fetch(`${settings.url}/${what}`, { method: 'POST', body: key, timeout: 2_000 })
  if (reply.status === 409) throw new AgentError('refused', { code: 'refused', sent: 'no' })
  if (!reply.ok) throw new AgentError(`HTTP ${reply.status}`, { sent: 'unknown' })
  return { text: what, data: {}, external: { id: key } }
}

const vendor = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Tickets can be looked for, mails cannot.',
  settings: Type.Object({ url: Type.String() }),
  actions: {
    ticket: {
      direction: 'target',
      effect: 'once',
      entry: Post,
      run: (_, context) => post(context, 'ticket'),
      async find(_, { key, settings, fetch }) {
        const { status } = await fetch(`${settings.url}/ticket?key=${key}`)
        if (status !== 200 && status !== 404) throw new AgentError(`HTTP ${status}`)
        return status === 404 ? null : { text: 'found', data: {}, external: { id: key } }
      },
    },
    mail: { direction: 'target', effect: 'once', entry: Post, run: (_, context) => post(context, 'mail') },
  },
  notify: { effect: 'once', entry: Type.Object({}), run: (_, context) => post(context as Caller, 'event') },
})

/** The agents of one engine, and the number of leaf phases that run in it. */
export function stormAgents() {
  const working = { now: 0, most: 0 }
  const leaf = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Takes its time, writes a file, fails as it is told.',
    settings: Type.Object({}),
    source: {
      effect: 'idempotent',
      entry: Type.Object({
        name: Type.String(),
        takes: Type.Number(),
        bytes: Type.Number(),
        fails: Type.Optional(Type.String()),
      }),
      async run({ name, takes, bytes, fails }, context) {
        working.now++
        working.most = Math.max(working.most, working.now)
        try {
          context.log(`attempt ${context.attempt}`)
          await Bun.sleep(takes)
          if (context.signal.aborted) throw new AgentError('stopped', { code: 'aborted' })
          await context.write(name, contentOf(`${context.run.id} ${context.attempt} `, bytes))
          if (fails === 'always' || (fails === 'first' && context.attempt === 1)) {
            throw new AgentError('told to', { retryable: fails === 'first' })
          }
          return { text: name, data: { items: itemsOf(context.attempt) } }
        } finally {
          working.now--
        }
      },
    },
  })
  return { agents: { leaf, vendor }, working }
}
