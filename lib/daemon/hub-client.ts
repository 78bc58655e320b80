// Calls of the hub: one JSON post with a deadline, answers unwrapped, failures as the CadreError that the hub meant.

import { CadreError, type Detail, type ErrorCode, messageOf, STATUS } from '../error.ts'
import { isObject } from '../json.ts'

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
   * `data` of a call. Throws the hub's own error, or `unavailable` when the hub was not reached or what answered is no
   * hub (a login page, a proxy).
   */
  async call<T = Record<string, unknown>>(path: string, body: object, options: CallOptions = {}): Promise<T> {
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
    if (isObject(answer) && answer.ok === true) return answer.data as T
    throw failureOf(this.url + path, reply, answer)
  }
}

function failureOf(url: string, reply: Response, answer: unknown): CadreError {
  const error = isObject(answer) && isObject(answer.error) ? answer.error : null
  if (!error || typeof error.code !== 'string' || !(error.code in STATUS)) {
    return new CadreError('unavailable', `${url} answered ${reply.status}, but not as a hub does; check CADRE_HUB_URL`)
  }
  const wait = Number(reply.headers.get('retry-after'))
  return new CadreError(error.code as ErrorCode, String(error.message), {
    ...(Array.isArray(error.details) && { details: error.details as Detail[] }),
    ...(wait > 0 && { retryAfter: wait }),
  })
}
