// Dispatch keys (Ed25519). Each org has one current key, and the previous key is accepted for one day after a rotation.
// Private keys are stored encrypted (sealer.ts).

import { createHash, generateKeyPairSync } from 'node:crypto'
import { and, asc, desc, eq, gt, isNull, or } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import type { PublicKey } from '../../wire/protocol.ts'
import type { Hub } from '../core/hub.ts'

/** How long the previous key is accepted after a rotation. */
const OVERLAP_MS = 86_400_000

/** Creates a new current key for the org. The previous key expires after a day, or all previous ones at once. */
export async function rotateKeys({ store, sealer, now }: Hub, tx: Db, orgId: number, revokePrevious = false) {
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
    .set({ not_after: revokePrevious ? at : at + OVERLAP_MS })
    .where(and(eq(dispatchKeys.org_id, orgId), revokePrevious ? accepted(store, at) : isNull(dispatchKeys.not_after)))
  await tx.insert(dispatchKeys).values(row)
  return row
}

const accepted = ({ dispatchKeys }: Store, at: number) =>
  or(isNull(dispatchKeys.not_after), gt(dispatchKeys.not_after, at))

/** The keys that are accepted now, the current one first. */
export async function publicKeys({ store, now }: Pick<Hub, 'store' | 'now'>, orgId: number): Promise<PublicKey[]> {
  const { dispatchKeys } = store
  const rows = await store.db
    .select()
    .from(dispatchKeys)
    .where(and(eq(dispatchKeys.org_id, orgId), accepted(store, now())))
    .orderBy(desc(isNull(dispatchKeys.not_after)), asc(dispatchKeys.created_at))
  return rows.map(({ kid, public_pem, not_after }) => ({
    kid,
    pem: public_pem,
    ...(not_after !== null && { not_after }),
  }))
}

/** The row of the current key pair. */
export async function currentKey(store: Store, orgId: number) {
  const { dispatchKeys } = store
  const [row] = await store.db
    .select()
    .from(dispatchKeys)
    .where(and(eq(dispatchKeys.org_id, orgId), isNull(dispatchKeys.not_after)))
  if (!row) throw new Error(`org ${orgId} has no dispatch key`)
  return row
}
