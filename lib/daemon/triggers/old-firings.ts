// Deletes what is old of triggers: firings that are final, and triggers that were removed. The newest firings of a trigger
// stay, and all of which the run is there: from them one reads what started it, and whether it still holds the trigger.

import { parseDuration } from '../../duration.ts'
import type { Daemon } from '../runs/daemon.ts'
import { FiringTable } from './firing-table.ts'
import { TriggerTable } from './trigger-table.ts'

/** Firings that each trigger keeps, however old they are. */
const KEPT = 100

/** Deletes those that are older than `ms` by the believed time, a part at a time. Returns how many. */
export async function deleteOldFirings({ ages, db, engine }: Daemon, ms: number, signal: AbortSignal): Promise<number> {
  const [triggers, firings] = [new TriggerTable(db), new FiringTable(db)]
  let count = 0
  for (const { id, is_removed, per } of triggers.everyOne()) {
    // What `at_most` counts is no older than it counts.
    const { at: before, firing: last } = ages.olderThan(Math.max(ms, per === null ? 0 : parseDuration(per)!))
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
