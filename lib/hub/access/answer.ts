// How the hub answers a call that lib/wire/calls declares.

import type { Server } from 'bun'
import type { Static, TSchema } from 'typebox'
import type { Histogram } from '../../http/metrics.ts'
import type { ReadySuccess } from '../../http/reply.ts'
import type { Answer } from '../../http/resource.ts'
import type { HubAccess } from '../../wire/access.ts'
import type { Call, Export, Transfer } from '../../wire/call.ts'
import type { RealmCaller, Stranger, UserCaller } from './callers.ts'

type Caller<A> = A extends { user: unknown }
  ? UserCaller
  : A extends { realm: unknown }
    ? RealmCaller
    : A extends { either: unknown }
      ? UserCaller | RealmCaller
      : A extends { operator: unknown }
        ? UserCaller | null
        : A extends { optional: unknown }
          ? UserCaller | Stranger
          : Stranger

type Answered = (Call | Export | Transfer) & { readonly hub: HubAccess }
type DataOf<C> = C extends { data: infer Data extends TSchema } ? Static<Data> : never

/** What a handler gets: the body or query of the call, checked, and who made it. */
interface Context<C extends Answered> {
  body: C extends { body: infer Body extends TSchema } ? Static<Body> : never
  query: C extends { query: infer Query extends TSchema } ? Static<Query> : never
  caller: Caller<C['hub']>
  request: Request
  server: Server<unknown> | null
  /** Aborted when the hub is told to stop. */
  stopping: AbortController
  /** How long requests took. */
  durations: Histogram
}

type Reply<C> = DataOf<C> | Response | ReadySuccess

/** The route of a call. `narrower`: the schema of what this hub replies, if that is less than the call allows. */
export function answer<C extends Answered>(
  call: C,
  handler: (context: Context<C>) => Reply<C> | Promise<Reply<C>>,
  narrower?: TSchema,
): Answer {
  return { call, handler, access: call.hub, ...(narrower && { options: { data: narrower } }) }
}
