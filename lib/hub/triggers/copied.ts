// Triggers on an older copy of the database. What was due before the copy was found is passed over, because the hub may have
// started it and lost the record. Slots from then on start, once daemons had a moment to report what they run.

import { and, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import type { Hub } from '../core/hub.ts'
import { settleFiring, waitingOf } from './firing-table.ts'
import { inRealm } from './in-realm.ts'
import { type Look, nextOf, setCursor } from './trigger-table.ts'

/** What is said of an occasion before the discovery. */
export const MAY_HAVE_STARTED =
  'it was due before the hub was found to be on an older copy of its database, and may have been started'

/**
 * How long nothing starts after a hub has started or an older copy was found. A daemon calls every fifteen seconds, and
 * shows then whether commits were lost, and what it runs.
 */
const SETTLES_MS = 20_000
const DAY_MS = 86_400_000

/**
 * Whether it may still turn out that the database is an older copy: this hub has just started and daemons have yet to call,
 * or a copy was just found and daemons have yet to report.
 */
export async function mayBeACopy(hub: Hub): Promise<boolean> {
  const { store, lived, startedAt, lastSeen } = hub
  const { daemons, db } = store
  const recently = lived() - SETTLES_MS
  if (startedAt > recently) {
    const known = and(
      isNull(daemons.removed_at),
      gt(daemons.last_seen_at, startedAt - DAY_MS),
      lt(daemons.last_seen_at, startedAt),
    )
    const silent = await db.select().from(daemons).where(known)
    if (silent.some(daemon => daemon.approved_at !== null && lastSeen.lastCallOf(daemon).lived < startedAt)) return true
  }
  return hub.lineage.isOlderCopy && wasJustFound(hub, db)
}

/** Whether a copy was found so lately that daemons may have yet to report. */
export async function wasJustFound({ store, lived }: Hub, db: Db): Promise<boolean> {
  const { copies } = store
  const since = sql`coalesce(${copies.found_lived}, ${copies.found_at})`
  const fresh = and(isNull(copies.ended_at), gt(since, lived() - SETTLES_MS))
  return (await db.select({ id: copies.id }).from(copies).where(fresh).limit(1)).length > 0
}

/**
 * The trigger with its cursor at the discovery of the last copy that concerns it, and what was due before as one row. The
 * transaction may be the one that found the copy.
 */
export async function passOverCopies(look: Look): Promise<Look> {
  const { hub, tx, trigger, now } = look
  const { store } = hub
  const { copies } = store
  const found = and(
    or(isNull(copies.realm_id), eq(copies.realm_id, trigger.realm_id)),
    gt(copies.found_at, trigger.cursor),
    sql`${copies.lost} IS NOT FALSE`,
  )
  const [copy] = await tx
    .select({ at: sql<number | null>`max(${copies.found_at})` })
    .from(copies)
    .where(found)
  if (!copy?.at) return look
  // The clock may have been ahead when it was found.
  const at = Math.min(Number(copy.at), now)
  for (const firing of await waitingOf(store, tx, trigger.id)) {
    if (firing.seen_at > at) continue
    await settleFiring(store, tx, { ...firing, state: 'skipped', reason: 'copy', detail: MAY_HAVE_STARTED })
  }
  if (at <= trigger.cursor) return look
  await inRealm(trigger).passedOver?.(look, at, MAY_HAVE_STARTED)
  const passed = { ...trigger, cursor: at }
  await setCursor(store, tx, trigger.id, at, nextOf(passed))
  return { ...look, trigger: passed }
}
