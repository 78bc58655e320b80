// Dispatch keys: Ed25519, one current a org, the previous one accepted for a day after a rotation. Private keys are
// sealed with AES-256-GCM when the hub has a key of its own (`CADRE_HUB_KEY`).

import { createCipheriv, createDecipheriv, createHash, generateKeyPairSync, hkdfSync, randomBytes } from 'node:crypto'
import { and, asc, desc, eq, gt, isNull, or } from 'drizzle-orm'
import type { Db, Store } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import type { PublicKey } from '../wire/protocol.ts'
import type { Hub } from './hub.ts'

/** How long a rotated key is still accepted. */
const OVERLAP_MS = 86_400_000

export interface Sealer {
  seal(text: string): string
  /** Throws `unavailable` when the text was sealed under another key. */
  open(text: string): string
}

const SEALED = 'sealed:v1:'

export function createSealer(secret: string | undefined): Sealer {
  if (!secret) {
    return {
      seal: text => text,
      open(text) {
        if (!text.startsWith(SEALED)) return text
        throw new CadreError('unavailable', 'the dispatch keys are encrypted: start the hub with its CADRE_HUB_KEY')
      },
    }
  }
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
        throw new CadreError('unavailable', 'CADRE_HUB_KEY is not the key that the dispatch keys were encrypted with')
      }
    },
  }
}

/** Makes a new current key for the org and lets the former one lapse after a day. */
export async function rotateKeys({ store, sealer, now }: Hub, tx: Db, orgId: number) {
  const { dispatchKeys } = store
  const at = now()
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const der = publicKey.export({ type: 'spki', format: 'der' })
  const row = {
    kid: createHash('sha256').update(der).digest('hex').slice(0, 16),
    org_id: orgId,
    public_pem: publicKey.export({ type: 'spki', format: 'pem' }) as string,
    private_key: sealer.seal(privateKey.export({ type: 'pkcs8', format: 'pem' }) as string),
    created_at: at,
  }
  await tx
    .update(dispatchKeys)
    .set({ not_after: at + OVERLAP_MS })
    .where(and(eq(dispatchKeys.org_id, orgId), isNull(dispatchKeys.not_after)))
  await tx.insert(dispatchKeys).values(row)
  return row
}

/** The keys to accept now, current first. */
export async function publicKeys({ store, now }: Pick<Hub, 'store' | 'now'>, orgId: number): Promise<PublicKey[]> {
  const { dispatchKeys } = store
  const rows = await store.db
    .select()
    .from(dispatchKeys)
    .where(and(eq(dispatchKeys.org_id, orgId), or(isNull(dispatchKeys.not_after), gt(dispatchKeys.not_after, now()))))
    .orderBy(desc(isNull(dispatchKeys.not_after)), asc(dispatchKeys.created_at))
  return rows.map(({ kid, public_pem, not_after }) => ({
    kid,
    pem: public_pem,
    ...(not_after !== null && { not_after }),
  }))
}

/** The current key pair's row. */
export async function currentKey(store: Store, orgId: number) {
  const { dispatchKeys } = store
  const [row] = await store.db
    .select()
    .from(dispatchKeys)
    .where(and(eq(dispatchKeys.org_id, orgId), isNull(dispatchKeys.not_after)))
  if (!row) throw new Error(`org ${orgId} has no dispatch key`)
  return row
}
