// The secrets of hooks: the form that each scheme needs, and the key that a secret stands for. A secret that could never
// fit is refused when it is given, because its hook would answer 401 to every request.

import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Detail } from '../../error.ts'
import type { KeyForm, SchemeName } from './schemes.ts'

/** What a secret has to fit. */
interface Lock {
  readonly scheme: SchemeName
  readonly key: KeyForm
}

/** How many bytes the key after `whsec_` has: as the specification says, and as GitLab makes it. */
const STANDARD_BYTES = { least: 24, most: 64 }
const GITLAB_BYTES = { least: 32, most: 32 }
const PUBLIC_KEY_BYTES = 32
const BEARER_LEAST = 24
/** A key that is shorter can be guessed from one request that somebody recorded. */
const SHORT = 16
const LONGEST = 1_000
/** Microsoft Graph takes no longer one. */
const LONGEST_STATE = 128

const WHSEC = 'whsec_'
const WHPK = 'whpk_'

/** The bytes that `text` writes, if it is their only spelling: decoders take many others. */
export function bytesOf(text: string, form: 'hex' | 'base64'): Uint8Array | null {
  const bytes = Buffer.from(text, form)
  return bytes.length > 0 && bytes.toString(form) === (form === 'hex' ? text.toLowerCase() : text) ? bytes : null
}

/** The key of an HMAC; null if the secret does not have the form. */
export function hmacKey(secret: string, form: KeyForm): Uint8Array | null {
  return form === 'text' ? Buffer.from(secret) : bytesOf(secret, form)
}

/** What a secret of Standard Webhooks is; null if it is none. */
export function standardKey(secret: string): { hmac: Uint8Array } | { ed25519: KeyObject } | null {
  if (secret.startsWith(WHPK)) {
    const key = publicKey(secret.slice(WHPK.length))
    return key && { ed25519: key }
  }
  const bytes = secret.startsWith(WHSEC) ? bytesOf(secret.slice(WHSEC.length), 'base64') : null
  return bytes && { hmac: bytes }
}

function publicKey(text: string): KeyObject | null {
  const bytes = bytesOf(text, 'base64')
  if (bytes?.length !== PUBLIC_KEY_BYTES) return null
  try {
    const x = Buffer.from(bytes).toString('base64url')
    return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  } catch {
    return null
  }
}

/** What is wrong with a secret of the hook, and what is weak about it. `at` is where it stands in the request. */
export function checkSecret(spec: Lock, secret: string, at = '/secret'): { problems: Detail[]; notes: string[] } {
  const message = faultOf(secret) ?? faultFor(spec, secret)
  if (message !== null) return { problems: [{ path: at, message }], notes: [] }
  const isShort = secret.length < SHORT
  return {
    problems: [],
    notes: isShort ? [`the secret has only ${secret.length} characters: take one of at least ${SHORT}, at random`] : [],
  }
}

function faultOf(secret: string): string | null {
  if (secret === '') return 'must not be empty: the sender and cadre share a secret'
  if (secret.length > LONGEST) return `must have at most ${LONGEST} characters`
  if (/[\u0000-\u001f\u007f]/.test(secret)) return 'must be one line, without control characters'
  if (secret !== secret.trim()) return 'begins or ends with a blank: copy the secret without it'
  // Half of a character has no bytes that the sender could have signed with.
  return secret.isWellFormed() ? null : 'is not valid Unicode'
}

function faultFor({ scheme, key }: Lock, secret: string): string | null {
  switch (scheme) {
    case 'gitlab':
      if (isKey(secret, GITLAB_BYTES)) return null
      return `must be the signing token of the webhook, which begins with ${WHSEC} (for its secret token, choose the scheme gitlab_token)`
    case 'standard':
      return faultOfStandard(secret)
    case 'hmac':
      if (hmacKey(secret, key)) return null
      return key === 'hex'
        ? 'must be hex, because `key` is hex: two digits for each byte'
        : 'must be base64 with its padding, because `key` is base64'
    case 'bearer':
      if (secret.length < BEARER_LEAST)
        return `must have at least ${BEARER_LEAST} characters, because it is all that is checked`
      return inHeader(secret) && !secret.includes(' ')
        ? null
        : 'must be ASCII without blanks, because it stands in a header'
    case 'gitlab_token':
      return inHeader(secret) ? null : 'must be ASCII without a comma before a blank, because it stands in a header'
    case 'graph':
      if (secret.length <= LONGEST_STATE) return null
      return `must have at most ${LONGEST_STATE} characters, because it is the clientState of the subscription`
    default:
      return null
  }
}

function faultOfStandard(secret: string): string | null {
  if (secret.startsWith('whsk_')) return `is the sender's own key: take the public one, which begins with ${WHPK}`
  if (secret.startsWith(WHPK)) {
    return standardKey(secret)
      ? null
      : `must be ${WHPK} and the base64 of the ${PUBLIC_KEY_BYTES} bytes of a public key`
  }
  if (isKey(secret, STANDARD_BYTES)) return null
  const { least, most } = STANDARD_BYTES
  return `must be ${WHSEC} and the base64 of ${least} to ${most} bytes, or ${WHPK} and that of a public key`
}

function isKey(secret: string, { least, most }: { least: number; most: number }): boolean {
  const bytes = secret.startsWith(WHSEC) ? bytesOf(secret.slice(WHSEC.length), 'base64') : null
  return bytes !== null && bytes.length >= least && bytes.length <= most
}

/** Whether a header can have this text: `, ` in one is refused, because that is how two headers of a name arrive. */
const inHeader = (text: string): boolean => /^[\x20-\x7e]+$/.test(text) && !text.includes(', ')
