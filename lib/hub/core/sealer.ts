// How private dispatch keys, secrets of webhooks and hooks, and bodies of deliveries are stored: encrypted with AES-256-GCM
// when the hub has a key (`CADRE_HUB_KEY`), and as plain text otherwise. `CADRE_HUB_KEY` may list keys, such as `new,old`:
// the hub opens what any of them sealed. lib/hub/keys chooses the one that seals.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Sealed } from '../../../db/hub/columns.ts'
import { CadreError } from '../../error.ts'

export interface Sealer {
  /** The ids of the keys, in the order of `CADRE_HUB_KEY`; empty without one. */
  readonly keyIds: readonly string[]
  /** The id of the key that seals: the first one, unless `sealWith` says otherwise. Null without a key. */
  readonly sealsWith: string | null
  sealWith(keyId: string): void
  seal(text: string): Sealed
  /** Decrypts a text. Throws `unavailable` when it was encrypted with another key. */
  open(text: Sealed): string
  /** The id of the key that a text is sealed with; `plain` for plain text, `unknown` for a key that this hub lacks. */
  keyOf(text: Sealed): string
}

const PREFIX = 'sealed:v1:'

interface Key {
  id: string
  bytes: Buffer
}

export function createSealer(secret: string | undefined): Sealer {
  const keys = keysOf(secret)
  let sealing = keys[0] ?? null
  const opened = (text: string): { key: Key; text: string } | null => {
    for (const key of keys) {
      const plain = decrypted(key, text)
      if (plain !== null) return { key, text: plain }
    }
    return null
  }
  return {
    keyIds: keys.map(({ id }) => id),
    get sealsWith() {
      return sealing?.id ?? null
    },
    sealWith(keyId) {
      sealing = keys.find(({ id }) => id === keyId) ?? sealing
    },
    seal: text => (sealing ? encrypted(sealing, text) : text) as Sealed,
    open(text) {
      if (!text.startsWith(PREFIX)) return text
      const found = opened(text)
      if (found) return found.text
      const fault =
        keys.length === 0
          ? 'the stored keys are encrypted: start the hub with the CADRE_HUB_KEY that they were encrypted with'
          : 'CADRE_HUB_KEY is not the key that the stored keys were encrypted with'
      throw new CadreError('unavailable', fault)
    },
    keyOf: text => (text.startsWith(PREFIX) ? (opened(text)?.key.id ?? 'unknown') : 'plain'),
  }
}

function keysOf(secret: string | undefined): Key[] {
  if (!secret) return []
  const listed = secret.split(',').map(each => each.trim())
  // Before keys were listed, a comma was a part of the key: such a key still opens.
  const all = new Set([...listed.filter(Boolean), secret])
  return [...all].map(keyFrom)
}

function keyFrom(secret: string): Key {
  // The word for the purpose is older than webhooks. Another one would make stored keys unreadable.
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', 'cadre dispatch keys', 32))
  return { id: Buffer.from(hkdfSync('sha256', secret, '', 'cadre hub key id', 12)).toString('hex'), bytes }
}

function encrypted({ bytes: key }: Key, text: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const bytes = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final()])
  return PREFIX + Buffer.concat([bytes, cipher.getAuthTag()]).toString('base64')
}

function decrypted({ bytes: key }: Key, text: string): string | null {
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
    decipher.setAuthTag(bytes.subarray(-16))
    return decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return null
  }
}
