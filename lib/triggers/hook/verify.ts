// Whether a request was made by somebody who knows the secret, and now. The text that the sender would have written is
// computed and compared with the one that came, as bytes and in constant time: decoders take several spellings of the
// same digest. No header or body makes it throw.

import { createHmac, type KeyObject, timingSafeEqual, verify as verifySignature } from 'node:crypto'
import { formatDuration } from '../../duration.ts'
import { isObject } from '../../json.ts'
import { parseJson } from '../../json-text.ts'
import { besideId } from './payload.ts'
import { type HmacCheck, headersOf, type Part, STANDARD_HEADERS, STRIPE_HEADER, type Time } from './schemes.ts'
import { bytesOf, hmacKey, standardKey } from './secrets.ts'
import type { HookSpec } from './spec.ts'

export interface HookRequest {
  readonly headers: Headers
  /** As it arrived, before anything reads it. */
  readonly body: Uint8Array
  readonly query: URLSearchParams
}

/** `detail` is for whoever owns the hook; the sender hears no reason. */
export type Verdict = { ok: true } | { ok: false; reason: 'signature' | 'timestamp'; detail: string }

/** Maximum number of signatures in one header. Senders that change their secret send two. */
const MOST_SIGNATURES = 10

const FINE: Verdict = { ok: true }
const unsigned = (detail: string): Verdict => ({ ok: false, reason: 'signature', detail })
const untimely = (detail: string): Verdict => ({ ok: false, reason: 'timestamp', detail })

/** Any of the secrets may fit, but for an empty one, which anybody knows. `now` is in epoch milliseconds. */
export function verify(spec: HookSpec, known: readonly string[], request: HookRequest, now: number): Verdict {
  const { how } = spec
  const doubled = headersOf(how).find(name => request.headers.get(name)?.includes(', '))
  if (doubled) return unsigned(`the header ${doubled} came more than once`)
  const secrets = known.filter(secret => secret !== '')
  const given = { spec, secrets, request, now }
  switch (how.check.kind) {
    case 'hmac':
      return verifyHmac(given, how.check)
    case 'equal': {
      const { header, prefix } = how.check
      const text = request.headers.get(header)
      if (text === null) return missing(header)
      return anyOf(secrets, secret => equal(text, prefix + secret)) ? FINE : unsigned(`${header} is not the secret`)
    }
    case 'stripe':
      return verifyStripe(given)
    case 'standard':
      return verifyStandard(given)
    case 'graph':
      return verifyStates(given)
  }
}

interface Given {
  spec: HookSpec
  secrets: readonly string[]
  request: HookRequest
  now: number
}

const missing = (header: string): Verdict => unsigned(`the request has no header ${header}`)

const differs = (header: string): Verdict =>
  unsigned(`${header} does not fit: the body was changed on its way, or the sender has another secret`)

/** Every secret is looked at, so that the time does not show which of them fits. */
function anyOf(secrets: readonly string[], fits: (secret: string) => boolean): boolean {
  let found = false
  for (const secret of secrets) found = fits(secret) || found
  return found
}

/** Lengths first: `timingSafeEqual` throws when they differ. */
function equal(came: string, expected: string): boolean {
  const [a, b] = [Buffer.from(came), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

type Message = readonly (string | Uint8Array)[]

function digest(check: Pick<HmacCheck, 'algorithm' | 'encoding'>, key: Uint8Array, message: Message): string {
  const hmac = createHmac(check.algorithm, key)
  for (const part of message) hmac.update(part)
  return hmac.digest(check.encoding)
}

function verifyHmac({ spec, secrets, request, now }: Given, check: HmacCheck): Verdict {
  const { headers, body } = request
  const header = check.signature.find(name => headers.has(name))
  if (header === undefined) return missing(check.signature.join(' or '))
  const time = check.time && readTime(headers, check.time)
  if (typeof time === 'string') return untimely(time)
  const id = check.id === null ? '' : headers.get(check.id)
  if (check.id !== null && !isId(id, besideId(check.parts))) return unsigned(`${check.id} has no id that can be signed`)
  const texts = { timestamp: time?.text ?? '', id: id ?? '', body }
  const message = check.parts.map((part: Part) => (typeof part === 'object' ? part.text : texts[part]))
  const came = headers.get(header) ?? ''
  const fits = anyOf(secrets, secret => {
    const key = hmacKey(secret, spec.key)
    return key !== null && equal(came, check.prefix + digest(check, key, message))
  })
  if (!fits) return differs(header)
  return time ? timely(time, spec, now) : FINE
}

const SHA256 = { algorithm: 'sha256', encoding: 'hex' } as const
const SHA256_BASE64 = { algorithm: 'sha256', encoding: 'base64' } as const

/** `t=1492774577,v1=5257…[,v1=…][,v0=…]`; only `v1` counts. */
function verifyStripe({ spec, secrets, request, now }: Given): Verdict {
  const header = request.headers.get(STRIPE_HEADER)
  if (header === null) return missing(STRIPE_HEADER)
  const items = header.split(',', MOST_SIGNATURES + 2).map(item => /^([a-z][a-z0-9]*)=(.+)$/.exec(item))
  const named = (name: string) => items.flatMap(item => (item?.[1] === name ? [item[2]!] : []))
  const [times, came] = [named('t'), named('v1')]
  if (items.includes(null) || items.length > MOST_SIGNATURES + 1 || times.length !== 1 || came.length === 0) {
    return unsigned(`${STRIPE_HEADER} is not of the form t=…,v1=…`)
  }
  const time = timeOf(times[0]!, { header: STRIPE_HEADER, form: 's' })
  if (typeof time === 'string') return untimely(time)
  const fits = anyOf(secrets, secret => {
    const expected = digest(SHA256, Buffer.from(secret), [time.text, '.', request.body])
    return anyOf(came, text => equal(text, expected))
  })
  return fits ? timely(time, spec, now) : differs(STRIPE_HEADER)
}

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
function verifyStandard({ spec, secrets, request, now }: Given): Verdict {
  const { headers, body } = request
  const header = headers.get(STANDARD_HEADERS.signature)
  if (header === null) return missing(STANDARD_HEADERS.signature)
  const time = readTime(headers, { header: STANDARD_HEADERS.time, form: 's' })
  if (typeof time === 'string') return untimely(time)
  const id = headers.get(STANDARD_HEADERS.id)
  if (!isId(id, ['.'])) return unsigned(`${STANDARD_HEADERS.id} has no id that can be signed`)
  const came = header.split(' ', MOST_SIGNATURES + 1)
  if (came.length > MOST_SIGNATURES || !came.every(text => /^v[0-9]+[a-z]*,[^,]+$/.test(text))) {
    return unsigned(`${STANDARD_HEADERS.signature} is not of the form v1,… of one or more signatures`)
  }
  const message = [id, '.', time.text, '.', body]
  const fits = anyOf(secrets, secret => {
    const key = standardKey(secret)
    if (key === null) return false
    if ('ed25519' in key) return anyOf(came, text => isSigned(text, key.ed25519, message))
    const expected = `v1,${digest(SHA256_BASE64, key.hmac, message)}`
    return anyOf(came, text => equal(text, expected))
  })
  return fits ? timely(time, spec, now) : differs(STANDARD_HEADERS.signature)
}

const ED25519 = 'v1a,'
const SIGNATURE_BYTES = 64

/** The text cannot be computed without the private key, so it has to be the one spelling of its bytes. */
function isSigned(text: string, key: KeyObject, message: Message): boolean {
  const bytes = text.startsWith(ED25519) ? bytesOf(text.slice(ED25519.length), 'base64') : null
  if (bytes?.length !== SIGNATURE_BYTES) return false
  const parts = message.map(part => (typeof part === 'string' ? Buffer.from(part) : part))
  return verifySignature(null, Buffer.concat(parts), key, bytes)
}

/** An id that contains what separates it from its neighbours could be cut in two ways. */
function isId(id: string | null, separators: readonly string[]): id is string {
  return id !== null && id !== '' && !separators.some(text => id.includes(text))
}

/** Microsoft Graph signs nothing: each notification of a request has to name the secret. */
function verifyStates({ secrets, request }: Given): Verdict {
  let body: unknown
  try {
    body = parseJson(request.body, 'the body')
  } catch (error) {
    return unsigned((error as Error).message)
  }
  const value = isObject(body) && Object.hasOwn(body, 'value') ? body.value : null
  if (!Array.isArray(value) || value.length === 0) return unsigned('the body has no notifications in `value`')
  let fit = true
  for (const item of value) {
    const state = isObject(item) && Object.hasOwn(item, 'clientState') ? item.clientState : null
    fit = typeof state === 'string' && anyOf(secrets, secret => equal(state, secret)) && fit
  }
  return fit ? FINE : unsigned('the clientState of a notification is not the secret')
}

interface Moment {
  /** As it was signed. */
  text: string
  ms: number
  header: string
}

const SECONDS = /^[0-9]{1,12}$/
/** Milliseconds of today have 13 digits. */
const MILLISECONDS = /^[0-9]{1,15}$/
const ISO = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$/

function readTime(headers: Headers, time: Time): Moment | string {
  const text = headers.get(time.header)
  return text === null ? `the request has no header ${time.header}` : timeOf(text, time)
}

/** The moment that a text says, or what is wrong with it. */
function timeOf(text: string, { header, form }: Time): Moment | string {
  const pattern = form === 's' ? SECONDS : form === 'ms' ? MILLISECONDS : ISO
  const ms = !pattern.test(text)
    ? Number.NaN
    : form === 'iso'
      ? Date.parse(text)
      : Number(text) * (form === 's' ? 1_000 : 1)
  if (Number.isFinite(ms)) return { text, ms, header }
  return `${header} has no time ${form === 'iso' ? 'in ISO 8601 that ends with Z' : form === 's' ? 'in seconds' : 'in milliseconds'}`
}

/** Judged after the signature, so that only the sender itself hears of its clock. */
function timely({ ms, header }: Moment, { toleranceMs }: HookSpec, now: number): Verdict {
  const late = now - ms
  if (Math.abs(late) <= toleranceMs) return FINE
  const [by, limit] = [formatDuration(Math.abs(late)), formatDuration(toleranceMs)]
  return untimely(
    `${header} is ${by} ${late > 0 ? 'ago' : 'ahead'}, and at most ${limit} are allowed: compare the clocks`,
  )
}
