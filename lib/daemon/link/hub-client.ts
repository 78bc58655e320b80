// Calls of the hub: one JSON request with a deadline. Replies are checked against the wire, and failures become the
// CadreError that the hub sent.

import type { Static, TSchema } from 'typebox'
import { isOfCertificate, TRUSTING } from '../../agent/net/certificate.ts'
import { outgoing } from '../../agent/net/outgoing.ts'
import { CadreError, messageOf } from '../../error.ts'
import { type SentEvent, sentEvents } from '../../event-stream.ts'
import { isObject } from '../../json.ts'
import { Limit, limitSignal } from '../../lived-time.ts'
import { Type } from '../../schema/type.ts'
import { type Answerer, type Call, type Export, failureOf, plainData, type Transfer } from '../../wire/call.ts'
import { HUB_PATIENCE_MS } from '../../wire/protocol.ts'

/** Streams of the hub are silent for 15 seconds at most. */
const SILENT_MS = 45_000

export interface CallOptions {
  token?: string
  timeout?: number
  signal?: AbortSignal
  headers?: Readonly<Record<string, string>>
}

export class HubClient {
  readonly url: string
  readonly #token: string | null
  /** Whether anything has answered, whose certificate was trusted then. */
  #isReached = false

  /** `url` is the hub's address, such as `http://127.0.0.1:7400`. Throws `invalid_request` for any other text. */
  constructor(url: string, token: string | null) {
    if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
      const why = `expected the address of a hub, such as https://hub.example.com, not ${JSON.stringify(url)}`
      throw new CadreError('invalid_request', `${why}: check --hub, CADRE_HUB_URL or the setting hub.url`)
    }
    this.url = url.replace(/\/+$/, '')
    this.#token = token
  }

  /**
   * Returns the `data` of a call. Throws the hub's own error, or `unavailable` when the hub was not reached, when
   * something else answered (a login page, a proxy), or when the reply does not have the form of this call.
   */
  async call<Body extends TSchema, Data extends TSchema>(
    { path, data }: Call<Body, Data>,
    body: Static<Body>,
    options: CallOptions = {},
  ): Promise<Static<Data>> {
    const { token = this.#token, timeout = HUB_PATIENCE_MS, signal, headers = {} } = options
    using deadline = limitSignal(timeout)
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers, ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal,
    }
    return await this.#ask(path, data, request)
  }

  /**
   * Sends a file with PUT, streamed if it is large. The time limit starts anew with each part that the hub takes.
   */
  async put<Query extends TSchema>(
    call: Transfer<Query>,
    query: Queried<Query>,
    file: Blob,
    { signal }: Pick<CallOptions, 'signal'>,
  ): Promise<void> {
    const headers = new Headers({ 'content-type': 'application/octet-stream' })
    if (this.#token) headers.set('authorization', `Bearer ${this.#token}`)
    const late = new AbortController()
    const expire = () => late.abort(new Error(`it took nothing for ${HUB_PATIENCE_MS / 1_000} seconds`))
    let limit = new Limit(HUB_PATIENCE_MS, expire)
    const taken = () => {
      limit.end()
      limit = new Limit(HUB_PATIENCE_MS, expire)
    }
    const body = outgoing(file, headers, taken)
    const until = signal ? AbortSignal.any([signal, late.signal]) : late.signal
    try {
      await this.#ask(addressOf(call, query), call.data ?? Type.Unknown(), {
        method: 'PUT',
        headers,
        body,
        signal: until,
        timeout: false,
      })
    } finally {
      limit.end()
    }
  }

  /**
   * The events of a stream, until it ends. Throws the hub's own error, or `unavailable` when the hub was not reached, or
   * the stream breaks or is silent for longer than the hub lets it be.
   */
  async *events<Query extends TSchema>(
    call: Transfer<Query>,
    query: Queried<Query>,
    signal: AbortSignal,
  ): AsyncGenerator<SentEvent> {
    const silent = new AbortController()
    let limit: Limit | undefined
    const onChunk = () => {
      limit?.end()
      limit = new Limit(SILENT_MS, () => silent.abort(new Error(`it said nothing for ${SILENT_MS / 1_000} seconds`)))
    }
    onChunk()
    const headers = { ...(this.#token && { authorization: `Bearer ${this.#token}` }) }
    const until = AbortSignal.any([signal, silent.signal])
    try {
      const reply = await fetch(this.url + addressOf(call, query), { headers, signal: until, redirect: 'manual' })
      if (!reply.ok || !reply.body) {
        const answer: unknown = await reply.json().catch(() => null)
        throw failureOf(isObject(answer) ? answer.error : undefined, reply, this.#answerer(call.path))
      }
      yield* sentEvents(reply.body, onChunk)
    } catch (cause) {
      throw cause instanceof CadreError ? cause : this.#unanswered(cause)
    } finally {
      limit?.end()
    }
  }

  /** The body of a reply in lines of JSON, as it comes. Throws as `events` does. */
  async reading<Body extends TSchema>({ path }: Export<Body>, body: Static<Body>): Promise<ReadableStream<Uint8Array>> {
    const headers = {
      'content-type': 'application/json',
      ...(this.#token && { authorization: `Bearer ${this.#token}` }),
    }
    try {
      const request = { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' } as const
      const reply = await fetch(this.url + path, request)
      if (reply.ok && reply.body) return reply.body
      const answer: unknown = await reply.json().catch(() => null)
      throw failureOf(isObject(answer) ? answer.error : undefined, reply, this.#answerer(path))
    } catch (cause) {
      throw cause instanceof CadreError ? cause : this.#unanswered(cause)
    }
  }

  async #ask<Data extends TSchema>(path: string, data: Data, request: BunFetchRequestInit): Promise<Static<Data>> {
    let reply: Response
    let text: string
    try {
      reply = await fetch(this.url + path, { ...request, redirect: 'manual' })
      text = await reply.text()
      this.#isReached = true
    } catch (cause) {
      throw this.#unanswered(cause)
    }
    return plainData(data, parsed(text), reply, this.#answerer(path))
  }

  #answerer(path: string): Answerer {
    return { url: this.url + path.split('?', 1)[0], kind: 'hub', advice: 'check CADRE_HUB_URL' }
  }

  #unanswered(cause: unknown): CadreError {
    const options = isOfCertificate(codeOf(cause)) ? { cause } : { cause, reason: UNANSWERED }
    return new CadreError('unavailable', whyUnanswered(this.url, cause, this.#isReached), options)
  }
}

/** The reason of an error that says that a request to the hub has no answer. */
export const UNANSWERED = 'unanswered'

/** The code of a step of the link that failed: that of the error, or `unanswered`. */
export function troubleCode(error: unknown): string {
  if (!(error instanceof CadreError)) return 'internal'
  return error.reason === UNANSWERED ? UNANSWERED : error.code
}

/** Why a request to the hub has no answer. `cause` is what `fetch` threw. `isReached`: an earlier request had one. */
export function whyUnanswered(url: string, cause: unknown, isReached = false): string {
  const code = codeOf(cause)
  if (!isOfCertificate(code)) return `the hub at ${url} does not answer: ${messageOf(cause)}`
  if (isReached) {
    const what = `the certificate of the hub at ${url} is not trusted any more (${code})`
    return `${what}: it has changed or expired since this process reached the hub, so look first at the proxy before the hub`
  }
  return `the certificate of the hub at ${url} is not trusted (${code}): for a private CA, start cadre with ${TRUSTING}`
}

const codeOf = (cause: unknown): string => (isObject(cause) && typeof cause.code === 'string' ? cause.code : '')

/** The query of a transfer, in which every value is text. */
type Queried<Query extends TSchema> = Static<Query> & Record<string, string>

const addressOf = ({ path }: Transfer, query: Record<string, string>): string => `${path}?${new URLSearchParams(query)}`

/** The value of a JSON text; undefined for any other text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
