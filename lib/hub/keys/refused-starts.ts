// Hubs that refuse to start with the keys that they have. Nobody reads the log of a machine where nothing runs, so such a
// hub leaves a word in the database, and the hubs that serve it tell it: in their logs, `/ready`, `/metrics` and an alert.

import { hostname } from 'node:os'
import { eq, gt, lt, or } from 'drizzle-orm'
import type { RefusedStart } from '../../../db/hub/lineage-tables.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { Hub } from '../core/hub.ts'

/** In lived time. A hub that is gone for good, or has another name, is forgotten then. */
const TOLD_MS = 24 * 3_600_000

/** How the hub that listens on a port of this machine is named. */
export const hubName = (port: number): string => `${hostname()}:${port}`

/** Throws `invalid_request`, and leaves word of it, when the database needs a key that this hub lacks. */
export async function checkKeys(hub: Hub, name: string): Promise<void> {
  try {
    await hub.keys.check()
  } catch (error) {
    if (error instanceof CadreError && error.code === 'invalid_request') await leaveWord(hub, name)
    throw error
  }
  const { store, lived } = hub
  const { hub: named, refused_at } = store.refusedStarts
  const ended = or(eq(named, name), lt(refused_at, lived() - TOLD_MS))
  const rows = await store.db.select({ named }).from(store.refusedStarts).where(ended).limit(1)
  if (rows.length > 0) await store.write(tx => tx.delete(store.refusedStarts).where(ended))
}

async function leaveWord({ store, log, lived, sealer }: Hub, name: string): Promise<void> {
  const { refusedStarts } = store
  const refused = { reason: sealer.keyIds.length === 0 ? 'no_key' : 'wrong_key', refused_at: lived() } as const
  try {
    await store.write(tx =>
      tx
        .insert(refusedStarts)
        .values({ hub: name, ...refused })
        .onConflictDoUpdate({ target: refusedStarts.hub, set: refused }),
    )
  } catch (error) {
    // Its own log has the reason in any case.
    log.warn('the other hubs could not be told that this one does not start', { error: messageOf(error) })
  }
}

/** Reads which hubs have refused to start lately, and says each of them once in the log. */
export async function readRefusedStarts({ store, log, lived, refusedStarts }: Hub): Promise<void> {
  const table = store.refusedStarts
  const { hub, reason } = table
  const rows = await store.db
    .select({ hub, reason })
    .from(table)
    .where(gt(table.refused_at, lived() - TOLD_MS))
  for (const row of rows) {
    if (refusedStarts.some(told => told.hub === row.hub && told.reason === row.reason)) continue
    log.warn(`a hub on the same database does not start: ${WORDS[row.reason]}`, row)
  }
  refusedStarts.splice(0, Infinity, ...rows)
}

const WORDS: Readonly<Record<RefusedStart, string>> = {
  wrong_key: 'its CADRE_HUB_KEY lacks a key that this one has',
  no_key: 'it has no CADRE_HUB_KEY',
}
