// A vendor for tests: a real server on this machine that replies as its author says, records the requests, and fails on
// demand.

/**
 * One request that a fake vendor got.
 * @example const { path, query } = vendor.seen[0]!
 */
export interface VendorRequest {
  method: string
  /** As it was sent, without the query. */
  path: string
  /** The decoded values of the `:name` parts of a route's key. */
  params: Record<string, string>
  query: URLSearchParams
  headers: Headers
  /** Parsed if it was sent as JSON, and text otherwise. */
  body: unknown
  /** The status with which the vendor has done it, whatever answer was sent; absent when it was not done. */
  done?: number
}

/** A `Response` is sent as it is, `undefined` is a 404, and anything else is sent as JSON. */
type Answer = (request: VendorRequest) => unknown

/**
 * What an agent works with: `fakeVendor`, or a server or a file of another protocol. It ends with `await using`.
 * @example interface Database extends AsyncDisposable { url: string }
 */
export type Vendor = Disposable | AsyncDisposable

export function isFake(vendor: Vendor): vendor is FakeVendor {
  return 'fail' in vendor && 'seen' in vendor
}

/**
 * The server that `fakeVendor` starts.
 * @example interface Shop extends FakeVendor { orders: Order[] }
 */
export interface FakeVendor {
  url: string
  seen: VendorRequest[]
  /**
   * The next `times` (default 1) requests whose `METHOD /path` matches get this answer; `done`: after the vendor has done
   * what was asked, as when its reply is lost; with a promise it is done when that resolves, long after the answer.
   */
  fail(match: RegExp, answer: Fault['answer'], options?: { done?: Fault['done']; times?: number }): void
  /** What its author says of it: see `fakeVendor`. */
  readonly traits: { lags: number; pages: number | null; knowsRepetitions: boolean }
  [Symbol.dispose](): void
}

interface Fault {
  match: RegExp
  answer: (request: VendorRequest) => Response | Promise<Response>
  done: boolean | Promise<unknown>
  times: number
}

interface VendorOptions {
  allows?: (request: VendorRequest) => boolean
  lags?: number
  pages?: number
  identity?: (request: VendorRequest) => string | null
}

/**
 * Starts a server on a port of its own. It is given routes by method and path, or one function for all requests; `allows`
 * answers 401 to what it returns false for. It ends with `using`.
 *
 * What the vendor is like in practice, the suite has to know: `lags` is how many looks do not show a write yet, `pages` how
 * many records a page of its listings has, and `identity` by what it knows a request, so that a repetition gets the reply
 * to the first one and writes nothing.
 * @example
 * using vendor = fakeVendor({ 'GET /items/:id': ({ params }) => items.get(params.id!) })
 */
export function fakeVendor(
  routes: Answer | Record<string, Answer>,
  { allows = () => true, lags = 0, pages, identity }: VendorOptions = {},
): FakeVendor {
  const seen: VendorRequest[] = []
  const faults: Fault[] = []
  const answerOf = typeof routes === 'function' ? routes : routed(routes)
  /** By identity: the reply to the first request. */
  const replies = new Map<string, Response>()
  const handle = async (request: VendorRequest): Promise<Response> => {
    const reply = await replyTo(request)
    request.done = reply.status
    return reply
  }
  const replyTo = async (request: VendorRequest): Promise<Response> => {
    if (!allows(request)) return refusal(401)
    const known = identity?.(request) ?? null
    const before = known === null ? undefined : replies.get(known)
    if (before) return copyOf(before)
    const answer = await answerOf(request)
    const reply = answer instanceof Response ? answer : answer === undefined ? refusal(404) : Response.json(answer)
    if (known !== null && reply.ok) replies.set(known, copyOf(reply))
    return reply
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(raw) {
      const { pathname, searchParams } = new URL(raw.url)
      const text = await raw.text()
      const isJson = raw.headers.get('content-type')?.startsWith('application/json') ?? false
      const request: VendorRequest = {
        method: raw.method,
        path: pathname,
        params: {},
        query: searchParams,
        headers: raw.headers,
        body: isJson ? JSON.parse(text) : text,
      }
      seen.push(request)
      const fault = faults.find(each => each.times > 0 && each.match.test(`${request.method} ${request.path}`))
      if (!fault) return handle(request)
      fault.times--
      if (fault.done === true) await handle(request)
      else if (fault.done) void fault.done.then(() => handle(request))
      return fault.answer(request)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    traits: { lags, pages: pages ?? null, knowsRepetitions: identity !== undefined },
    fail: (match, answer, { done = false, times = 1 } = {}) => faults.push({ match, answer, done, times }),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** `clone` of a Response, which has the type of another library. */
export const copyOf = (reply: Response): Response => reply.clone() as unknown as Response

/** The answer of the first route that fits, or undefined when none does. */
function routed(routes: Record<string, Answer>): Answer {
  const patterns = Object.entries(routes).map(([key, answer]) => {
    const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(key) ?? []
    if (!method || !path) throw new Error(`the route ${JSON.stringify(key)} must have the form 'GET /items/:id'`)
    return { method, pattern: new URLPattern({ pathname: path }), answer }
  })
  return request => {
    for (const { method, pattern, answer } of patterns) {
      const groups = pattern.exec({ pathname: request.path })?.pathname.groups
      if (!groups || method !== request.method) continue
      const params = Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value ?? '')])
      return answer({ ...request, params: Object.fromEntries(params) })
    }
    return undefined
  }
}

export function refusal(status: number, body: unknown = '', headers: Record<string, string> = {}): Response {
  return typeof body === 'string' ? new Response(body, { status, headers }) : Response.json(body, { status, headers })
}

/** Sends the beginning of a reply, and then nothing more. */
export function halfReply(): Response {
  const half = Bun.gzipSync(JSON.stringify({ items: 'x'.repeat(10_000) })).subarray(0, 30)
  return new Response(half, { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } })
}

/** Cuts the connection after the last byte of the request. */
export function reset(): Response {
  const cut = new ReadableStream({ start: controller => controller.error() })
  return new Response(cut, { headers: { 'content-type': 'application/json' } })
}

/** Sends the headers, and then nothing. */
export function endless(): Response {
  return new Response(new ReadableStream({}), { headers: { 'content-type': 'application/json' } })
}

/** Sends nothing, not even headers. */
export function silence(): Promise<Response> {
  return new Promise(() => {})
}

/** Repeats everything that it was sent, including credentials, as some vendors do in their errors. */
export function echo(status: number): Fault['answer'] {
  return ({ method, path, query, headers, body }) => {
    const given = headers.get('authorization') ?? ''
    const plain = given.startsWith('Basic ') ? atob(given.slice(6)) : given
    const sent = [plain, ...headers.values(), path, query, typeof body === 'string' ? body : JSON.stringify(body)]
    const message = `${method} with ${sent.join(' ')}`
    return Response.json({ message, id: plain, name: plain, errors: [message] }, { status })
  }
}
