// The guarded fetch that every agent uses. It vets targets (guard.ts), follows redirects itself, retries, limits time
// and size, and classifies failures by whether the request may have reached the vendor.
//
// It retries GET and HEAD, any method of a `read` action, and PUT and DELETE of an `idempotent` one, unless the request
// has an `effect` of its own. Any other request is retried only after a complete refusal because of a rate limit, which
// guarantees that the request had no effect. A `costly` request is retried only when it was certainly not processed.

import { backoff } from '../backoff.ts'
import { messageOf } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { Limit, limitSignal, livedMs } from '../lived-time.ts'
import type { CallTrace } from '../log/trace.ts'
import { unlessAborted } from '../wait.ts'
import { AgentError, withSent } from './core/agent-error.ts'
import { type Effect, isReading, mayRepeat } from './core/effect.ts'
import { type Account, isBelow, withAccount } from './net/account.ts'
import { isLoopback } from './net/address.ts'
import { classify, isNotSent } from './net/connection-error.ts'
import { type Guard, isOriginIn, originsOf, systemLookup, vet } from './net/guard.ts'
import { outgoing } from './net/outgoing.ts'
import { askedWait, isRateLimit } from './net/rate-limit.ts'
import { bound } from './net/reply-body.ts'
import { isTransient } from './net/reply-error.ts'
import type { FetchOptions } from './net/requests.ts'
import { pauseToRetry } from './retries.ts'

export interface FetchPolicy {
  /** The agent's resolved settings. The origins of the URLs in them are always allowed. */
  settings: unknown
  network: NetworkPolicy
  /** Other addresses that are always allowed: those that the agent makes from its settings, or has by default. */
  addresses?: (() => readonly string[]) | undefined
  /** The effect of the action. */
  effect: Effect
  signal: AbortSignal
  log(message: string, fields?: JsonObject): void
  /** Reports that the call waits, until the returned object is disposed of. */
  waiting?: ((reason: string, until?: Date) => Disposable) | undefined
  /** Resolves when a limit of the account lets the next request begin. */
  pace?: (() => Promise<void>) | undefined
  /** Resolves when the limits of the phase, and of those above, let a request be sent again. The first one has begun. */
  mayRepeat?: (() => Promise<void>) | undefined
  /** Makes a span of each request, if requests are traced. */
  trace?: CallTrace | undefined
  /** The account in whose name all requests of the call are sent. */
  account?: Account | undefined
}

export interface NetworkPolicy {
  /** `network.allow` of settings.yml. */
  allow: readonly string[]
  /** Origins of the `url`s that are written out in team.yml, for a run that was started on this machine from a path. */
  literalOrigins: readonly string[]
  /** `network.proxy_resolves` of settings.yml. */
  proxyResolves?: boolean
}

/** Access to the outside world, as parameters so that tests can replace it. */
export interface FetchWorld {
  lookup: Guard['lookup']
  env: Guard['env']
  now(): number
  lived(): number
  random(): number
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

const TIMEOUT = 60_000
const MAX_BYTES = 64 * 1024 * 1024
const ATTEMPTS = 4
const REDIRECTS = 3
/**
 * The longest wait that a vendor may ask for. With a longer one the reply is returned at once, and the phase's own retry
 * follows later.
 */
const LONGEST_WAIT = 5 * 60_000
/** The engine waits somewhat longer for an agent that it has asked to stop. */
const CLEANUP_MS = 2_000
/** Limit for all attempts and waits together, without the time to read a body. */
const TOTAL = 15 * 60_000

/**
 * The only headers that are sent on after a redirect to another origin. Authorization, Cookie and vendors' key headers
 * are dropped.
 */
const SAFE_HEADERS = ['accept', 'accept-language', 'content-language', 'content-type', 'range', 'user-agent']
/** The headers that carry credentials by their definition. Over http they are sent only to this machine. */
const CREDENTIAL_HEADERS = ['authorization', 'proxy-authorization', 'cookie']
/** Statuses by which a server says that it did not process the request: it is overloaded, or limits the rate. */
const UNPROCESSED = [429, 503, 529]

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

/** Creates the fetch function of one call. Tests use the other parameters to control time, randomness and DNS. */
export function guardedFetch(
  policy: FetchPolicy,
  options: Partial<FetchWorld> = {},
): (url: string | URL, options?: FetchOptions) => Promise<Response> {
  const {
    lookup = systemLookup,
    env = process.env,
    now = Date.now,
    lived = livedMs,
    random = Math.random,
    sleep = pauseToRetry,
  } = options
  const guard = { ...guardOf(policy), lookup, env }

  return async (address, init = {}) => {
    const url = URL.parse(String(address))
    if (!url) throw new AgentError('the URL must have a scheme and a host', { code: 'invalid_url', sent: 'no' })
    const method = (init.method ?? 'GET').toUpperCase()
    const given = headersOf(init.headers)
    const headers = policy.account ? withAccount(policy.account, url, given) : given
    const request = { url, method, headers, body: init.body ?? null }
    const own = init.cleanup ? { ...policy, signal: limitSignal(CLEANUP_MS).signal } : policy
    const once = {
      policy: own,
      guard,
      timeout: init.timeout ?? TIMEOUT,
      maxBytes: init.maxBytes ?? MAX_BYTES,
      follow: init.follow ?? isReading(method),
    }
    const costly = init.costly ?? false
    const repeatable = !costly && mayRepeat(method, policy.effect, init.effect)
    const attempts = request.body instanceof ReadableStream || init.cleanup ? 1 : (init.attempts ?? ATTEMPTS)
    const deadline = lived() + TOTAL

    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) await policy.mayRepeat?.()
      await paced(policy, attempt)
      const { result, limited } = await judged(await settle(send(request, once)))
      const again =
        limited ||
        (result instanceof AgentError
          ? (repeatable || (costly && result.sent === 'no')) && result.retryable
          : isTransient(result.status) && (repeatable || (costly && UNPROCESSED.includes(result.status))))
      const asked = result instanceof Response ? askedWait(result.status, result.headers, now(), limited) : null
      const wait = asked ?? backoff(attempt - 1, { jitter: 1, random })
      if (!again || attempt >= attempts || wait > LONGEST_WAIT || lived() + wait > deadline) {
        if (result instanceof AgentError) throw result
        return result
      }
      if (result instanceof Response) await result.body?.cancel()
      const failure = result instanceof AgentError ? result.message : `HTTP ${result.status}`
      const why = limited ? 'rate limit' : failure
      const until = asked === null ? undefined : new Date(now() + wait)
      policy.log(`waiting: ${why}${until ? ` until ${until.toISOString()}` : ''}`, {
        attempt,
        wait_ms: wait,
        host: url.host,
      })
      using _ = policy.waiting?.(why, until)
      await sleep(wait, policy.signal)
    }
  }
}

/** Waits for the limit of the account. Before the first request nothing was sent, whatever ends the wait. */
async function paced({ pace }: FetchPolicy, attempt: number): Promise<void> {
  try {
    await pace?.()
  } catch (cause) {
    if (attempt > 1) throw cause
    throw new AgentError('stopped before the request was sent', { code: 'aborted', sent: 'no', cause })
  }
}

function headersOf(given: FetchOptions['headers']): Headers {
  try {
    return new Headers(given)
  } catch (cause) {
    const hint = 'a header must be one line of Latin-1 characters: check for extra characters in the settings'
    throw new AgentError(`a header cannot be sent: ${messageOf(cause)}`, { code: 'invalid_request', hint, sent: 'no' })
  }
}

/** The guard for an agent with these settings. */
export function guardOf({
  settings,
  network,
  addresses,
}: Pick<FetchPolicy, 'settings' | 'network' | 'addresses'>): Guard {
  const { allow, literalOrigins, proxyResolves = false } = network
  const origins = new Set([...originsOf(settings), ...literalOrigins])
  const knows = (origin: string) => origins.has(origin) || isOriginIn(addresses?.() ?? [], origin)
  return { knows, allow, proxyResolves, lookup: systemLookup, env: process.env }
}

async function settle(work: Promise<Response>): Promise<Response | AgentError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AgentError) return error
    throw error
  }
}

/**
 * Whether a reply is the refusal of a rate limit. Some vendors answer 403 and say it only in the body, so the body of a
 * 403 is read here, and the result is a reply that can be read again.
 */
async function judged(result: Response | AgentError): Promise<{ result: Response | AgentError; limited: boolean }> {
  if (result instanceof AgentError || result.status !== 403 || result.body === null) {
    return { result, limited: result instanceof Response && isRateLimit(result.status, result.headers) }
  }
  const { status, headers } = result
  const body = await result.bytes().catch(() => new Uint8Array())
  const limited = isRateLimit(status, headers, new TextDecoder().decode(body))
  return { result: new Response(body, { status, headers }), limited }
}

/** One attempt. It follows redirects and vets each target. */
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
      throw new AgentError(`${endpointOf(request)}: more than ${REDIRECTS} redirects`, { code: 'redirects', hint })
    }
    current = redirected(current, reply.status, next, options.policy.account)
  }
}

/**
 * The request that follows a redirect (RFC 9110, 15.4): 301, 302 and 303 become a GET, 307 and 308 keep the method and
 * the body.
 */
function redirected(from: Request, status: number, location: string, account: Account | undefined): Request {
  const url = URL.parse(location, from.url.href)
  if (!url) throw new AgentError(`${endpointOf(from)}: the redirect has an invalid URL`, { code: 'redirects' })
  const keeps = status === 307 || status === 308 || isReading(from.method)
  if (keeps && from.body instanceof ReadableStream) {
    const hint = 'use the final address, because a streamed body cannot be sent twice'
    throw new AgentError(`${endpointOf(from)}: the server redirected a request with a streamed body`, {
      code: 'redirects',
      hint,
    })
  }
  const headers = new Headers(from.headers)
  if (!keeps) for (const name of ['content-type', 'content-language']) headers.delete(name)
  if (url.origin !== from.url.origin || (account && !isBelow(account, url))) {
    for (const name of [...headers.keys()]) if (!SAFE_HEADERS.includes(name)) headers.delete(name)
  }
  return { url, method: keeps ? from.method : 'GET', headers, body: keeps ? from.body : null }
}

/** Sends one request to one origin. Its addresses are tried in turn until a connection is made. */
async function hop(request: Request, options: Try, hops: number): Promise<Response> {
  const { policy, timeout, maxBytes } = options
  const endpoint = endpointOf(request)
  const controller = new AbortController()
  const abort = () => controller.abort()
  policy.signal.addEventListener('abort', abort, { once: true })
  const done = () => policy.signal.removeEventListener('abort', abort)
  let late = false
  let answered = false
  let limit: Limit | undefined
  const wait = () => {
    if (answered) return
    limit?.end()
    limit = new Limit(timeout, () => {
      late = true
      abort()
    })
  }
  wait()
  const span = policy.trace?.request(request.method, request.url)
  const explain = (error: unknown) => classify(error, { endpoint, late, timeout, aborted: policy.signal.aborted })
  try {
    if (policy.signal.aborted)
      throw new AgentError(`${endpoint} was not sent: stopped`, { code: 'aborted', sent: 'no' })
    const traced = span ? { ...request, headers: withTrace(request.headers, span.traceparent) } : request
    const reply = await connect(traced, options, controller.signal, wait)
    span?.end(reply.status)
    return bound(reply, { maxBytes, idle: timeout, abort, done, explain, endpoint })
  } catch (error) {
    done()
    const failure = explain(error)
    span?.end(failure.code)
    // The first hop of a redirected request did reach the vendor.
    throw hops > 0 && failure.sent === 'no' ? withSent(failure, 'unknown') : failure
  } finally {
    answered = true
    limit?.end()
  }
}

/** The headers with the place of the request in its trace, unless the agent has set one. */
function withTrace(given: Headers, traceparent: string): Headers {
  const headers = new Headers(given)
  if (!headers.has('traceparent')) headers.set('traceparent', traceparent)
  return headers
}

async function connect(
  { url, method, headers, body }: Request,
  { policy, guard }: Try,
  signal: AbortSignal,
  onTaken: () => void,
) {
  const route = await unlessAborted(vet(url, guard), signal)
  const sent = new Headers(headers)
  if (url.protocol === 'http:' && CREDENTIAL_HEADERS.some(name => sent.has(name))) {
    const isLocal = route.proxy === null && route.urls.every(({ hostname }) => isLoopback(hostname))
    if (!isLocal) {
      const message = `refused to send credentials to ${url.origin} unencrypted`
      const hint = `write https://${url.host}; if the server has no https, reach it through a tunnel to localhost`
      throw new AgentError(message, { code: 'refused', hint, sent: 'no' })
    }
  }
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
        // Instead of Bun's own limit on silence, which is documented as five minutes, those above apply.
        timeout: false,
        // When a reused connection is reset, Bun resends PUT and DELETE by itself.
        keepalive: isReading(method) || policy.effect !== 'once',
        ...(route.name && url.protocol === 'https:' && { tls: { serverName: url.hostname } }),
        // Set explicitly, because Bun would otherwise choose a proxy from the environment and the URL.
        proxy: route.proxy ? { url: route.proxy, respectNoProxy: false } : false,
      })
    } catch (error) {
      if (index === route.urls.length - 1 || !isNotSent(error) || body instanceof ReadableStream) throw error
    }
  }
  throw new AgentError(`${url.host} has no address`, { code: 'dns', retryable: true, sent: 'no' })
}

/** The method and origin. The path and query are left out, because they may contain secrets such as a webhook's key. */
function endpointOf({ method, url }: Request): string {
  return `${method} ${url.origin}`
}
