// Calls of the daemon's API. The local token comes from the address that `bun daemon.ts dashboard` opens, or from another
// tab, and each tab keeps it until it is closed.

import { signal } from '@preact/signals'
import type { Static, TSchema } from 'typebox'
import type { ErrorBody } from '../../error.ts'
import type { Call } from '../../wire/call.ts'
import type { ReadingPath } from '../../wire/reads.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import { heard, isInDoubt, lost, missed } from './connection.ts'
import { askToken, shareToken, tellToken } from './tabs.ts'

const KEY = 'cadre-local-token'

declare const CADRE_COMMAND: string

/** How hints name cadre: `bun daemon.ts` or `cadre`. The bundler (web.ts) inserts it. */
export const command = CADRE_COMMAND

/** Makes a call that may change something. Only an action has it (actions.tsx). */
export type Send = <Body extends TSchema, Data extends TSchema>(
  call: Call<Body, Data>,
  body: Static<Body>,
) => Promise<Static<Data>>

/** Makes a call that changes nothing. */
export type Read = <Body extends TSchema, Data extends TSchema>(
  call: Call<Body, Data> & { readonly path: ReadingPath },
  body: Static<Body> & { readonly without?: never },
) => Promise<Static<Data>>

/** The server that the parts of the page ask. */
interface Source {
  ask(path: string, init?: Pick<RequestInit, 'headers' | 'signal'>): Promise<Response>
  send: Send
  /** A path that it always answers. */
  alive: string
  /** What commands need to reach this server, such as ` --hub https://hub.example`. */
  where: string
  /** Why the reader may not answer a review, and who may. */
  forbidsReview(review: AskedReview): string | null
}

let source: Source = { ask: askDaemon, send: callDaemon, alive: '/health', where: '', forbidsReview: () => null }

/** Puts another server in place of the daemon. The page of the hub does this, because it shares the parts that show runs. */
export function setSource(other: Source): void {
  source = other
}

/**
 * The local token, or null when this tab was opened without it. On the hub it is the name of the user who is signed in.
 */
export const token = signal(sessionStorage.getItem(KEY))

function setToken(text: string | null): void {
  if (text === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, text)
  token.value = text
}

/** Keeps a token in all tabs, or forgets it in all. */
export function keepToken(text: string | null): void {
  setToken(text)
  tellToken(text)
}

/** Tokens that the daemon refused. This tab does not take them from others, or they would hand each other one for ever. */
const refused = new Set<string | null>()

/** From now on this tab has the token of the others. */
export function joinTabs(): void {
  shareToken(
    () => token.peek(),
    text => {
      if (!refused.has(text)) setToken(text)
    },
  )
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

/** The reply to a request with the local token. One that the daemon refuses is dropped; another tab may have a valid one. */
async function askDaemon(path: string, init: RequestInit = {}): Promise<Response> {
  const given = token.value
  const headers = { ...init.headers, ...(given !== null && { authorization: `Bearer ${given}` }) }
  const sentAt = Date.now()
  let reply: Response
  try {
    reply = await fetch(path, { ...init, headers })
  } catch (error) {
    if (init.signal?.aborted) throw error
    missed()
    throw new Refusal({ code: 'unreachable', message: `The daemon does not answer. Start it with \`${command}\`.` })
  }
  heard(reply, sentAt)
  if (reply.status !== 401 || given === null) return reply
  refused.add(given)
  if (token.value === given) {
    setToken(null)
    askToken()
  }
  return askDaemon(path, init)
}

/** The error in a reply. */
export async function failureOf(reply: Response): Promise<Refusal> {
  const body = await reply.json().catch(() => null)
  const error = body?.error ?? body?.payload
  return new Refusal(error?.code ? error : { code: 'internal', message: `The server answered ${reply.status}.` })
}

/** The command line that does the same as an action of this page. */
export const commandOf = (...words: string[]): string => `${command} ${words.map(quoted).join(' ')}${source.where}`

const quoted = (word: string): string => (/^[\w@%+=:,./^~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

export const forbidsReview: Source['forbidsReview'] = review => source.forbidsReview(review)

/** How often a server that has not answered is asked again. */
const AGAIN_MS = 1_000
setInterval(() => {
  if (isInDoubt()) source.ask(source.alive).catch(() => {})
}, AGAIN_MS)

/** The reply to a GET. */
export const ask: Source['ask'] = (path, init) => source.ask(path, init)

/** The data of a call that changes nothing. Throws a `Refusal`. */
export const call: Read = (call, body) => source.send(call, body)

/** Makes any call. Only actions.tsx may import it. What is shown may be out of date while the server does not answer. */
export const send: Send = (call, body) => {
  if (lost.peek() === null) return source.send(call, body)
  throw new Refusal({ code: 'unreachable', message: 'Nothing can be changed until the connection is back.' })
}

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
