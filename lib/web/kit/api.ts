// Calls of the daemon's API. The local token comes from the address that `bun daemon.ts dashboard` opens and is kept for
// this tab only.

import { signal } from '@preact/signals'
import type { Static, TSchema } from 'typebox'
import type { ErrorBody } from '../../error.ts'
import type { Call } from '../../wire/call.ts'

const KEY = 'cadre-local-token'

declare const CADRE_COMMAND: string

/** How hints name cadre: `bun daemon.ts` or `cadre`. The bundler (web.ts) inserts it. */
export const command = CADRE_COMMAND

/** The server that the parts of the page ask. */
interface Source {
  ask(path: string, init?: RequestInit): Promise<Response>
  call<Body extends TSchema, Data extends TSchema>(call: Call<Body, Data>, body: Static<Body>): Promise<Static<Data>>
}

let source: Source = { ask: askDaemon, call: callDaemon }

/** Puts another server in place of the daemon. The page of the hub does this, because it shares the parts that show runs. */
export function setSource(other: Source): void {
  source = other
}

/**
 * The local token, or null when this tab was opened without it. On the hub it is the name of the user who is signed in.
 */
export const token = signal(sessionStorage.getItem(KEY))

export function keepToken(text: string | null): void {
  if (text === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, text)
  token.value = text
}

export class Refusal extends Error {
  readonly code: string
  readonly details: readonly { path: string; message: string }[]

  constructor({ code, message, details = [] }: Pick<ErrorBody, 'message' | 'details'> & { code: string }) {
    super(message)
    this.code = code
    this.details = details
  }
}

/** The reply to a request with the local token. A token that the daemon refuses is dropped. */
async function askDaemon(path: string, init: RequestInit = {}): Promise<Response> {
  const given = token.value
  const headers = { ...init.headers, ...(given !== null && { authorization: `Bearer ${given}` }) }
  let reply: Response
  try {
    reply = await fetch(path, { ...init, headers })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new Refusal({ code: 'unreachable', message: `The daemon does not answer. Start it with \`${command}\`.` })
  }
  if (reply.status !== 401 || given === null) return reply
  if (token.value === given) keepToken(null)
  return askDaemon(path, init)
}

/** The error in a reply. */
export async function failureOf(reply: Response): Promise<Refusal> {
  const body = await reply.json().catch(() => null)
  const error = body?.error ?? body?.payload
  return new Refusal(error?.code ? error : { code: 'internal', message: `The server answered ${reply.status}.` })
}

/** The reply to a request that is no call. */
export const ask: Source['ask'] = (path, init) => source.ask(path, init)

/** The data of a call. Throws a `Refusal`. */
export const call: Source['call'] = (call, body) => source.call(call, body)

async function callDaemon<Body extends TSchema, Data extends TSchema>(
  { path, envelope: type }: Call<Body, Data>,
  body: Static<Body>,
): Promise<Static<Data>> {
  const message = type && { type, version: 1, id: crypto.randomUUID(), timestamp: Date.now(), payload: body }
  const reply = await askDaemon(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(message ?? body),
  })
  if (!reply.ok) throw await failureOf(reply)
  const answer = await reply.json()
  return type ? answer.payload.data : answer.data
}
