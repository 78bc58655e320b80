// Deletes what is old of triggers: firings that are final, and triggers that were removed. The newest firings of a trigger
// stay, and all of which the run is there: from them one reads what started it, and whether it still holds the trigger.

import { parseDuration } from '../../duration.ts'
import type { Daemon } from '../runs/daemon.ts'
import { FiringTable } from './firing-table.ts'
import { HookTable } from './hook-table.ts'
import { TriggerTable } from './trigger-table.ts'

const DAY_MS = 86_400_000
/** Firings that each trigger keeps, however old they are. */
const KEPT = 100

/** Deletes those that are older than `ms` by the believed time, a part at a time. Returns how many. */
export async function deleteOldFirings({ ages, db, engine }: Daemon, ms: number, signal: AbortSignal): Promise<number> {
  const [triggers, firings] = [new TriggerTable(db), new FiringTable(db)]
  let count = 0
  for (const { id, is_removed, per, days } of triggers.everyOne()) {
    // What `at_most` counts is no older than it counts, and a hook recognises deliveries for its own time.
    const needed = Math.max(per === null ? 0 : parseDuration(per)!, is_removed ? 0 : (days ?? 0) * DAY_MS)
    const { at: before, firing: last } = ages.olderThan(Math.max(ms, needed))
    const keep = is_removed ? 0 : KEPT
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const from: number = after
      const part = await engine.commit(() => firings.deleteOld(id, { before, last, keep, after: from }))
      count += part.deleted
      after = part.after
    }
  }
  if (!signal.aborted) await engine.commit(() => triggers.deleteRemoved())
  return count
}

/** Deletes what came with deliveries whose hooks keep it no longer. `now`: the believed time. Returns how many. */
export function deleteOldBodies(
  { ages, db, engine }: Daemon,
  signal: AbortSignal,
  now = ages.believed,
): Promise<number> {
  const hooks = new HookTable(db)
  return signal.aborted ? Promise.resolve(0) : engine.commit(() => hooks.deleteOld(now))
}
