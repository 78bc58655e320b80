// Who may call a route, declared with a macro of Elysia. The checks run in this order: path and method (Elysia's
// router), size and type, credential, body, permission. The handler comes last.

import type { TSchema } from 'typebox'
import { CadreError } from '../error.ts'
import { matches } from '../schema/schema.ts'
import { MIB } from '../wire/call.ts'
import { checkHead, readJson } from './body.ts'
import { type Frame, notInForm, plainFrame } from './reply.ts'

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
  /** Set by that hook, for the next one. */
  caller?: unknown
}

/** What `admission` reads from the declaration of its route, and adds to it. */
interface Declared {
  parse?: 'none'
  body?: TSchema
  limit?: number
  frame?: Frame
  status?: 200 | 201
}

class Arrived implements Incoming {
  readonly request: Request
  readonly peer: () => string | null
  readonly #authorization: string | undefined
  readonly #bearer: string | undefined

  constructor({ request, peer, headers, bearer }: Pick<Arrival, 'request' | 'peer' | 'headers' | 'bearer'>) {
    this.request = request
    this.peer = () => peer(request)
    this.#authorization = headers.authorization
    this.#bearer = bearer
  }

  get bearer(): string | null {
    if (this.#bearer !== undefined || this.#authorization === undefined) return this.#bearer ?? null
    throw new CadreError('unauthorized', 'the credential must be sent as Authorization: Bearer <token>')
  }
}

/** The rule of each hook that admits callers. A route that has such a hook has declared its access. */
const rules = new WeakMap<object, string>()

/**
 * What the access of a route requires, in words. Undefined when it declares none. `hooks` is the route's `transform`.
 */
export const ruleOf = (hooks: { fn: object }[] = []): string | undefined =>
  hooks.map(({ fn }) => rules.get(fn)).find(rule => rule !== undefined)

/**
 * The hooks of a route that only callers with `access` may use. Its handler gets the `caller`. They read and check the
 * body themselves: Elysia would open the body of every request as a stream before the credential is known, which took
 * a tenth of the time of a heartbeat.
 */
export function admission<Caller>(access: Access<Caller>) {
  let limit = MIB
  let status: 200 | 201 = 200
  let frame = plainFrame
  let form: TSchema | undefined

  async function admit(context: Arrival): Promise<void> {
    // Elysia reads here which parts of a request it must prepare: it would prepare all for a context that is passed on.
    const { request, headers, bearer, peer, set } = context
    context.frame = frame
    const reads = request.method === 'POST' && !access.unread
    if (reads) checkHead(headers, limit)
    const incoming = new Arrived({ request, peer, headers, bearer })
    const admitted = access.admit(incoming)
    // An `await` of what is known already would cost a turn.
    context.caller = admitted instanceof Promise ? await admitted : admitted
    if (reads) {
      const startedAt = performance.now()
      context.body = await readJson(request, headers, limit)
      // Otherwise a caller who sends a body slowly would keep rights that have been withdrawn meanwhile.
      if (performance.now() - startedAt > SLOW_MS) context.caller = await access.admit(incoming)
    }
    if (form && !matches(form, context.body)) throw notInForm(form, context.body)
    if (status !== 200) set.status = status
  }
  rules.set(admit, access.rule)

  return {
    introspect(route: Declared) {
      limit = route.limit ?? MIB
      status = route.status ?? 200
      frame = route.frame ?? plainFrame
      form = route.body
      route.parse = 'none'
      if (form && access.unread) throw new Error('a route that does not read its body cannot declare its form')
    },
    detail: { description: `Access: ${access.rule}.` },
    transform: admit,
    // Elysia reads the text of this function to find what it uses. It understands a parameter in this form, however the
    // compiled program shortens it.
    resolve({ caller }: { request: Request; caller?: Caller }) {
      access.permit?.(caller!)
      return { caller: caller! }
    },
  }
}
