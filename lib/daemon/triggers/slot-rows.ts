// Rows of slots in the database of a home. No slot is in two rows, also where some of a row had started before the clock
// was put back.

import {
  jitterOf,
  keptPart,
  occasionOf,
  type Schedule,
  type Skipped,
  shortened,
  skippedSlots,
  withoutKnown,
} from '../../firing/slot-rows.ts'
import type { SlotRow } from '../../triggers/schedule/due.ts'
import type { FiringTable } from './firing-table.ts'

/** Records that these slots started nothing, but for those that have a firing. Called in a transaction. */
export function recordSkipped(firings: FiringTable, trigger: Schedule, row: SlotRow | null, skipped: Skipped): void {
  if (!row) return
  const known = firings.slots(trigger.id, occasionOf(row.at), occasionOf(row.until))
  const left = withoutKnown(trigger.spec.own, row, known)
  if (left) firings.insert(skippedSlots(trigger, left, skipped))
}

/**
 * The clock was ahead: what started nothing and is not due by now is forgotten, because those slots come again, and a row
 * that stands for several slots keeps those that are due. Called in a transaction.
 */
export function forgetAfter(firings: FiringTable, trigger: Schedule, now: number): void {
  const { id, spec } = trigger
  firings.deleteAfter(id, now)
  for (const firing of firings.endingAfter(id, now - jitterOf(spec.own))) {
    const part = keptPart(trigger, firing, now)
    if (part === 'gone') firings.delete(firing.id)
    else if (part) {
      const started = firings.slots(id, occasionOf(part.at), occasionOf(part.until)).length - 1
      const { until, count } = shortened(part, started)
      firings.shorten(firing.id, until, count)
    }
  }
}
