// The first plugin of the listening app: it knows the addresses of callers, and turns errors into replies.

import { type Elysia, NotFoundError } from 'elysia'
import { CadreError } from '../error.ts'
import { faultFields } from '../log/fault-fields.ts'
import type { Log } from '../log/log.ts'
import { httpKit } from './kit.ts'
import { peerOf } from './peers.ts'
import { asFailure } from './reply.ts'
import { requestId } from './watch.ts'

/** Options of that app: a path with an additional slash is another path, and nothing is removed from bodies. */
export const STRICT = { normalize: false, strictPath: true, handler: { standardHostname: false } } as const

interface RootOptions {
  /** The name of the program in errors that could otherwise seem to concern the caller's own machine. */
  program?: 'the hub' | 'the daemon' | 'the server'
  /** Returns what to answer when the program's own database is damaged, and null for any other error. */
  damageOf?(thrown: unknown): CadreError | null
}

/** The first plugin of that app. Elysia would answer the errors of plugins before it in Elysia's own form. */
export const root =
  (log: Log, { program = 'the server', damageOf }: RootOptions = {}) =>
  (app: Elysia) =>
    app
      .onRequest(({ request }): void => {
        // Without this, Elysia would call the handler of GET for a HEAD request.
        if (request.method === 'HEAD') throw new NotFoundError()
      })
      // This comes before the kit's `peer`, because an app keeps the first. Reading Elysia's own `server` would cost
      // each request more than everything else in this file.
      .decorate({ peer: (request: Request) => peerOf(app.server, request) })
      .use(httpKit())
      .onError(({ code, error, set, request, path, frame, ...context }): Response => {
        const damage = damageOf?.(error)
        const failure = damage ?? (code === 'NOT_FOUND' ? unrouted(app, path) : asFailure(error, program))
        if (damage || failure.code === 'internal')
          log.error('request failed', { path, ...faultFields(damage ?? error) })
        else log.debug('request refused', { path, method: request.method, code: failure.code })
        set.status = failure.status
        if (failure.code === 'unauthorized') set.headers['www-authenticate'] = 'Bearer'
        if (failure.code === 'method_not_allowed') set.headers.allow = methodsOf(app, path)
        if (failure.retryAfter !== undefined) set.headers['retry-after'] = String(Math.ceil(failure.retryAfter))
        const shown =
          failure.code === 'internal'
            ? { code: failure.code, message: `internal error; the log has it under request id ${requestId()}` }
            : failure.body()
        const body = 'body' in context ? context.body : undefined
        return Response.json(frame.failure(shown, body), { status: failure.status })
      })

/**
 * Elysia reports a path that does not exist like a method that a path does not support. This function distinguishes them.
 */
function unrouted(app: Elysia, path: string): CadreError {
  const methods = methodsOf(app, path)
  return methods === ''
    ? new CadreError('not_found', `there is no path ${path}`)
    : new CadreError('method_not_allowed', `${path} takes ${methods}`)
}

const methodsOf = ({ routes }: Elysia, path: string): string =>
  routes
    .filter(route => route.path === path || (route.path.endsWith('/*') && path.startsWith(route.path.slice(0, -1))))
    .map(({ method }) => method)
    .join(', ')
