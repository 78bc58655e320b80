// A vendor of our own making: a real server that checks what the real one checks, and has bad days on request.

export interface VendorRequest {
  method: string
  /** Decoded segments of the path are in `match` of the route; this is the path as sent. */
  path: string
  query: URLSearchParams
  headers: Headers
  /** Parsed when it was sent as JSON, else text. */
  body: unknown
}

export type VendorAnswer = Response | Promise<Response>

export interface Vendor {
  url: string
  seen: VendorRequest[]
  /** The next `times` requests whose `METHOD /path` matches get this answer; `done`: after the vendor has done its work. */
  fail(match: RegExp, answer: () => Response, options?: { done?: boolean; times?: number }): void
  [Symbol.dispose](): void
}

interface Fault {
  match: RegExp
  answer: () => Response
  done: boolean
  times: number
}

export function vendor(handle: (request: VendorRequest) => VendorAnswer): Vendor {
  const seen: VendorRequest[] = []
  const faults: Fault[] = []
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
        query: searchParams,
        headers: raw.headers,
        body: isJson ? JSON.parse(text) : text,
      }
      seen.push(request)
      const fault = faults.find(each => each.times > 0 && each.match.test(`${request.method} ${request.path}`))
      if (!fault) return handle(request)
      fault.times--
      if (fault.done) await handle(request)
      return fault.answer()
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    fail: (match, answer, { done = false, times = 1 } = {}) => faults.push({ match, answer, done, times }),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

export function refusal(status: number, body: unknown = '', headers: Record<string, string> = {}): Response {
  return typeof body === 'string' ? new Response(body, { status, headers }) : Response.json(body, { status, headers })
}

/** The beginning of a reply, and then nothing more. */
export function halfReply(): Response {
  const half = Bun.gzipSync(JSON.stringify({ items: 'x'.repeat(10_000) })).subarray(0, 30)
  return new Response(half, { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } })
}
