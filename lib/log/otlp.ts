// Exports spans with OTLP/HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/). It sends spans again that it could not
// send, and drops those beyond a limit: no run waits for it. The official packages were tried: 16 packages with 28 MB, and as
// they are published together they do not load in Bun.

import { messageOf } from '../error.ts'
import type { Log } from './log.ts'
import type { Span, Tracer } from './trace.ts'

export interface OtlpOptions {
  url: string
  headers: Record<string, string>
  /** What the spans are of. */
  resource: Span['attributes']
  log: Log
  /** How long spans wait for others. */
  delayMs?: number
}

const MOST_WAITING = 8_192
const MOST_AT_ONCE = 512
const DELAY_MS = 1_000
const LONGEST_DELAY_MS = 60_000
const TIMEOUT_MS = 10_000
const CLOSE_MS = 1_500
const MOST_TEXT = 1_000

const KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const
const ERROR = 2

export class OtlpTracer implements Tracer {
  readonly #options: OtlpOptions
  #waiting: Span[] = []
  #dropped = 0
  #failures = 0
  /** Whether the last spans were refused. */
  #refused = false
  #timer: Timer | null = null
  #sending: Promise<void> | null = null

  constructor(options: OtlpOptions) {
    this.#options = options
  }

  add(span: Span): void {
    if (this.#waiting.length >= MOST_WAITING) this.#dropped++
    else this.#waiting.push(span)
    this.#plan()
  }

  async close(): Promise<void> {
    const until = AbortSignal.timeout(CLOSE_MS)
    const over = new Promise<void>(resolve => until.addEventListener('abort', () => resolve()))
    const rest = async () => {
      await this.#sending
      while (this.#waiting.length > 0 && (await this.#send(until))) {
        // The next ones are sent.
      }
    }
    await Promise.race([rest(), over])
    this.#waiting = []
    if (this.#timer) clearTimeout(this.#timer)
  }

  #plan(): void {
    if (this.#timer || this.#sending || this.#waiting.length === 0) return
    const { delayMs = DELAY_MS } = this.#options
    const delay = Math.min(LONGEST_DELAY_MS, delayMs * 2 ** this.#failures)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#sending = this.#send().then(() => {
        this.#sending = null
        this.#plan()
      })
    }, delay)
    this.#timer.unref()
  }

  /** Sends the oldest spans. Returns false when they are to be sent again. Never throws. */
  async #send(signal = AbortSignal.timeout(TIMEOUT_MS)): Promise<boolean> {
    const { url, headers, log } = this.#options
    const spans = this.#waiting.slice(0, MOST_AT_ONCE)
    try {
      const reply = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(this.#request(spans)),
        redirect: 'manual',
        signal,
      })
      await reply.body?.cancel()
      if (reply.status === 429 || reply.status >= 500) throw new Error(`it answered ${reply.status}`)
      this.#waiting.splice(0, spans.length)
      if (!reply.ok && !this.#refused) log.warn('spans were refused and dropped', { status: reply.status })
      this.#refused = !reply.ok
      if (this.#dropped > 0)
        log.warn('spans were dropped, because they could not be exported', { spans: this.#dropped })
      this.#dropped = 0
      this.#failures = 0
      return true
    } catch (error) {
      if (this.#failures++ === 0) log.warn('spans cannot be exported; trying again', { error: messageOf(error) })
      return false
    }
  }

  #request(spans: readonly Span[]) {
    const resource = { attributes: attributesOf(this.#options.resource) }
    return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'cadre' }, spans: spans.map(spanOf) }] }] }
  }
}

function spanOf({ trace, id, parent, name, kind, start, end, attributes, failed }: Span) {
  return {
    traceId: trace,
    spanId: id,
    ...(parent !== null && { parentSpanId: parent }),
    name: name.slice(0, MOST_TEXT),
    kind: KINDS[kind],
    startTimeUnixNano: `${Math.round(start)}000000`,
    endTimeUnixNano: `${Math.round(Math.max(start, end))}000000`,
    attributes: attributesOf(attributes),
    ...(failed && { status: { code: ERROR } }),
  }
}

function attributesOf(attributes: Span['attributes']) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: `${value}` } : { stringValue: value.slice(0, MOST_TEXT) },
  }))
}
