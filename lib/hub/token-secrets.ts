// Secrets of tokens and invitations: 32 random bytes behind a prefix, of which only the SHA-256 is kept.

import { BODY_LENGTH, base62, checksumOf } from '../secret-form.ts'

export { isSecretForm } from '../secret-form.ts'

/** User tokens (sessions too), realm tokens, invitations. */
export const PREFIX = { user: 'cadre_tok_', realm: 'cadre_dt_', invitation: 'cadre_inv_' } as const

export function mintSecret(type: keyof typeof PREFIX, kind: 'durable' | 'session' = 'durable'): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const text = PREFIX[type] + base62(BigInt(`0x${Buffer.from(bytes).toString('hex')}`), BODY_LENGTH)
  return text + checksumOf(text, kind === 'session')
}

/** What is stored of a secret, hex. */
export function hashSecret(secret: string): string {
  return new Bun.CryptoHasher('sha256').update(secret).digest('hex')
}
