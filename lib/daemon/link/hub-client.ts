// Calls of the hub: one JSON request with a deadline. Replies are checked against the wire, and failures become the
// CadreError that the hub sent.

import type { Static, TSchema } from 'typebox'
import { CadreError, messageOf } from '../../error.ts'
import { type Call, plainData } from '../../wire/call.ts'

/** Milliseconds that a call may take, unless it says otherwise. */
const DEADLINE_MS = 20_000

export interface CallOptions {
  token?: string
  timeout?: number
  signal?: AbortSignal
}

export class HubClient {
  readonly url: string
  readonly #token: string | null

  /** `url` is the hub's address, such as `http://127.0.0.1:7400`. */
  constructor(url: string, token: string | null) {
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
    const { token = this.#token, timeout = DEADLINE_MS, signal } = options
    const deadline = AbortSignal.timeout(timeout)
    let reply: Response
    let answer: unknown
    try {
      reply = await fetch(this.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
        body: JSON.stringify(body),
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      })
      answer = await reply.json()
    } catch (cause) {
      throw new CadreError('unavailable', `the hub at ${this.url} does not answer: ${messageOf(cause)}`, { cause })
    }
    return plainData(data, answer, reply, { url: this.url + path, kind: 'hub', advice: 'check CADRE_HUB_URL' })
  }
}
