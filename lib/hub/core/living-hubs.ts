// The hubs that serve the database now.

import { and, gt, isNull, sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'

/** A hub notes that it lives every ten seconds. One that has not for this long, in lived time, has ended. */
export const LIVE_MS = 60_000

export type LivingHub = Pick<Store['hubProcesses']['$inferSelect'], 'id' | 'keys' | 'clock_ahead'>

/** The hubs that noted lately that they live, with the keys that they hold and what they say of their clocks. */
export async function livingHubs({ db, hubProcesses, livedTime }: Store): Promise<LivingHub[]> {
  const { id, keys, clock_ahead, left_at, beat_at } = hubProcesses
  const since = sql`(SELECT ${livedTime.lived} FROM ${livedTime}) - ${LIVE_MS}`
  return db
    .select({ id, keys, clock_ahead })
    .from(hubProcesses)
    .where(and(isNull(left_at), gt(beat_at, since)))
}
