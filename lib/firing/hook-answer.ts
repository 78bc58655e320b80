// What the sender of a delivery is answered. It is a success in any case that is ours to mend: senders disable or delete
// hooks that answer with errors.

import { CadreError } from '../error.ts'
import type { HookSpec } from '../triggers/hook/spec.ts'
import type { Firing } from './trigger.ts'

/** `isKnown`: the delivery had come before, and this is what became of it then. */
export function hookAnswer({ reply }: HookSpec, firing: Firing, isKnown: boolean): Response {
  const { id, occasion, state, reason, detail, run_id, variables } = firing
  if (reason === 'body') throw new CadreError('invalid_request', detail ?? 'the body cannot be read')
  if (reply === 'empty') return new Response(null, { status: 202 })
  const { id: delivery = occasion } = (variables.delivery ?? {}) as { id?: string }
  const data = { delivery, firing: id, state, ...(reason !== null && { reason }), run_id }
  return Response.json({ ok: true, data: { ...data, ...(isKnown && { duplicate: true }) } }, { status: 202 })
}
