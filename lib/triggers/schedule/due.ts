// What becomes of due slots: a decision from the schedule, its cursor and the time, which reads and writes nothing. Its
// caller writes all of it in one transaction, so each slot is decided once.
//
// A slot is due at itself plus its jitter. Cursor, lateness and `next_at` count from there; rows and people see the slot.

import { parseDuration } from '../../duration.ts'
import { countSlots, slotsOf } from './slots.ts'
import type { ScheduleSpec } from './spec.ts'

/** Slots that become one row. */
export interface SlotRow {
  /** The first slot, `until` the last one. */
  at: number
  until: number
  count: number
}

export interface SlotStart {
  slot: number
  /** How long ago it was due. */
  late_ms: number
  /** Starts only because of `catch_up`: it is later than `late_after`, or a newer slot is due as well. */
  catch_up: boolean
}

export interface Due {
  /** The cursor from now on: when the last slot was due that was looked at. */
  cursor: number
  /** The clock is behind the cursor. Rows `skipped` after now are removed, and nothing starts. */
  clock_behind: boolean
  /** One row `skipped: missed`. */
  missed: SlotRow | null
  /** Oldest first. */
  starts: SlotStart[]
}

/** What becomes of the slots that are due in (`cursor`, `now`]. */
export function due(spec: ScheduleSpec, cursor: number, now: number, triggerId: string): Due {
  if (now < cursor) return { cursor: now, clock_behind: true, missed: null, starts: [] }
  // One more than may start: the last missed one.
  const { count, first, newest } = dueSlots(spec, cursor, now, triggerId, spec.max + 1)
  if (first === null) return { cursor, clock_behind: false, missed: null, starts: [] }

  const last = newest.at(-1)
  const lateAfter = parseDuration(spec.late_after)!
  const most = spec.catch_up === 'none' ? lateAfter : parseDuration(spec.window)!
  const starts = newest
    .slice(spec.catch_up === 'all' ? -spec.max : -1)
    .map(slot => ({ slot, late_ms: now - dueAt(spec, slot, triggerId) }))
    .filter(({ late_ms }) => late_ms <= most)
    .map(start => ({ ...start, catch_up: start.slot !== last || start.late_ms > lateAfter }))
  const missed = newest.filter(slot => !starts.some(start => start.slot === slot))
  return {
    cursor: Math.max(...newest.map(slot => dueAt(spec, slot, triggerId))),
    clock_behind: false,
    missed: missed.length === 0 ? null : { at: first, until: missed.at(-1)!, count: count - starts.length },
    starts,
  }
}

/** All slots that are due in (`cursor`, `now`] as one row: of a pause that ends, of an older copy. */
export function passedOver(
  spec: ScheduleSpec,
  cursor: number,
  now: number,
  triggerId: string,
): { cursor: number; row: SlotRow | null } {
  if (now < cursor) return { cursor: now, row: null }
  const { count, first, newest } = dueSlots(spec, cursor, now, triggerId, 1)
  return { cursor: now, row: first === null ? null : { at: first, until: newest[0]!, count } }
}

/** What is left of a row when the clock is behind the cursor: the slots that are due by `now`; null when none is. */
export function partUntil(spec: ScheduleSpec, row: SlotRow, now: number, triggerId: string): SlotRow | null {
  const { count, newest } = dueSlots(spec, dueAt(spec, row.at, triggerId) - 1, now, triggerId, 1)
  return count === 0 ? null : { at: row.at, until: Math.min(newest[0]!, row.until), count: Math.min(count, row.count) }
}

/** When the next slot after the cursor is due, for the index of schedules; null when there is none. */
export function nextAt(spec: ScheduleSpec, cursor: number, triggerId: string): number | null {
  const jitter = jitterOf(spec)
  let next: number | null = null
  for (let after = cursor - jitter; ; ) {
    const [slot] = slotsOf(spec, after, Infinity, 1)
    // A later slot is due earlier only where a change of the clock has brought two slots close together.
    if (slot === undefined || (next !== null && slot >= next)) return next
    const at = dueAt(spec, slot, triggerId)
    if (at > cursor) next = Math.min(next ?? Infinity, at)
    after = slot
  }
}

/** The slots that are due in (`cursor`, `now`], as their count, the first one, and the newest `keep`. */
function dueSlots(spec: ScheduleSpec, cursor: number, now: number, triggerId: string, keep: number) {
  const jitter = jitterOf(spec)
  // Only within one jitter of either end does it depend on the slot whether it is due.
  const sure = Math.max(cursor, now - jitter)
  const isDue = (slot: number): boolean => {
    const at = dueAt(spec, slot, triggerId)
    return at > cursor && at <= now
  }
  const early = slotsOf(spec, cursor - jitter, cursor, Infinity).filter(isDue)
  const between = countSlots(spec, cursor, sure, keep)
  const late = slotsOf(spec, sure, now, Infinity).filter(isDue)
  return {
    count: early.length + between.count + late.length,
    first: early[0] ?? between.first ?? late[0] ?? null,
    newest: [...early, ...between.newest, ...late].slice(-keep),
  }
}

/** When a slot is due: the same in every process and after every restart. */
function dueAt(spec: ScheduleSpec, slot: number, triggerId: string): number {
  const jitter = jitterOf(spec)
  if (jitter === 0) return slot
  const hash = new Bun.CryptoHasher('sha256').update(`${triggerId} ${slot}`).digest('hex')
  return slot + (Number.parseInt(hash.slice(0, 12), 16) % jitter)
}

const jitterOf = ({ jitter }: ScheduleSpec): number => (jitter === undefined ? 0 : parseDuration(jitter)!)
