// Slots as firings have them: their names, what expressions see of them, and rows that stand for several. Pure.

import { parseDuration } from '../duration.ts'
import type { JsonObject } from '../json.ts'
import { partUntil, type SlotRow } from '../triggers/schedule/due.ts'
import { countSlots, slotsOf } from '../triggers/schedule/slots.ts'
import type { ScheduleSpec } from '../triggers/schedule/spec.ts'
import { plainText } from '../triggers/schedule/zone.ts'
import type { FiringReason } from '../wire/records/trigger-words.ts'
import type { Firing, Trigger } from './trigger.ts'

export type Schedule = Trigger<ScheduleSpec>

/** What names a slot among all of its trigger: its UTC minute. */
export const occasionOf = (slot: number): string => `${plainText(slot)}Z`

export const variablesOf = (slot: number, now: number): JsonObject => ({
  slot: occasionOf(slot),
  now: new Date(now).toISOString(),
})

/** What all slots of a row have in common that started nothing. */
export interface Skipped {
  reason: FiringReason
  detail: string
  now: number
}

/** One row for slots that started nothing. */
export const skippedSlots = (
  { id, revision }: Pick<Trigger, 'id' | 'revision'>,
  { at, until, count }: SlotRow,
  { reason, detail, now }: Skipped,
): Firing => ({
  ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, occasion: occasionOf(at), at, seen_at: now },
  ...{ until: count > 1 ? until : null, started_at: null, state: 'skipped', reason, detail, run_id: null, count },
  ...{ late_ms: null, manual: null, variables: variablesOf(at, now) },
})

/** The slots of a row that have no firing of their own, or null when all of them have one. `those`: the slots that do. */
export function withoutKnown(
  schedule: ScheduleSpec,
  { at, until, count }: SlotRow,
  those: readonly number[],
): SlotRow | null {
  const known = new Set(those)
  if (known.size === 0) return { at, until, count }
  const isNew = (slot: number) => !known.has(slot)
  const first = slotsOf(schedule, at - 1, until, known.size + 1).find(isNew)
  const last = countSlots(schedule, at - 1, until, known.size + 1).newest.findLast(isNew)
  if (first === undefined || last === undefined || count <= known.size) return null
  return { at: first, until: last, count: count - known.size }
}

export const jitterOf = ({ jitter }: ScheduleSpec): number => (jitter === undefined ? 0 : parseDuration(jitter)!)

/**
 * The clock was ahead when a row of slots was made that started nothing. What is left of it: nothing (`gone`), or the
 * slots that are due by now; null: the row stays as it is.
 */
export function keptPart(
  { id, spec: { own: schedule } }: Pick<Schedule, 'id' | 'spec'>,
  { at, until, count }: Firing,
  now: number,
): SlotRow | 'gone' | null {
  const part = partUntil(schedule, { at, until: until ?? at, count }, now, id)
  if (part === null && at > now - jitterOf(schedule)) return 'gone'
  if (until === null) return null
  return part ?? { at, until: at, count: 1 }
}

/** The row `part` without the slots of it that have started, as its columns. The rule may have been another one when it was made. */
export function shortened({ until, count }: SlotRow, started: number): Pick<Firing, 'until' | 'count'> {
  const many = Math.max(1, count - started)
  return { until: many === 1 ? null : until, count: many }
}

/** What a row says of missed slots. */
export const missedText = (count: number): string =>
  count === 1
    ? 'nothing looked at it in time'
    : `${count} slots passed before anything looked, and \`catch_up\` leaves them out`
