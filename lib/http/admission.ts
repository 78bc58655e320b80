// Who may call a route, as a macro of Elysia. The order of checks: path and method (Elysia's router), size and type,
// credential, body, permission, then the handler.

import { CadreError } from '../error.ts'
import { checkHead, MIB, readJson } from './body.ts'
import { type Frame, plainFrame } from './reply.ts'

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
  /** What follows `Authorization: Bearer `; null without that header. Throws 401 when the header says anything else. */
  readonly bearer: string | null
  /** Address of the socket's other end, never taken from a header; null when it is gone. */
  peer(): string | null
}

/** What Elysia and the kit give the first hook of a route. */
interface Arrival {
  request: Request
  peer(request: Request): string | null
  headers: Record<string, string | undefined>
  bearer: string | undefined
  set: { status?: number | string }
  body: unknown
  frame: Frame
}

/** What `admission` reads of the route that it is declared in. */
interface Declared {
  limit?: number
  frame?: Frame
  status?: 200 | 201
}

/** The rule of each hook that admits callers: a route has declared its access when it has such a hook. */
const rules = new WeakMap<object, string>()

/** What the access of a route asks, in words; undefined when it has none. `hooks`: the route's `transform`. */
export const ruleOf = (hooks: { fn: object }[] = []): string | undefined =>
  hooks.map(({ fn }) => rules.get(fn)).find(rule => rule !== undefined)

/** The hooks of a route that only `access` may call; its handler is given the `caller`. */
export function admission<Caller>(access: Access<Caller>) {
  const callers = new WeakMap<Request, Caller>()
  let limit = MIB
  let status: 200 | 201 = 200
  let frame = plainFrame

  async function admit(context: Arrival): Promise<void> {
    const { request, headers, bearer, peer, set } = context
    context.frame = frame
    if (request.method === 'POST') checkHead(headers, limit)
    const incoming: Incoming = {
      request,
      get bearer() {
        if (bearer !== undefined || headers.authorization === undefined) return bearer ?? null
        throw new CadreError('unauthorized', 'the credential must be sent as Authorization: Bearer <token>')
      },
      peer: () => peer(request),
    }
    callers.set(request, await access.admit(incoming))
    if (request.method === 'POST') context.body = await readJson(request, headers, limit)
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
