// The form of our secrets: a prefix, 43 characters of base62 and six characters of checksum. Scanners can find them,
// invalid text is refused before a database query, and a session token can be told from a durable one without asking
// the hub.

import { timingSafeEqual } from 'node:crypto'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 > 2^256. */
export const BODY_LENGTH = 43
const CHECK_LENGTH = 6
const FORM = new RegExp(`^(cadre_(?:tok|dt|inv)_[0-9A-Za-z]{${BODY_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`)

/** Added to the text from which the checksum of a session token is computed. */
const SESSION = 'session:'

/** The last six characters of the secret that begins with `text`. */
export function checksumOf(text: string, session = false): string {
  return base62(Bun.hash.crc32(session ? SESSION + text : text), CHECK_LENGTH)
}

/** Whether `text` has the form of one of our secrets. It need not be known to a hub. */
export function isSecretForm(text: string): boolean {
  const [, begin, check] = FORM.exec(text) ?? []
  return begin !== undefined && (checksumOf(begin) === check || checksumOf(begin, true) === check)
}

/** Whether `text` is a session token. Tokens of older hubs do not show this; for those the hub must be asked. */
export function isSessionForm(text: string): boolean {
  const [, begin, check] = FORM.exec(text) ?? []
  return begin !== undefined && checksumOf(begin, true) === check
}

/** Encodes a number. This runs for the token of every request, so plain numbers are used where they suffice. */
export function base62(value: number | bigint, length: number): string {
  let text = ''
  if (typeof value === 'bigint') {
    for (; text.length < length; value /= 62n) text = DIGITS[Number(value % 62n)] + text
    return text
  }
  for (; text.length < length; value = Math.floor(value / 62)) text = DIGITS[value % 62] + text
  return text
}

/** Compares in constant time, so that the time does not reveal where the texts differ. */
export function sameSecret(given: string, known: string): boolean {
  const [a, b] = [given, known].map(text => new Bun.CryptoHasher('sha256').update(text).digest())
  return timingSafeEqual(a!, b!)
}
