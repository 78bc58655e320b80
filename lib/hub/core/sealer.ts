// How private dispatch keys and the secrets of webhooks are stored: encrypted with AES-256-GCM when the hub has a key
// (`CADRE_HUB_KEY`), and as plain text otherwise.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { CadreError } from '../../error.ts'

export interface Sealer {
  seal(text: string): string
  /** Decrypts a text. Throws `unavailable` when it was encrypted with another key. */
  open(text: string): string
}

const SEALED = 'sealed:v1:'

export function createSealer(secret: string | undefined): Sealer {
  if (!secret) {
    return {
      seal: text => text,
      open(text) {
        if (!text.startsWith(SEALED)) return text
        throw new CadreError(
          'unavailable',
          'the stored keys are encrypted: start the hub with the CADRE_HUB_KEY that they were encrypted with',
        )
      },
    }
  }
  // The word for the purpose is older than webhooks. Another one would make stored keys unreadable.
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'cadre dispatch keys', 32))
  return {
    seal(text) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      const bytes = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final()])
      return SEALED + Buffer.concat([bytes, cipher.getAuthTag()]).toString('base64')
    },
    open(text) {
      if (!text.startsWith(SEALED)) return text
      const bytes = Buffer.from(text.slice(SEALED.length), 'base64')
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
        decipher.setAuthTag(bytes.subarray(-16))
        return decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw new CadreError('unavailable', 'CADRE_HUB_KEY is not the key that the stored keys were encrypted with')
      }
    },
  }
}
