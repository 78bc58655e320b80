// What the firing of a delivery has before anybody knows what becomes of it: the occasion that names it, and what
// expressions see. Pure, so that a home and a hub do alike.

import { isWithin } from '../duration.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { fieldsOf, type ParsedBody, parseBody } from '../triggers/hook/body.ts'
import type { Delivery } from '../triggers/hook/delivery.ts'
import type { Hook } from '../triggers/hook/fields.ts'
import type { HookSpec } from '../triggers/hook/spec.ts'
import { storedHeaders } from '../triggers/hook/stored-headers.ts'
import type { HookRequest } from '../triggers/hook/verify.ts'
import { pausedText } from './changes.ts'
import type { Halt } from './halt.ts'
import { deliveryValue, hookSpec } from './hook-kind.ts'
import type { Firing, Trigger } from './trigger.ts'

/** Larger bodies are not kept. */
const MOST_KEPT = 256 * 1024
const DAY_MS = 86_400_000

/** A delivery whose signature fits. */
export interface Arrived {
  trigger: Trigger<Hook>
  spec: HookSpec
  request: HookRequest
  delivery: Delivery
  body: ParsedBody
}

/** What a sender sent, but for the headers, which the firing has. */
export interface Sent {
  query: JsonObject
  body: Uint8Array
}

/** A delivery that has to be judged. */
export interface Judging {
  firing: Firing
  /** Why it starts nothing, whatever the trigger says of it. */
  halt: Halt | null
  sent: Sent
  /** What expressions see beside the variables of the firing. */
  values: JsonObject
}

/**
 * What names a delivery, and its firing if it has come before. `newest`: the latest firing of its id, or of those that are
 * named after it.
 */
export function occasionOf(
  { id, within }: Delivery,
  newest: Firing | null,
  now: number,
): { occasion: string; known: Firing | null } {
  if (id === null) return { occasion: crypto.randomUUID(), known: null }
  if (!newest) return { occasion: id, known: null }
  if (within === null || isWithin(newest.seen_at, now, within)) return { occasion: newest.occasion, known: newest }
  const number = Number(newest.occasion.slice(id.length + 1) || 1) + 1
  return { occasion: `${id}~${number}`, known: null }
}

/** The firing of a request that is no delivery. It has no id of the sender, who may be anybody. */
export const rejectedFiring = (
  trigger: Trigger,
  why: Pick<Firing, 'state' | 'reason' | 'detail'>,
  now: number,
): Firing => ({
  ...newFiring(trigger, `rejected:${crypto.randomUUID()}`, {}, now),
  ...why,
})

/** `known`: its firing, which was refused. */
export function judgingOf(
  { trigger, spec, request, delivery, body }: Arrived,
  occasion: string,
  known: Firing | null,
  at: number,
): Judging {
  const headers = storedHeaders(spec, request.headers)
  const variables = { headers, delivery: deliveryValue(delivery.id ?? occasion, delivery.event, at) }
  const firing = known
    ? { ...known, deliveries: (known.deliveries ?? 0) + 1, variables }
    : newFiring(trigger, occasion, variables, at)
  const pause: Halt | null = trigger.paused && { state: 'skipped', reason: 'paused', detail: pausedText(trigger) }
  const fault: Halt | null = body.ok ? null : { state: 'refused', reason: 'body', detail: body.detail }
  const query = fieldsOf(request.query)
  const values = { body: body.ok ? body.value : null, query }
  return { firing, halt: fault ?? pause, sent: { query, body: request.body }, values }
}

/** What expressions see of a delivery whose body was kept. Throws `invalid_state` when that cannot be read. */
export function sentValues(own: Hook, { variables }: Pick<Firing, 'variables'>, { query, body }: Sent): JsonObject {
  const { headers } = variables as { headers?: Record<string, string> }
  const parsed = parseBody(hookSpec(own), headers?.['content-type'] ?? null, body)
  if (!parsed.ok) throw new CadreError('invalid_state', parsed.detail)
  return { body: parsed.value, query }
}

/** Until when what came is kept; null: while its firing waits; undefined: not at all. `now`: the believed time. */
export function keptUntil(
  { state }: Firing,
  { keepBodyDays }: HookSpec,
  { body }: Sent,
  now: number,
): number | null | undefined {
  if (keepBodyDays > 0 && body.length <= MOST_KEPT) return now + keepBodyDays * DAY_MS
  return state === 'waiting' ? null : undefined
}

function newFiring({ id, revision }: Trigger, occasion: string, variables: JsonObject, now: number): Firing {
  return {
    ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, occasion, at: now, until: null, seen_at: now },
    ...{ started_at: null, state: 'refused', reason: null, detail: null, run_id: null, count: 1, late_ms: null },
    ...{ manual: null, deliveries: 1, variables },
  }
}
