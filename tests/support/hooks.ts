// A home in this process that takes deliveries over HTTP, with a clock that the test moves, and a sender that signs as
// GitHub does.

import { createHmac } from 'node:crypto'
import { Elysia } from 'elysia'
import { hooks } from '../../lib/daemon/routes/hooks.ts'
import { listen } from '../../lib/http/listen.ts'
import { root, STRICT } from '../../lib/http/root.ts'
import { createLog } from '../../lib/log/log.ts'
import { HookLimits } from '../../lib/triggers/hook/limits.ts'
import type { TriggerRecord } from '../../lib/wire/records/triggers.ts'
import { triggerHome } from './triggers.ts'

export const SECRET = "It's a Secret to Everybody"

/** A day, to be told, and whether to ask first. */
export const TOLD = `name: "@local/told"
version: 1.0.0
inputs:
  - { name: hold, type: boolean, default: false }
  - { name: day, type: string, default: "" }
phases:
  - { name: ask, type: gate, when: inputs.hold, review: { prompt: "Go on?", reviewers: ["local:ada"] } }
`

/** The headers of GitHub for a body. */
export const signed = (body: string | Uint8Array, id: string = crypto.randomUUID(), secret = SECRET) => ({
  'content-type': 'application/json',
  'x-github-delivery': id,
  'x-github-event': 'issues',
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
})

interface Sent {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: what hooks answer.
  body: any
}

export async function post(
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<Sent> {
  const reply = await fetch(url, { method: 'POST', body, headers })
  const text = await reply.text()
  const isJson = reply.headers.get('content-type')?.startsWith('application/json') ?? false
  return { status: reply.status, headers: reply.headers, text, body: isJson ? JSON.parse(text) : null }
}

type Fields = Record<string, unknown>

export type HookHome = Awaited<ReturnType<typeof hookHome>>

/** `limits`: the usual ones would refuse most of what a test sends. */
export async function hookHome({ limits = { perSecond: 1e6, burst: 1e6, failures: 1e6 }, begin = Date.now() } = {}) {
  const t = await triggerHome(undefined, begin)
  t.write(TOLD)
  const log = createLog({ write: () => {} })
  // Nobody sets the clock of the limits.
  let latest = begin
  const monotonic = () => {
    latest = Math.max(latest, t.clock.now)
    return latest
  }
  const served = hooks(t.daemon, ['hooks.example.com'], {
    now: () => t.clock.now,
    limits: new HookLimits(limits, monotonic),
  })
  const app = new Elysia(STRICT).use(root(log)).use(served)
  const server = listen(app, { host: '127.0.0.1', port: 0 })
  t.daemon.address = server.url

  return {
    ...t,
    server,
    /** A hook of GitHub, or what the fields say. */
    addHook: (fields: Fields = {}): Promise<TriggerRecord & { url: string }> =>
      t.triggers.add(
        // The fields of every scheme.
        { name: 'nightly', kind: 'hook', team: t.team, scheme: 'github', secret: SECRET, ...fields } as never,
        'local:ada',
      ) as Promise<TriggerRecord & { url: string }>,
    send: (url: string, body: string, id?: string) => post(url, body, signed(body, id)),
    of: (name = 'nightly') =>
      t.triggers
        .firings({ name }, {}, { limit: 1_000, offset: 0 })
        .reverse()
        .map(({ occasion, state, reason, deliveries }) =>
          [occasion.replace(/^rejected:.*/, 'rejected'), state, ...(reason ? [reason] : []), `×${deliveries}`].join(
            ' ',
          ),
        ),
    async [Symbol.asyncDispose]() {
      await server.stop()
      await t.close()
    },
  }
}
