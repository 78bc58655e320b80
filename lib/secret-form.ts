// The form of our secrets: prefix, 43 characters of base62, six characters of checksum. Scanners can find them, garbage is
// refused before a database is asked, and a session's token can be told from a durable one without asking its hub.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 > 2^256. */
export const BODY_LENGTH = 43
const CHECK_LENGTH = 6
const FORM = new RegExp(`^(cadre_(?:tok|dt|inv)_[0-9A-Za-z]{${BODY_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`)

/** What the checksum of a session's token is made of besides the token. */
const SESSION = 'session:'

/** The last six characters of the secret that begins with `text`. */
export function checksumOf(text: string, session = false): string {
  return base62(Bun.hash.crc32(session ? SESSION + text : text), CHECK_LENGTH)
}

/** Whether `text` could be a secret of ours. Says nothing about whether it is known. */
export function isSecretForm(text: string): boolean {
  const [, begin, check] = FORM.exec(text) ?? []
  return begin !== undefined && (checksumOf(begin) === check || checksumOf(begin, true) === check)
}

/** Whether it is the token of a session. Those of older hubs do not show it: the hub says it of them. */
export function isSessionForm(text: string): boolean {
  const [, begin, check] = FORM.exec(text) ?? []
  return begin !== undefined && checksumOf(begin, true) === check
}

/** Of every request's token: so in plain numbers where they are enough. */
export function base62(value: number | bigint, length: number): string {
  let text = ''
  if (typeof value === 'bigint') {
    for (; text.length < length; value /= 62n) text = DIGITS[Number(value % 62n)] + text
    return text
  }
  for (; text.length < length; value = Math.floor(value / 62)) text = DIGITS[value % 62] + text
  return text
}
