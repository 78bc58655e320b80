// Secrets of tokens and invitations: a prefix and 32 random bytes. Only the SHA-256 is stored.

import { BODY_LENGTH, base62, checksumOf } from '../../secrets/secret-form.ts'

export { isSecretForm } from '../../secrets/secret-form.ts'

/** Prefixes of user tokens (sessions included), realm tokens and invitations. */
export const PREFIX = { user: 'cadre_tok_', realm: 'cadre_dt_', invitation: 'cadre_inv_' } as const

export function mintSecret(type: keyof typeof PREFIX, kind: 'durable' | 'session' = 'durable'): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const text = PREFIX[type] + base62(BigInt(`0x${Buffer.from(bytes).toString('hex')}`), BODY_LENGTH)
  return text + checksumOf(text, kind === 'session')
}

/** The hash under which a secret is stored, in hex. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, 'hex')
}
