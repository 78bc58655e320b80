// Slots as firings have them: their names, what expressions see of them, and rows that stand for several. No slot is in
// two rows, also where some of a row had started before the clock was put back.

import { parseDuration } from '../../duration.ts'
import type { JsonObject } from '../../json.ts'
import { partUntil, type SlotRow } from '../../triggers/schedule/due.ts'
import { countSlots, slotsOf } from '../../triggers/schedule/slots.ts'
import { plainText } from '../../triggers/schedule/zone.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import type { FiringReason } from '../../wire/records/trigger-words.ts'
import type { Firing, FiringTable } from './firing-table.ts'
import type { Trigger } from './trigger-table.ts'

/** What names a slot among all of its trigger: its UTC minute. */
export const occasionOf = (slot: number): string => `${plainText(slot)}Z`

export const variablesOf = (slot: number, now: number): JsonObject => ({
  slot: occasionOf(slot),
  now: new Date(now).toISOString(),
})

export function starterOf(
  { id, name }: Trigger,
  firing: string,
  { slot, late_ms, catch_up }: { slot: number; late_ms: number; catch_up: boolean },
  manual?: { by: string },
): StartedBy {
  const by = manual && { manual }
  return { kind: 'schedule', trigger: id, name, firing, slot: occasionOf(slot), late_ms, catch_up, ...by }
}

/** One row for slots that started nothing. */
export const skippedSlots = (
  trigger: Trigger,
  row: SlotRow,
  reason: FiringReason,
  detail: string,
  now: number,
): Firing => ({
  ...{ id: Bun.randomUUIDv7(), trigger_id: trigger.id, revision: trigger.revision },
  ...{ occasion: occasionOf(row.at), at: row.at, until: row.count > 1 ? row.until : null, seen_at: now },
  ...{
    started_at: null,
    state: 'skipped',
    reason,
    detail,
    run_id: null,
    count: row.count,
    late_ms: null,
    manual: null,
  },
  variables: variablesOf(row.at, now),
})

/** Records that these slots started nothing, but for those that have a firing. Called in a transaction. */
export function recordSkipped(
  firings: FiringTable,
  trigger: Trigger,
  row: SlotRow | null,
  { reason, detail, now }: { reason: FiringReason; detail: string; now: number },
): void {
  const left = row && withoutKnown(firings, trigger, row)
  if (left) firings.insert(skippedSlots(trigger, left, reason, detail, now))
}

/** The slots of a row that have no firing, or null when all of them have one. */
function withoutKnown(firings: FiringTable, { id, spec }: Trigger, { at, until, count }: SlotRow): SlotRow | null {
  const known = new Set(firings.slots(id, occasionOf(at), occasionOf(until)))
  if (known.size === 0) return { at, until, count }
  const isNew = (slot: number) => !known.has(slot)
  const first = slotsOf(spec.schedule, at - 1, until, known.size + 1).find(isNew)
  const last = countSlots(spec.schedule, at - 1, until, known.size + 1).newest.findLast(isNew)
  if (first === undefined || last === undefined || count <= known.size) return null
  return { at: first, until: last, count: count - known.size }
}

/**
 * The clock was ahead: what started nothing and is not due by now is forgotten, because those slots come again, and a row
 * that stands for several slots keeps those that are due. Called in a transaction.
 */
export function forgetAfter(firings: FiringTable, { id, spec: { schedule } }: Trigger, now: number): void {
  const jitter = schedule.jitter === undefined ? 0 : parseDuration(schedule.jitter)!
  firings.deleteAfter(id, now)
  for (const { id: firing, at, until, count } of firings.endingAfter(id, now - jitter)) {
    const part = partUntil(schedule, { at, until: until ?? at, count }, now, id)
    if (part === null && at > now - jitter) firings.delete(firing)
    else if (until !== null) {
      const started = part === null ? 0 : firings.slots(id, occasionOf(at), occasionOf(part.until)).length - 1
      // The rule may have been another one when the row was made.
      const many = Math.max(1, (part?.count ?? 1) - started)
      firings.shorten(firing, part === null || many === 1 ? null : part.until, many)
    }
  }
}
