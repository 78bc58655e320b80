// What a request to a hook is, once its body has been read: a stranger's, a question of the sender, or a delivery. The
// order is that in which a server has to look: the signature over the bytes first, and then what they say.

import type { Json } from '../../json.ts'
import { type ParsedBody, parseBody } from './body.ts'
import { type Delivery, deliveryOf } from './delivery.ts'
import { type Handshake, signedHandshake } from './handshake.ts'
import type { HookSpec } from './spec.ts'
import { type HookRequest, type Verdict, verify } from './verify.ts'

export type Received =
  | { kind: 'stranger'; verdict: Verdict & { ok: false } }
  | { kind: 'question'; reply: Handshake }
  | { kind: 'delivery'; delivery: Delivery; body: ParsedBody }

/** Any of the secrets may fit. `now`: the wall clock. */
export function receive(spec: HookSpec, secrets: readonly string[], request: HookRequest, now: number): Received {
  const verdict = verify(spec, secrets, request, now)
  if (!verdict.ok) return { kind: 'stranger', verdict }
  const body = parseBody(spec, request.headers.get('content-type'), request.body)
  const value: Json | undefined = body.ok ? body.value : undefined
  const reply = signedHandshake(spec, value)
  if (reply) return { kind: 'question', reply }
  return { kind: 'delivery', delivery: deliveryOf(spec, request, value), body }
}
