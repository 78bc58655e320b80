// The world of the reference model, as a server: it says what fails, counts what is written, and records who called.

import type { World } from './model.ts'

/** By kind of call: the paths that called, and how often. */
export type Calls = Map<string, number>

export class ServedWorld {
  readonly #seed: number
  readonly #server
  /** By top run: the attempt that is going on. */
  readonly #attempts = new Map<string, number>()
  /** How often each ticket was written, by path. */
  readonly tickets = new Map<string, number>()
  readonly #keys = new Map<string, string>()
  readonly #calls = new Map<string, Calls>()
  readonly #hanging = new Set<PromiseWithResolvers<Response>>()

  constructor(seed: number) {
    this.#seed = seed
    this.#server = Bun.serve({ port: 0, idleTimeout: 0, fetch: request => this.#answer(request) })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  async stop(): Promise<void> {
    for (const { resolve } of this.#hanging) resolve(new Response(null, { status: 500 }))
    await this.#server.stop(true)
  }

  /** A new attempt of a top run begins. Returns what the world does in it. */
  begin(top: string): World {
    const attempt = (this.#attempts.get(top) ?? 0) + 1
    this.#attempts.set(top, attempt)
    this.#calls.set(top, new Map())
    const written = new Set([...this.tickets.keys()].filter(path => topOf(path) === top))
    return {
      value: attempt,
      fails: path => this.#chance('fails', path) < 0.25,
      approves: path => this.#chance('approves', path) < 0.7,
      answers: path => (['fail', 'skip', 'complete'] as const)[Math.floor(this.#chance('answers', path) * 3)]!,
      isWritten: path => written.has(path),
    }
  }

  /** What the present attempt of a top run has called. */
  calls(top: string): Calls {
    return this.#calls.get(top)!
  }

  approves(path: string): boolean {
    return this.#chance('approves', path) < 0.7
  }

  answers(path: string): 'fail' | 'skip' | 'complete' {
    return (['fail', 'skip', 'complete'] as const)[Math.floor(this.#chance('answers', path) * 3)]!
  }

  /** Forgets a top run that nobody resumes any more. */
  forget(top: string): void {
    for (const map of [this.#attempts, this.#calls]) map.delete(top)
    for (const path of [...this.tickets.keys()]) if (topOf(path) === top) this.tickets.delete(path)
  }

  /** The same number for the same question in the same attempt. */
  #chance(what: string, path: string): number {
    const text = `${this.#seed} ${what} ${path} ${this.#attempts.get(topOf(path))}`
    return Number(Bun.hash(text) & 0xffff_ffffn) / 2 ** 32
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    if (request.method === 'GET')
      return new Response(null, { status: this.#keys.has(searchParams.get('key')!) ? 200 : 404 })
    const { path, key, hangs, flaky } = (await request.json()) as {
      path: string
      key: string
      hangs: boolean
      flaky: boolean
    }
    if (hangs) {
      const never = Promise.withResolvers<Response>()
      this.#hanging.add(never)
      request.signal.addEventListener('abort', () => {
        this.#hanging.delete(never)
        never.resolve(new Response(null, { status: 500 }))
      })
      return never.promise
    }
    const calls = this.calls(topOf(path))
    const times = (calls.get(path) ?? 0) + 1
    calls.set(path, times)
    if (flaky && times === 1) return new Response(null, { status: 410 })
    if (this.#chance('fails', path) < 0.25) return new Response(null, { status: 409 })
    if (pathname === '/step') return Response.json({ value: this.#attempts.get(topOf(path)) })
    this.#keys.set(key, path)
    this.tickets.set(path, (this.tickets.get(path) ?? 0) + 1)
    return new Response(null, { status: this.#chance('lost', path) < 0.2 ? 500 : 200 })
  }
}

export const topOf = (path: string): string => path.split('/', 1)[0]!

/** The agent that a home gets: it calls the world. */
export const AGENT = `
import { AgentError, agent, Type } from 'cadre'

const settings = Type.Object({ url: Type.String({ description: 'The address of the world.' }) })
const text = description => Type.String({ description })
const yes = description => Type.Optional(Type.Boolean({ description }))
const post = ({ settings, fetch, key, attempt }, what, entry) =>
  fetch(settings.url + what, { method: 'POST', body: JSON.stringify({ ...entry, key, attempt }), timeout: 60_000 })

export default agent({
  type: 'connector', version: '1.0.0', description: 'Calls the world of the reference model.', settings,
  source: {
    effect: 'idempotent',
    entry: Type.Object({ name: text('A name.'), path: text('The place.'), hangs: yes('Never returns.'), flaky: yes('Fails first.') }),
    async run({ name, ...entry }, context) {
      const reply = await post(context, '/step', entry)
      if (!reply.ok) throw new AgentError('HTTP ' + reply.status, { retryable: reply.status === 410 })
      return { text: '', data: await reply.json() }
    },
  },
  target: {
    effect: 'once', sees: 'at once',
    entry: Type.Object({ name: text('A name.'), path: text('The place.') }),
    async run({ name, ...entry }, context) {
      const reply = await post(context, '/ticket', entry)
      if (reply.status === 409) throw new AgentError('refused', { sent: 'no' })
      if (!reply.ok) throw new AgentError('HTTP ' + reply.status, { sent: 'unknown' })
      return { text: '', data: {}, external: { id: context.key } }
    },
    async find(_, { settings, fetch, key }) {
      const { status } = await fetch(settings.url + '/ticket?key=' + key)
      if (status !== 200 && status !== 404) throw new AgentError('HTTP ' + status)
      return status === 404 ? null : { text: '', data: {}, external: { id: key } }
    },
  },
})
`
