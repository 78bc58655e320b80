// Wraps the handling of every request: log lines contain the id of the request, and its duration is counted.

import type { AnyElysia } from 'elysia'
import { logged, scopeFields } from '../log/log.ts'
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
  const seriesOf = seriesFinder(app)
  return async request => {
    const startedAt = performance.now()
    const requestId = crypto.randomUUID()
    const response = await logged({ requestId }, () => app.fetch(request))
    // Elysia takes longer for every reply when a header has been set before.
    response.headers.set('x-request-id', requestId)
    seriesOf(request, response.status).observe((performance.now() - startedAt) / 1_000)
    return response
  }
}

/**
 * The function that finds the series of a request by its path, method and status. Putting these together as one key would
 * take longer than everything else here.
 */
function seriesFinder({ routes, decorator: { durations } }: App): (request: Request, status: number) => Series {
  // Callers choose methods and paths, of which only those that exist become labels.
  const known = new Map(['', ...routes.map(({ path }) => path)].map(path => [path, new Map<string, Series[]>()]))
  return ({ method: given, url }, status) => {
    const path = pathOf(url)
    const route = known.has(path) ? path : ''
    const method = METHODS.has(given) ? given : '_OTHER'
    const byStatus = known.get(route)!.get(method) ?? []
    if (byStatus.length === 0) known.get(route)!.set(method, byStatus)
    byStatus[status] ??= durations.series({
      http_request_method: method,
      ...(route && { http_route: route }),
      http_response_status_code: String(status),
    })
    return byStatus[status]
  }
}

/** Faster than `new URL`, which would cost more than the rest of this file. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', start)
  return start === -1 ? '/' : url.slice(start, end === -1 ? undefined : end)
}
