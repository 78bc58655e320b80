// Secrets of tokens: prefix, 32 random bytes in base62, six characters of checksum. Scanners can find them, garbage is
// refused before the database is asked, and only the SHA-256 is kept.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 > 2^256. */
const BODY_LENGTH = 43
const CHECK_LENGTH = 6
const FORM = new RegExp(`^(cadre_(?:tok|dt|inv)_)([0-9A-Za-z]{${BODY_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`)

/** User tokens (sessions too), realm tokens, invitations. */
export const PREFIX = { user: 'cadre_tok_', realm: 'cadre_dt_', invitation: 'cadre_inv_' } as const

export function mintSecret(type: keyof typeof PREFIX): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  let value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let body = ''
  for (; body.length < BODY_LENGTH; value /= 62n) body = DIGITS[Number(value % 62n)] + body
  return PREFIX[type] + body + checksum(PREFIX[type] + body)
}

/** Whether `text` could be a secret of ours. Says nothing about whether it is known. */
export function isSecretForm(text: string): boolean {
  const [, prefix, body, check] = FORM.exec(text) ?? []
  return prefix !== undefined && checksum(prefix + body) === check
}

/** What is stored of a secret, hex. */
export function hashSecret(secret: string): string {
  return new Bun.CryptoHasher('sha256').update(secret).digest('hex')
}

/** CRC-32 in base62. Of every request's token: so in plain numbers. */
function checksum(text: string): string {
  let value = Bun.hash.crc32(text)
  let check = ''
  for (; check.length < CHECK_LENGTH; value = Math.floor(value / 62)) check = DIGITS[value % 62] + check
  return check
}
