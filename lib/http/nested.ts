// Requests that a route makes from the request that arrived, and passes on to the same app. Facts that only the server
// knows about the request that arrived, such as the address of its caller, apply to the new request as well.

const arrived = new WeakMap<Request, Request>()

/** A request with another URL and other headers, which replaces `request` and takes over its unread body. */
export function nested(request: Request, url: URL, headers: Headers, method = request.method): Request {
  const body = method === 'GET' || request.body === null ? {} : { body: request.body, duplex: 'half' as const }
  const inner = new Request(url.href, { method, headers, signal: request.signal, ...body })
  arrived.set(inner, arrivedAs(request))
  return inner
}

/** The request that arrived at the server, from which `request` was made; otherwise `request` itself. */
export const arrivedAs = (request: Request): Request => arrived.get(request) ?? request

/** Whether a route has made this request of another one. */
export const isNested = (request: Request): boolean => arrived.has(request)
