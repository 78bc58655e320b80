// Who may call a route, declared with a macro of Elysia. The checks run in this order: path and method (Elysia's
// router), size and type, credential, body, permission. The handler comes last.

import { CadreError } from '../error.ts'
import { checkHead, MIB, readJson } from './body.ts'
import { type Frame, plainFrame } from './reply.ts'

/** Who may call a route. */
export interface Access<Caller> {
  /** The requirement in words, for OpenAPI and the list of routes. */
  readonly rule: string
  /** The route passes the request on as a whole, so its body is neither checked nor read here. */
  readonly unread?: true
  /** Returns the caller, or throws. Runs before any byte of the body is read. */
  admit(incoming: Incoming): Caller | Promise<Caller>
  /** Throws if this caller may not use the route at all. Runs after the body has been checked. */
  permit?(caller: Caller): void
}

/** A body that takes longer may have been held back. */
const SLOW_MS = 100

export const anyone: Access<null> = { rule: 'none', admit: () => null }

/** What is known about a request before its body is read. */
export interface Incoming {
  readonly request: Request
  /**
   * The text after `Authorization: Bearer `, or null without that header. Throws 401 when the header has another form.
   */
  readonly bearer: string | null
  /** The address of the other end of the socket, never taken from a header. Null when the socket is closed. */
  peer(): string | null
}

/** What Elysia and the kit pass to the first hook of a route. */
interface Arrival {
  request: Request
  peer(request: Request): string | null
  headers: Record<string, string | undefined>
  bearer: string | undefined
  set: { status?: number | string }
  body: unknown
  frame: Frame
}

/** What `admission` reads from the declaration of its route. */
interface Declared {
  limit?: number
  frame?: Frame
  status?: 200 | 201
}

/** The rule of each hook that admits callers. A route that has such a hook has declared its access. */
const rules = new WeakMap<object, string>()

/**
 * What the access of a route requires, in words. Undefined when it declares none. `hooks` is the route's `transform`.
 */
export const ruleOf = (hooks: { fn: object }[] = []): string | undefined =>
  hooks.map(({ fn }) => rules.get(fn)).find(rule => rule !== undefined)

/** The hooks of a route that only callers with `access` may use. Its handler gets the `caller`. */
export function admission<Caller>(access: Access<Caller>) {
  const callers = new WeakMap<Request, Caller>()
  let limit = MIB
  let status: 200 | 201 = 200
  let frame = plainFrame

  async function admit(context: Arrival): Promise<void> {
    const { request, headers, bearer, peer, set } = context
    context.frame = frame
    const reads = request.method === 'POST' && !access.unread
    if (reads) checkHead(headers, limit)
    const incoming: Incoming = {
      request,
      get bearer() {
        if (bearer !== undefined || headers.authorization === undefined) return bearer ?? null
        throw new CadreError('unauthorized', 'the credential must be sent as Authorization: Bearer <token>')
      },
      peer: () => peer(request),
    }
    callers.set(request, await access.admit(incoming))
    if (reads) {
      const began = performance.now()
      context.body = await readJson(request, headers, limit)
      // Whoever sends a body slowly would keep the rights of the moment in which it began.
      if (performance.now() - began > SLOW_MS) callers.set(request, await access.admit(incoming))
    }
    set.status = status
  }
  rules.set(admit, access.rule)

  return {
    introspect(route: Declared) {
      limit = route.limit ?? MIB
      status = route.status ?? 200
      frame = route.frame ?? plainFrame
    },
    detail: { description: `Access: ${access.rule}.` },
    transform: admit,
    resolve({ request }: { request: Request }) {
      const caller = callers.get(request)!
      access.permit?.(caller)
      return { caller }
    },
  }
}
