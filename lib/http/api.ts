// The HTTP kit of hub and daemon, on Elysia: one way to declare a route, one order of checks, one form of replies.
// Order: path and method, size and type, credential (the route's access), body, permission (the same), then the handler.
// A route that was not declared through the kit stops the start.

import type { Server } from 'bun'
import { Elysia } from 'elysia'
import type { Static, TSchema } from 'typebox'
import { CadreError } from '../error.ts'
import type { Log } from '../log.ts'
import { standard } from '../schema.ts'
import { checkHead, MIB, readJson } from './body.ts'
import { asFailure, type Frame, plainFrame } from './reply.ts'

/** Who may call a route. */
export interface Access<Caller> {
  /** What is asked, in words: for OpenAPI and the list of routes. */
  readonly rule: string
  /** Who calls: runs before a byte of the body is read, and answers with the caller or throws. */
  admit(incoming: Incoming): Caller | Promise<Caller>
  /** Whether this caller may call it at all: runs once the body is found right, and throws otherwise. */
  permit?(caller: Caller): void
}

export const anyone: Access<null> = { rule: 'none', admit: () => null }

/** What is known of a request before its body. */
export interface Incoming {
  readonly request: Request
  readonly path: string
  /** What follows `Authorization: Bearer `; null without such a header. */
  readonly bearer: string | null
  /** Address of the socket's other end, never taken from a header; null when it is gone. */
  peer(): string | null
}

/** What a handler gets. It returns `data`, or a Response of its own. */
export interface Call<Body = unknown, Caller = unknown> {
  readonly body: Body
  readonly caller: Caller
  readonly request: Request
  readonly requestId: string
  readonly server: Server<unknown> | null
}

/** What a handler of a GET route gets: the query instead of a body, its values as strings. */
export interface Visit<Query = unknown, Caller = unknown> extends Omit<Call<never, Caller>, 'body'> {
  readonly query: Query
}

export interface Declaration<Caller> {
  access: Access<Caller>
  /** One line for OpenAPI. */
  summary?: string
  /** What a success answers as `data`: for OpenAPI and the tests, which hold replies against it; not checked when serving. */
  data?: TSchema
}

export interface PostDeclaration<Caller, Body extends TSchema> extends Declaration<Caller> {
  body: Body
  /** Largest body in bytes; default 1 MiB. */
  limit?: number
  /** The form of replies; default `{ok, data}`. */
  frame?: Frame
  /** Of success; default 200. */
  status?: 200 | 201
}

export interface GetDeclaration<Caller, Query extends TSchema> extends Declaration<Caller> {
  query: Query
  /** Where the handler answers with a Response of its own: its content type. */
  media?: string
}

interface Endpoint {
  access: Access<unknown>
  limit: number
  frame: Frame
  schema: TSchema
  status: 200 | 201
  data: TSchema | undefined
  media: string | undefined
}

/** A route as it was declared. */
export interface Route {
  method: string
  path: string
  /** What its access asks, in words. */
  rule: string
  /** Of success. */
  status: number
  /** Of success: the schema of `data`, or the content type of what is no such reply. */
  data: TSchema | undefined
  media: string | undefined
}

export interface Api {
  readonly app: Elysia
  /** Fires when the server is told to stop: long polls and streams end then. */
  readonly stopping: AbortSignal
  stop(): void
  post<Caller, Body extends TSchema>(
    path: string,
    declaration: PostDeclaration<Caller, Body>,
    handler: (call: Call<Static<Body>, Caller>) => unknown,
  ): void
  get<Caller, Query extends TSchema>(
    path: string,
    declaration: GetDeclaration<Caller, Query>,
    handler: (visit: Visit<Static<Query>, Caller>) => unknown,
  ): void
  /** Every route with what it asks, sorted by path. */
  routes(): Route[]
}

export function createApi(options: { log: Log }): Api {
  const { log } = options
  const endpoints = new Map<string, Map<string, Endpoint>>()
  const stopping = new AbortController()

  const app = new Elysia({ normalize: false, handler: { standardHostname: false } })
    .decorate({ caller: undefined as unknown, endpoint: null as Endpoint | null, requestId: '' })
    .onRequest(async function admit(context) {
      const { request, path, server, set } = context as typeof context & { path: string }
      set.headers['x-request-id'] = context.requestId = crypto.randomUUID()
      const methods = endpoints.get(path)
      if (!methods) throw new CadreError('not_found', `no such path: ${path}`)
      const endpoint = methods.get(request.method)
      if (!endpoint) {
        set.headers.allow = [...methods.keys()].join(', ')
        throw new CadreError('method_not_allowed', `${path} takes ${set.headers.allow}`)
      }
      context.endpoint = endpoint
      if (request.method === 'POST') checkHead(request, endpoint.limit)
      const peer = () => server?.requestIP(request)?.address ?? null
      context.caller = await endpoint.access.admit({ request, path, bearer: bearerOf(request), peer })
    })
    .onParse(({ request, endpoint }) => readJson(request, endpoint!.limit))
    .onAfterHandle(({ response, endpoint, body, set }) => {
      if (response instanceof Response) return response
      set.status = endpoint!.status
      return endpoint!.frame.success(response ?? null, body)
    })
    .onError(function fail(context) {
      const { error, set, request, path, requestId, endpoint } = context
      const failure = asFailure(error, endpoint?.schema)
      if (failure.code === 'internal') log.error('request failed', { requestId, path, ...describe(error) })
      else log.debug('request refused', { requestId, path, method: request.method, code: failure.code })
      set.status = failure.status
      if (failure.code === 'unauthorized') set.headers['www-authenticate'] = 'Bearer'
      if (failure.retryAfter !== undefined) set.headers['retry-after'] = String(Math.ceil(failure.retryAfter))
      const error_ =
        failure.code === 'internal'
          ? { code: failure.code, message: `internal error; the log has it under request id ${requestId}` }
          : failure.body()
      const body = 'body' in context ? context.body : undefined
      return Response.json((endpoint?.frame ?? plainFrame).failure(error_, body), { status: failure.status })
    })

  function declare(method: string, path: string, endpoint: Endpoint): void {
    const methods = endpoints.get(path) ?? new Map<string, Endpoint>()
    if (methods.has(method)) throw new Error(`${method} ${path} is declared twice`)
    endpoints.set(path, methods.set(method, endpoint))
  }

  return {
    app: app as unknown as Elysia,
    stopping: stopping.signal,
    stop: () => stopping.abort(),
    post(path, { access, body, limit = MIB, frame = plainFrame, status = 200, summary, data }, handler) {
      declare('POST', path, { access, limit, frame, schema: body, status, data, media: undefined })
      app.post(path, permitted(access, handler) as never, { body: standard(body), detail: detail(access, summary) })
    },
    get(path, { access, query, summary, data, media }, handler) {
      declare('GET', path, { access, limit: 0, frame: plainFrame, schema: query, status: 200, data, media })
      app.get(path, permitted(access, handler) as never, { query: standard(query), detail: detail(access, summary) })
    },
    routes() {
      const undeclared = app.routes.filter(({ method, path }) => !endpoints.get(path)?.has(method))
      if (undeclared.length > 0) {
        const names = undeclared.map(({ method, path }) => `${method} ${path}`).join(', ')
        throw new Error(`routes without a declared access: ${names}; declare them with api.post or api.get`)
      }
      return [...endpoints]
        .flatMap(([path, methods]) =>
          [...methods].map(([method, { access, status, data, media }]) => {
            return { method, path, rule: access.rule, status, data, media }
          }),
        )
        .sort((a, b) => (a.path < b.path ? -1 : 1))
    },
  }
}

function permitted<Caller, A extends { caller: Caller }>(access: Access<Caller>, handler: (call: A) => unknown) {
  if (!access.permit) return handler
  return (call: A) => {
    access.permit!(call.caller)
    return handler(call)
  }
}

function detail(access: Access<unknown>, summary: string | undefined) {
  return { description: `Access: ${access.rule}.`, ...(summary !== undefined && { summary }) }
}

function bearerOf(request: Request): string | null {
  const header = request.headers.get('authorization')
  return header !== null && /^bearer /i.test(header) ? header.slice(7).trim() : null
}

/** For the log. A database error's message carries the statement's parameters, which may be secret: they are cut. */
function describe(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: 'not an Error' }
  const cut = (text: string) => text.split('\nparams:', 1)[0]!
  const cause = error.cause instanceof Error ? { cause: cut(error.cause.message) } : {}
  const frames = error.stack?.split('\n').filter(line => line.startsWith('    at ')) ?? []
  return { error: `${error.name}: ${cut(error.message)}`, ...cause, stack: frames.slice(0, 8).map(line => line.trim()) }
}
