// How the daemon answers a call that lib/wire/calls declares.

import type { Static, TSchema } from 'typebox'
import { envelopeFrame } from '../../http/reply.ts'
import type { Answer, CallContext, DataOf } from '../../http/resource.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import type { DaemonAccess } from '../../wire/access.ts'
import type { Call, Export, Transfer } from '../../wire/call.ts'
import { NullableText } from '../../wire/parts.ts'
import type { Caller } from './access.ts'

type Plain = (Call | Export | Transfer) & { readonly daemon: DaemonAccess; readonly envelope?: undefined }
interface Context<C extends Plain> extends CallContext<C> {
  caller: Caller
}
type Reply<C> = DataOf<C> | Response

/** The route of a call whose body and reply are plain. */
export function answer<C extends Plain>(
  call: C,
  handler: (context: Context<C>) => Reply<C> | Promise<Reply<C>>,
): Answer {
  return { call, handler, access: { access: call.daemon } }
}

type Enveloped = Call & { readonly daemon: DaemonAccess; readonly envelope: string }
interface MessageContext<C extends Enveloped> {
  body: { payload: Static<C['body']> }
  caller: Caller
}

/** The route of a call whose body and reply are in message envelopes. `instanceId` returns the id of the daemon. */
export function answerMessage<C extends Enveloped>(
  call: C,
  instanceId: () => string | null,
  handler: (context: MessageContext<C>) => DataOf<C>,
): Answer {
  const options = { body: messageOf(call.envelope, call.body), frame: envelopeFrame(instanceId) }
  return { call, handler, access: { access: call.daemon }, options }
}

/** The message envelope, wire protocol version 1. */
const messageOf = (type: string, payload: TSchema) =>
  closed({
    type: Type.Literal(type),
    version: Type.Literal(1),
    id: Type.String({ minLength: 1 }),
    timestamp: Type.Integer(),
    run_id: Type.Optional(NullableText),
    instance_id: Type.Optional(NullableText),
    payload,
  })
