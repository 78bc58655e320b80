// Triggers on an older copy of the database. What was due before the copy was found is passed over, because the hub may have
// started it and lost the record. Slots from then on start, once daemons had a moment to report what they run.

import { and, gt, isNotNull, isNull, lt, sql } from 'drizzle-orm'
import { concernsRealm, lastFoundAt, MAY_HAVE_STARTED } from '../core/found-copies.ts'
import type { Hub } from '../core/hub.ts'
import { settleWaiting } from './firing-table.ts'
import { inRealm } from './in-realm.ts'
import { type Look, nextOf, setCursor } from './trigger-table.ts'

/**
 * How long nothing starts after a hub has started or an older copy was found. A daemon calls every fifteen seconds, and
 * shows then whether commits were lost, and what it runs.
 */
const SETTLES_MS = 20_000
const DAY_MS = 86_400_000

/** Whether daemons have yet to call that may show that this hub, which has just started, is on an older copy. */
export async function maySoonBeACopy({ store, lived, startedAt, lastSeen }: Hub): Promise<boolean> {
  if (lived() - startedAt >= SETTLES_MS) return false
  const { daemons, db } = store
  const { last_seen_at } = daemons
  const known = and(isNull(daemons.removed_at), gt(last_seen_at, startedAt - DAY_MS), lt(last_seen_at, startedAt))
  const silent = await db
    .select()
    .from(daemons)
    .where(and(known, isNotNull(daemons.approved_at)))
  return silent.some(daemon => lastSeen.lastCallOf(daemon).lived < startedAt)
}

/** Whether a copy that concerns the realm was found so lately that daemons may have yet to report what they run. */
export async function wasJustFound({ hub, tx, realm }: Look): Promise<boolean> {
  const { copies } = hub.store
  const fresh = gt(sql`coalesce(${copies.found_lived}, ${copies.found_at})`, hub.lived() - SETTLES_MS)
  const found = and(concernsRealm(hub.store, realm.id), isNull(copies.ended_at), fresh)
  return (await tx.select({ id: copies.id }).from(copies).where(found).limit(1)).length > 0
}

/**
 * The trigger with its cursor at the discovery of the last copy that concerns it, and what was due before as one row. The
 * transaction may be the one that found the copy.
 */
export async function passOverCopies(look: Look): Promise<Look> {
  const { hub, tx, trigger, now } = look
  const { store } = hub
  const foundAt = await lastFoundAt(store, tx, trigger.realm_id)
  if (foundAt === null || foundAt <= trigger.cursor) return look
  // The clock may have been ahead when it was found.
  const at = Math.min(foundAt, now)
  const skipped = { state: 'skipped', reason: 'copy', detail: MAY_HAVE_STARTED } as const
  await settleWaiting(store, tx, trigger.id, skipped, at)
  if (at <= trigger.cursor) return look
  await inRealm(trigger).passedOver?.(look, at, MAY_HAVE_STARTED)
  const passed = { ...trigger, cursor: at }
  await setCursor(store, tx, trigger.id, at, nextOf(passed))
  return { ...look, trigger: passed }
}
