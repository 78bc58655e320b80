// Calls of the daemon's API. The local token comes from the address that `bun daemon.ts dashboard` opens and is kept for
// this tab only.

import { signal } from '@preact/signals'
import type { Static, TSchema } from 'typebox'
import type { ErrorBody } from '../../error.ts'
import type { Call } from '../../wire/call.ts'
import { GetArtifact } from '../../wire/calls/artifacts.ts'
import { ReadLog, StreamRun } from '../../wire/calls/runs.ts'
import type { RunEvent, TreeLines } from '../../wire/records/run-records.ts'

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
export function askInstead(other: Source): void {
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

/** The health of the daemon, which needs no credential. `copied`: how many runs wait because the home was copied. */
export async function health(): Promise<{ copied: { runs: number } | null }> {
  const reply = await source.ask('/health')
  if (!reply.ok) throw await failureOf(reply)
  return (await reply.json()).data
}

/** The bytes of a file that a run wrote. */
export async function fileOf(runId: string, path: string): Promise<Blob> {
  const query = new URLSearchParams({ run_id: runId, path })
  const reply = await source.ask(`${GetArtifact.path}?${query}`)
  if (!reply.ok) throw await failureOf(reply)
  return reply.blob()
}

/** The lines that a run has logged so far, and with `below` those of all runs below it. Each piece is of one run. */
export async function* logPieces(runId: string, below: boolean, signal: AbortSignal): AsyncGenerator<TreeLines> {
  const query = new URLSearchParams({ run_id: runId, below: below ? 'yes' : 'no' })
  const reply = await source.ask(`${ReadLog.path}?${query}`, { signal })
  if (!reply.ok || !reply.body) throw await failureOf(reply)
  for await (const line of blocksOf(reply.body, '\n')) if (line !== '') yield JSON.parse(line)
}

/** How long reading may keep the browser from drawing. */
const SLICE_MS = 8

/** The parts of a text between separators, as they arrive, with pauses in which the browser can draw. */
async function* blocksOf(body: NonNullable<Response['body']>, separator: string): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let since = performance.now()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split(separator)
    rest = blocks.pop()!
    for (const block of blocks) {
      yield block
      if (performance.now() - since < SLICE_MS) continue
      await new Promise(resolve => setTimeout(resolve))
      since = performance.now()
    }
  }
}

/**
 * An event as `eventStream` of the server writes it. Only a line feed ends a line: a text of JSON may contain U+2028 and
 * U+2029.
 */
const EVENT = /^(?:id: ([^\n]*)\n)?event: ([^\n]*)\ndata: ([^\n]*)$/m

/** The events of a run until it ends. Throws when the connection is lost. */
export async function* events(runId: string, last: string | null, signal: AbortSignal) {
  const headers: Record<string, string> = last === null ? {} : { 'last-event-id': last }
  const reply = await source.ask(`${StreamRun.path}?${new URLSearchParams({ run_id: runId })}`, { headers, signal })
  if (!reply.ok || !reply.body) throw await failureOf(reply)
  for await (const block of blocksOf(reply.body, '\n\n')) {
    const [, id = null, event, data] = EVENT.exec(block) ?? []
    if (event) yield { id, event: { event, data: JSON.parse(data!) } as RunEvent }
  }
}
