// Exports spans or log lines with OTLP/HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/). It sends again what it could
// not send, and drops what comes beyond a limit: nothing waits for it. The official packages were tried: 16 packages with
// 28 MB, and as they are published together they do not load in Bun.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { messageOf } from '../error.ts'
import { isObject } from '../json.ts'
import { textIn } from '../stream.ts'
import type { Log } from './log.ts'
import type { OtlpTarget } from './otlp-options.ts'

export interface OtlpOptions<Item> {
  target: OtlpTarget
  log: Log
  /** What the items are called in the log. */
  what: string
  /** What is sent of an item. */
  form(item: Item): object
  /** The body of a request with some of these forms, each in JSON. */
  request(forms: readonly string[]): string
}

const MOST_WAITING = 8_192
const MOST_AT_ONCE = 512
/** How much of a reply is read, in bytes: it says how many items were refused, and why. */
const MOST_REPLY = 65_536
const DELAY_MS = 1_000
const LONGEST_DELAY_MS = 60_000
const CLOSE_MS = 1_500
/** With any other status a request must not be sent again. */
const RETRYABLE = [429, 502, 503, 504]

const zipped = promisify(gzip)

export class OtlpExporter<Item> {
  readonly #options: OtlpOptions<Item>
  /** In JSON, so that an item keeps nothing in memory that is not sent of it. */
  #waiting: string[] = []
  /** How many have been dropped since the start. */
  #dropped = 0
  /** How many of those the log has told of. */
  #told = 0
  #failures = 0
  /** Whether the last ones were refused. */
  #refused = false
  /** How long the receiver asked to be left alone. */
  #pauseMs = 0
  #timer: Timer | null = null
  #sending: Promise<void> | null = null

  constructor(options: OtlpOptions<Item>) {
    this.#options = options
  }

  get dropped(): number {
    return this.#dropped
  }

  drop(count: number): void {
    this.#dropped += count
  }

  add(item: Item): void {
    if (this.#waiting.length >= MOST_WAITING) this.drop(1)
    else this.#waiting.push(JSON.stringify(this.#options.form(item)))
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
    this.drop(this.#waiting.length)
    this.#waiting = []
    if (this.#timer) clearTimeout(this.#timer)
  }

  #plan(): void {
    if (this.#timer || this.#sending || this.#waiting.length === 0) return
    const delay = Math.min(LONGEST_DELAY_MS, Math.max(this.#pauseMs, DELAY_MS * 2 ** this.#failures))
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#sending = this.#send(AbortSignal.timeout(this.#options.target.timeoutMs)).then(() => {
        this.#sending = null
        this.#plan()
      })
    }, delay)
    this.#timer.unref()
  }

  /** Sends the oldest items. Returns false when they are to be sent again. Never throws. */
  async #send(signal: AbortSignal): Promise<boolean> {
    const { log, what } = this.#options
    const items = this.#waiting.slice(0, MOST_AT_ONCE)
    try {
      const reply = await this.#post(items, signal)
      this.#waiting.splice(0, items.length)
      const rejected = Math.min(items.length, await rejectedIn(reply, items.length, signal))
      this.drop(rejected)
      if (rejected > 0 && !this.#refused) {
        log.warn(`${what} were refused and dropped`, { status: reply.status, dropped: rejected })
      }
      this.#refused = rejected > 0
      if (rejected > 0) this.#told += rejected
      else if (this.#dropped > this.#told) this.#tell()
      this.#failures = 0
      return true
    } catch (error) {
      if (this.#failures++ === 0) log.warn(`${what} cannot be exported; trying again`, { error: messageOf(error) })
      return false
    }
  }

  #tell(): void {
    const { log, what } = this.#options
    const count = this.#dropped - this.#told
    this.#told = this.#dropped
    log.warn(`${what} were dropped, because they could not be exported`, { dropped: count })
  }

  /** Throws where the request is to be sent again. */
  async #post(items: readonly string[], signal: AbortSignal): Promise<Response> {
    const { url, headers, gzip, tls } = this.#options.target
    const text = this.#options.request(items)
    const reply = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', ...(gzip && { 'content-encoding': 'gzip' }) },
      body: gzip ? await zipped(text) : text,
      redirect: 'manual',
      signal,
      ...(tls && { tls }),
    })
    this.#pauseMs = 0
    if (!RETRYABLE.includes(reply.status)) return reply
    await reply.body?.cancel()
    this.#pauseMs = 1_000 * (Number(reply.headers.get('retry-after')) || 0)
    throw new Error(`it answered ${reply.status}`)
  }
}

/** How many of `all` items a receiver did not take. */
async function rejectedIn({ ok, body }: Response, all: number, until: AbortSignal): Promise<number> {
  if (!ok) {
    await body?.cancel()
    return all
  }
  const said = body ? await jsonIn(body, until) : null
  const partial = isObject(said) && isObject(said.partialSuccess) ? said.partialSuccess : {}
  return Math.max(0, Number(partial.rejectedSpans ?? partial.rejectedLogRecords) || 0)
}

/** Null for what is not JSON, or too long. */
async function jsonIn(body: ReadableStream<Uint8Array>, until: AbortSignal): Promise<unknown> {
  const isMore = new AbortController()
  const bounds = { most: MOST_REPLY, onMore: () => isMore.abort(), until: AbortSignal.any([until, isMore.signal]) }
  try {
    return JSON.parse(await textIn(body, bounds))
  } catch {
    return null
  }
}
