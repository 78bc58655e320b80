// Calls of the command line to the daemon that holds the home, with the local token.

import { CadreError, type ErrorBody } from '../error.ts'
import type { Json } from '../json.ts'
import type { RunEvent } from './events.ts'
import { readToken } from './home.ts'
import { holderOf } from './lock.ts'

export interface Client {
  call<T>(path: string, body?: object): Promise<T>
  /** For calls that take the message envelope. */
  envelope<T>(path: string, type: string, payload?: object): Promise<T>
  /** Events of a run until it ends. */
  events(runId: string, signal: AbortSignal): AsyncGenerator<RunEvent>
}

/** The daemon that serves `home`; null when none does, also while a command holds it by itself. */
export function connect(home: string): Client | null {
  const address = holderOf(home)?.address ?? null
  if (address === null) return null
  // What listens on every address is called on loopback.
  const base = address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${readToken(home)}` }

  async function post(path: string, body: object): Promise<unknown> {
    const reply = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) }).catch(cause => {
      throw new CadreError('unavailable', `the daemon at ${base} does not answer`, { cause })
    })
    return reply.json()
  }

  return {
    async call(path, body = {}) {
      const reply = (await post(path, body)) as { ok: true; data: never } | { ok: false; error: ErrorBody }
      if (reply.ok) return reply.data
      throw asError(reply.error)
    },
    async envelope(path, type, payload = {}) {
      const message = { type, version: 1, id: crypto.randomUUID(), timestamp: Date.now(), payload }
      const reply = (await post(path, message)) as { type: string; payload: { data: never } & ErrorBody }
      if (reply.type === 'ok') return reply.payload.data
      throw asError(reply.payload)
    },
    async *events(runId, signal) {
      const reply = await fetch(`${base}/v1/runs/stream?run_id=${encodeURIComponent(runId)}`, { headers, signal })
      if (!reply.ok || !reply.body) throw asError(((await reply.json()) as { error: ErrorBody }).error)
      yield* parseEvents(reply.body)
    },
  }
}

function asError({ code, message, details }: ErrorBody): CadreError {
  return new CadreError(code, message, details ? { details } : {})
}

/** Server-sent events as this daemon writes them: one `event` and one `data` line each. */
async function* parseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<RunEvent> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (event && data) yield { event, data: JSON.parse(data) as Json } as unknown as RunEvent
    }
  }
}
