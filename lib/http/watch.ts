// Every request of a server is watched: while it is answered, lines of the log have its id, and its duration is counted.

import type { AnyElysia } from 'elysia'
import { logged, scopeFields } from '../log.ts'
import type { Histogram, Series } from './metrics.ts'

/** An app that has the HTTP kit. */
export type App = Pick<AnyElysia, 'fetch' | 'routes' | 'server'> & {
  decorator: { stopping: AbortController; leaving: AbortController; durations: Histogram }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'CONNECT', 'TRACE'])

/** The id of the request that is being answered. Undefined outside of a watched server. */
export function requestId(): string | undefined {
  const { requestId } = scopeFields()
  return typeof requestId === 'string' ? requestId : undefined
}

/** The function that answers requests for `app`. */
export function watched(app: App): (request: Request) => Promise<Response> {
  const { durations } = app.decorator
  const paths = new Set(app.routes.map(({ path }) => path))
  /** By what is counted together. Callers choose methods and paths, of which only those that exist become labels. */
  const counted = new Map<string, Series>()
  return async request => {
    const begun = performance.now()
    const requestId = crypto.randomUUID()
    const response = await logged({ requestId }, () => app.fetch(request))
    // Elysia takes longer for every reply when a header has been set before.
    response.headers.set('x-request-id', requestId)
    const method = METHODS.has(request.method) ? request.method : '_OTHER'
    const path = pathOf(request.url)
    const route = paths.has(path) ? path : ''
    const key = `${response.status} ${method} ${route}`
    let series = counted.get(key)
    if (!series) {
      series = durations.series({
        http_request_method: method,
        ...(route && { http_route: route }),
        http_response_status_code: String(response.status),
      })
      counted.set(key, series)
    }
    series.observe((performance.now() - begun) / 1_000)
    return response
  }
}

/** Faster than `new URL`, which would cost more than the rest of this file. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', start)
  return start === -1 ? '/' : url.slice(start, end === -1 ? undefined : end)
}
