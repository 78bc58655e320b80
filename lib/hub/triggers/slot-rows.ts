// Rows of slots in the hub's database. No slot is in two rows, also where some of a row had started before the clock was put
// back.

import type { Db, Store } from '../../../db/hub/store.ts'
import {
  jitterOf,
  keptPart,
  occasionOf,
  type Skipped,
  shortened,
  skippedSlots,
  withoutKnown,
} from '../../firing/slot-rows.ts'
import type { Firing } from '../../firing/trigger.ts'
import type { SlotRow } from '../../triggers/schedule/due.ts'
import type { ScheduleSpec } from '../../triggers/schedule/spec.ts'
import { deleteAfter, deleteFiring, endingAfter, insertFiring, knownSlots, settleFiring } from './firing-table.ts'
import type { RealmTrigger } from './trigger-table.ts'

type Schedule = RealmTrigger<ScheduleSpec>

/** Records that these slots started nothing, but for those that have a firing. Returns the row that it writes. */
export async function recordSkipped(
  store: Store,
  tx: Db,
  trigger: Schedule,
  row: SlotRow | null,
  skipped: Skipped,
): Promise<Firing | null> {
  if (!row) return null
  const known = await knownSlots(store, tx, trigger.id, occasionOf(row.at), occasionOf(row.until))
  const left = withoutKnown(trigger.spec.own, row, known)
  if (!left) return null
  const firing = skippedSlots(trigger, left, skipped)
  await insertFiring(store, tx, firing)
  return firing
}

/**
 * The clock was ahead: what started nothing and is not due by now is forgotten, because those slots come again, and a row
 * that stands for several slots keeps those that are due.
 */
export async function forgetAfter(store: Store, tx: Db, trigger: Schedule, now: number): Promise<void> {
  const { id, spec } = trigger
  await deleteAfter(store, tx, id, now)
  for (const firing of await endingAfter(store, tx, id, now - jitterOf(spec.own))) {
    const part = keptPart(trigger, firing, now)
    if (part === 'gone') await deleteFiring(store, tx, firing.id)
    else if (part) {
      const started = await knownSlots(store, tx, id, occasionOf(part.at), occasionOf(part.until))
      await settleFiring(store, tx, { ...firing, ...shortened(part, started.length - 1) }, firing.state)
    }
  }
}
