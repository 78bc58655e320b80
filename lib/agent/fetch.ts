// The guarded fetch that every agent uses: vetted targets (guard.ts), redirects followed by hand, retries, bounds on time
// and size, failures classified by whether the request may have reached the outside.
//
// What is repeated: GET and HEAD always, any method of a `read` action, PUT and DELETE of an `idempotent` one. Any other
// request is repeated after a complete 429 only, which says that it was not done.

import { messageOf } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { backoff, retryAfter } from './backoff.ts'
import { bound } from './body.ts'
import { AgentError, type Effect, type FetchOptions, withSent } from './define.ts'
import { type Guard, originsOf, systemLookup, vet } from './guard.ts'
import { outgoing } from './outgoing.ts'
import { isTransient } from './reply.ts'

export interface FetchPolicy {
  /** The agent's resolved settings: the origins of the URLs among them pass unguarded. */
  settings: unknown
  network: NetworkPolicy
  /** Of the action that is run. */
  effect: Effect
  signal: AbortSignal
  log(message: string, fields?: JsonObject): void
  /** Shows that this waits, until it is disposed of; default to nobody. */
  waiting?: ((reason: string, until?: Date) => Disposable) | undefined
}

export interface NetworkPolicy {
  /** `network.allow` of settings.yml. */
  allow: readonly string[]
  /** Origins of `url`s that stand literally in the team.yml of a run that was started on this machine from a path. */
  literalOrigins: readonly string[]
}

/** The world, by parameter. */
export interface FetchWorld {
  lookup: Guard['lookup']
  env: Guard['env']
  now(): number
  random(): number
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

const TIMEOUT = 60_000
const MAX_BYTES = 64 * 1024 * 1024
const ATTEMPTS = 4
const REDIRECTS = 3
/** A longer `Retry-After` is not waited for here: the reply is returned, and the phase's own retry comes later. */
const LONGEST_WAIT = 5 * 60_000
/** Of all tries and waits together; a body that is being read is not counted. */
const TOTAL = 15 * 60_000

/** What may follow a redirect to another origin: no Authorization, Cookie, nor a vendor's key header. */
const SAFE_HEADERS = ['accept', 'accept-language', 'content-language', 'content-type', 'range', 'user-agent']
const NOT_SENT = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EADDRNOTAVAIL', 'FailedToOpenSocket']
const CERTIFICATE = /CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_(GET|VERIFY)|HOSTNAME/

interface Request {
  url: URL
  method: string
  headers: Headers
  body: NonNullable<FetchOptions['body']> | null
}

interface Try {
  policy: FetchPolicy
  guard: Guard
  timeout: number
  maxBytes: number
  follow: boolean
}

/** Binds the fetch of one call. The rest of `options` are test's ways to hold time, chance and DNS. */
export function guardedFetch(
  policy: FetchPolicy,
  options: Partial<FetchWorld> = {},
): (url: string | URL, options?: FetchOptions) => Promise<Response> {
  const { lookup = systemLookup, env = process.env, now = Date.now, random = Math.random, sleep = pause } = options
  const guard = { ...guardOf(policy), lookup, env }

  return async (address, init = {}) => {
    const url = URL.parse(String(address))
    if (!url) throw new AgentError('no valid URL: it needs a scheme and a host', { code: 'invalid_url', sent: 'no' })
    const method = (init.method ?? 'GET').toUpperCase()
    const request = { url, method, headers: headersOf(init.headers), body: init.body ?? null }
    const once = {
      policy,
      guard,
      timeout: init.timeout ?? TIMEOUT,
      maxBytes: init.maxBytes ?? MAX_BYTES,
      follow: init.follow ?? isReading(method),
    }
    const repeatable = mayRepeat(method, policy.effect)
    const attempts = request.body instanceof ReadableStream ? 1 : (init.attempts ?? ATTEMPTS)
    const deadline = now() + TOTAL

    for (let attempt = 1; ; attempt++) {
      const result = await settle(send(request, once))
      const again =
        result instanceof AgentError
          ? repeatable && result.retryable
          : isTransient(result.status) && (repeatable || result.status === 429)
      const asked = result instanceof Response ? retryAfter(result.headers.get('retry-after'), now()) : null
      const wait = asked ?? backoff(attempt, random)
      if (!again || attempt >= attempts || wait > LONGEST_WAIT || now() + wait > deadline) {
        if (result instanceof AgentError) throw result
        return result
      }
      if (result instanceof Response) await result.body?.cancel()
      const why = result instanceof AgentError ? result.message : `HTTP ${result.status}`
      const until = new Date(now() + wait)
      policy.log(asked === null ? `waiting: ${why}` : `waiting: rate limit until ${until.toISOString()}`, {
        attempt,
        wait_ms: wait,
        host: url.host,
      })
      using _ = asked === null ? policy.waiting?.(why) : policy.waiting?.('rate limit', until)
      await sleep(wait, policy.signal)
    }
  }
}

function headersOf(given: FetchOptions['headers']): Headers {
  try {
    return new Headers(given)
  } catch (cause) {
    const hint = 'a header is one line of Latin letters, digits and signs: is a setting pasted with more?'
    throw new AgentError(`a header cannot be sent: ${messageOf(cause)}`, { code: 'invalid_request', hint, sent: 'no' })
  }
}

/** What the guard lets pass for an agent with these settings. */
export function guardOf({ settings, network }: Pick<FetchPolicy, 'settings' | 'network'>): Guard {
  const { allow, literalOrigins } = network
  const origins = new Set([...originsOf(settings), ...literalOrigins])
  return { origins, allow, lookup: systemLookup, env: process.env }
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

function mayRepeat(method: string, effect: Effect): boolean {
  if (isReading(method) || effect === 'read') return true
  return effect === 'idempotent' && (method === 'PUT' || method === 'DELETE')
}

async function settle(work: Promise<Response>): Promise<Response | AgentError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AgentError) return error
    throw error
  }
}

/** One try: follows redirects, each target vetted anew. */
async function send(request: Request, options: Try): Promise<Response> {
  let current = request
  for (let hops = 0; ; hops++) {
    const reply = await hop(current, options, hops)
    const location = reply.headers.get('location')
    const next = options.follow && reply.status >= 300 && reply.status < 400 && location ? location : null
    if (next === null) return reply
    await reply.body?.cancel()
    if (hops === REDIRECTS) {
      const hint = 'give the final address'
      throw new AgentError(`${placeOf(request)}: more than ${REDIRECTS} redirects`, { code: 'redirects', hint })
    }
    current = redirected(current, reply.status, next)
  }
}

/** The request after a redirect (RFC 9110, 15.4): 301, 302 and 303 turn into a GET, 307 and 308 keep method and body. */
function redirected(from: Request, status: number, location: string): Request {
  const url = URL.parse(location, from.url.href)
  if (!url) throw new AgentError(`${placeOf(from)}: redirects to no valid URL`, { code: 'redirects' })
  const keeps = status === 307 || status === 308 || isReading(from.method)
  if (keeps && from.body instanceof ReadableStream) {
    const hint = 'give the final address: a streamed body cannot be sent twice'
    throw new AgentError(`${placeOf(from)}: redirected while it sent a stream`, { code: 'redirects', hint })
  }
  const headers = new Headers(from.headers)
  if (!keeps) for (const name of ['content-type', 'content-language']) headers.delete(name)
  if (url.origin !== from.url.origin) {
    for (const name of [...headers.keys()]) if (!SAFE_HEADERS.includes(name)) headers.delete(name)
  }
  return { url, method: keeps ? from.method : 'GET', headers, body: keeps ? from.body : null }
}

/** One request to one origin, at each of its addresses until a connection is made. */
async function hop(request: Request, options: Try, hops: number): Promise<Response> {
  const { policy, timeout, maxBytes } = options
  const place = placeOf(request)
  const controller = new AbortController()
  const abort = () => controller.abort()
  policy.signal.addEventListener('abort', abort, { once: true })
  const done = () => policy.signal.removeEventListener('abort', abort)
  let late = false
  let answered = false
  let timer: Timer | undefined
  const wait = () => {
    if (answered) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      late = true
      abort()
    }, timeout)
  }
  wait()
  const explain = (error: unknown) => classify(error, { place, late, timeout, aborted: policy.signal.aborted })
  try {
    if (policy.signal.aborted) throw new AgentError(`${place} was not sent: stopped`, { code: 'aborted', sent: 'no' })
    const reply = await connect(request, options, controller.signal, wait)
    return bound(reply, { maxBytes, idle: timeout, abort, done, explain, place })
  } catch (error) {
    done()
    const failure = explain(error)
    // Of a request that was redirected the first hop did reach the outside.
    throw hops > 0 && failure.sent === 'no' ? withSent(failure, 'unknown') : failure
  } finally {
    answered = true
    clearTimeout(timer)
  }
}

async function connect(
  { url, method, headers, body }: Request,
  { policy, guard }: Try,
  signal: AbortSignal,
  onTaken: () => void,
) {
  const route = await unlessAborted(vet(url, guard), signal)
  const sent = new Headers(headers)
  if (!sent.has('user-agent')) sent.set('user-agent', 'cadre')
  sent.delete('host')
  if (route.name) sent.set('host', route.name)
  for (const [index, target] of route.urls.entries()) {
    try {
      return await fetch(target, {
        method,
        headers: sent,
        body: outgoing(body, sent, onTaken),
        redirect: 'manual',
        signal,
        // On a reused connection that is reset Bun sends PUT and DELETE again by itself.
        keepalive: isReading(method) || policy.effect !== 'once',
        ...(route.name && url.protocol === 'https:' && { tls: { serverName: url.hostname } }),
        // Bun would decide by itself, by the environment and by what stands in the URL.
        proxy: route.proxy ? { url: route.proxy, respectNoProxy: false } : false,
      })
    } catch (error) {
      if (index === route.urls.length - 1 || !isNotSent(error) || body instanceof ReadableStream) throw error
    }
  }
  throw new AgentError(`${url.host} has no address`, { code: 'dns', retryable: true, sent: 'no' })
}

function isNotSent(error: unknown): boolean {
  return NOT_SENT.includes((error as { code?: string } | null)?.code ?? '')
}

interface Circumstances {
  place: string
  late: boolean
  timeout: number
  aborted: boolean
}

function classify(error: unknown, { place, late, timeout, aborted }: Circumstances): AgentError {
  if (error instanceof AgentError) return error
  if (aborted) return new AgentError(`${place} was stopped`, { code: 'aborted', sent: 'unknown', cause: error })
  if (late) {
    const message = `${place} did not answer within ${timeout} ms`
    return new AgentError(message, { code: 'timeout', retryable: true, sent: 'unknown', cause: error })
  }
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  if (isNotSent(error)) {
    const hint = 'is the service running, and the address right?'
    return new AgentError(`${place}: no connection (${code})`, {
      code: 'network',
      hint,
      retryable: true,
      sent: 'no',
      cause: error,
    })
  }
  if (CERTIFICATE.test(code)) {
    const hint = 'for a private CA set NODE_EXTRA_CA_CERTS=/path/to/ca.pem before the daemon starts'
    return new AgentError(`${place}: its certificate is not trusted (${code})`, {
      code: 'certificate',
      hint,
      sent: 'no',
      cause: error,
    })
  }
  return new AgentError(`${place}: the connection broke (${code || message})`, {
    code: 'network',
    retryable: true,
    sent: 'unknown',
    cause: error,
  })
}

/** Without path and query: they may hold what must not be shown, such as a webhook's key. */
function placeOf({ method, url }: Request): string {
  return `${method} ${url.origin}`
}

/** Rejects with the signal's reason when it fires first; the work itself goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Throws an AgentError `aborted`, of which nothing was sent, when `signal` fires first. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await unlessAborted(promise, signal)
  } catch (cause) {
    throw new AgentError('stopped while waiting to try again', { code: 'aborted', sent: 'no', cause })
  } finally {
    clearTimeout(timer)
  }
}
