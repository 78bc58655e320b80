// Which delivery a request is: the id by which it is recognised when it comes again, and the event that it tells of.

import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'
import { fieldsOf, valueAt } from './body.ts'
import type { Place } from './schemes.ts'
import type { HookSpec } from './spec.ts'
import { storedHeaders } from './stored-headers.ts'
import type { HookRequest } from './verify.ts'

export interface Delivery {
  /** Null if nothing makes it the same as another one: each request is a delivery of its own. */
  id: string | null
  /** For how many milliseconds the id stands for this delivery; null for as long as the hook keeps deliveries. */
  within: number | null
  /** What the sender calls the event; null if it does not say. */
  event: string | null
  /** What went wrong with the template of `dedup`; the id is then that of the body. */
  problem: string | null
}

const BODY_WITHIN_MS = 10 * 60_000

/** Ids that can be the occasion of a firing as they are. `#` and the words before a colon there are cadre's own. */
const PLAIN = /^(?!(?:rejected|now|body|sha256):)[A-Za-z0-9][A-Za-z0-9._:=+/@~-]{0,199}$/
const MOST_EVENT = 200

/**
 * `body` is the parsed one; undefined if it could not be read. A sender that leaves out its id, as older versions do, is
 * recognised by the bytes of the body, except with `bearer`, whose `Idempotency-Key` is a choice of each call.
 */
export function deliveryOf(spec: HookSpec, request: HookRequest, body: Json | undefined): Delivery {
  const event = eventOf(textAt(spec.how.event, request, body))
  const whole = { id: `body:${sha256(request.body)}`, within: BODY_WITHIN_MS, event, problem: null }
  const none = { id: null, within: null, event, problem: null }
  const { dedup, scheme } = spec
  if (dedup === 'body') return whole
  if (dedup === 'none') return none
  if (dedup === null) {
    const id = textAt(spec.how.id, request, body)
    return id === null
      ? scheme === 'bearer'
        ? none
        : whole
      : { id: occasionOf(id), within: null, event, problem: null }
  }
  try {
    const values = { body: body ?? null, headers: storedHeaders(spec, request.headers), query: fieldsOf(request.query) }
    const id = asText(dedup(values))
    if (id !== null) return { id: occasionOf(id), within: null, event, problem: null }
    return { ...whole, problem: 'the template of `dedup` gave no text for this delivery' }
  } catch (error) {
    if (!(error instanceof CadreError) || error.code !== 'invalid_request') throw error
    return { ...whole, problem: error.message }
  }
}

/** The first header that is there, else the first text or number in the body. */
function textAt({ headers, body }: Place, request: HookRequest, parsed: Json | undefined): string | null {
  for (const name of headers) {
    const text = request.headers.get(name)
    if (text) return text
  }
  for (const path of body) {
    const text = asText(valueAt(parsed, path))
    if (text !== null) return text
  }
  return null
}

function asText(value: Json | undefined): string | null {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text : null
}

/** The id as the occasion of a firing: as it is, or its hash if it is long or could be taken for one of ours. */
const occasionOf = (id: string): string => (PLAIN.test(id) ? id : `sha256:${sha256(id)}`)

const sha256 = (data: string | Uint8Array): string => new Bun.CryptoHasher('sha256').update(data).digest('hex')

/** It is shown to people and compared by expressions, so it is a short text of one line. */
function eventOf(text: string | null): string | null {
  if (text === null || text.length > MOST_EVENT || /[\u0000-\u001f\u007f]/.test(text)) return null
  return text
}
