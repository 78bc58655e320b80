// How the hub answers a call that lib/wire/calls declares.

import type { TSchema } from 'typebox'
import type { ReadySuccess } from '../../http/reply.ts'
import type { Answer, CallContext, DataOf } from '../../http/resource.ts'
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

interface Context<C extends Answered> extends CallContext<C> {
  caller: Caller<C['hub']>
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
