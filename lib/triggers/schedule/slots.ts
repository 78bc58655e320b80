// The slots of a schedule: the instants at which it is due, by the clock of its zone. What is due, what comes next,
// previews and backfills all ask here, so that they cannot differ.
//
// Local times are numbers as if they were UTC. Between two changes of its clock a zone has one offset, so there a local
// time is an instant plus that offset, and a pattern is looked up in plain days. A local time that a change repeats
// is in two such periods, one that it skips is in none; only fixed patterns need more than that.

import { parseDuration } from '../../duration.ts'
import { type Cron, DAY_MS, daysOf, parseCron } from './cron.ts'
import type { ScheduleSpec } from './spec.ts'
import { type Period, periodsOf } from './zone.ts'

const MINUTE_MS = 60_000
/** No slot is later: a year has four digits. */
const LATEST = Date.UTC(10_000, 0, 1) - 1

/** Slots that are counted without being listed. */
interface Slots {
  count: number
  /** The slot number `index`, from 0. */
  at(index: number): number
}

/** The slots in (`after`, `until`], oldest first, at most `limit`, from 1970 to 9999. */
export function slotsOf(spec: ScheduleSpec, after: number, until: number, limit: number): number[] {
  const slots: number[] = []
  for (const some of inOrder(spec, after, until)) {
    for (let index = 0; index < some.count && slots.length < limit; index++) slots.push(some.at(index))
    if (slots.length >= limit) break
  }
  return slots
}

/** All slots in (`after`, `until`], as their count, the first one, and the newest `keep`, oldest first. */
export function countSlots(
  spec: ScheduleSpec,
  after: number,
  until: number,
  keep: number,
): { count: number; first: number | null; newest: number[] } {
  let count = 0
  let first: number | null = null
  let newest: number[] = []
  for (const some of inOrder(spec, after, until)) {
    first ??= some.at(0)
    count += some.count
    const kept = Math.min(keep, some.count)
    newest = [...newest, ...Array.from({ length: kept }, (_, index) => some.at(some.count - kept + index))].slice(-keep)
  }
  return { count, first, newest }
}

/** What `slotsIn` gives, checked: whatever goes on from the last slot must never meet it again. */
function* inOrder(spec: ScheduleSpec, after: number, until: number): Generator<Slots> {
  let last = Math.max(after, 0)
  for (const some of slotsIn(spec, last, Math.min(until, LATEST))) {
    if (some.count === 0) continue
    const [first, newest] = [some.at(0), some.at(some.count - 1)]
    if (!(first > last && newest >= first)) {
      throw new Error(`a slot of ${JSON.stringify(spec)} is not after the one before: ${last}, ${first}, ${newest}`)
    }
    last = newest
    yield some
  }
}

function* slotsIn(spec: ScheduleSpec, after: number, until: number): Generator<Slots> {
  if ('at' in spec) {
    const slot = slotOfAt(spec.at, spec.tz)
    if (slot > after && slot <= until) yield one(slot)
  } else if ('every' in spec) {
    yield slotsOfEvery(Date.parse(spec.from), parseDuration(spec.every)!, after, until)
  } else {
    const cron = parseCron(spec.cron)
    if ('problems' in cron) throw new Error(`the stored pattern ${spec.cron} is refused: ${cron.problems.join('; ')}`)
    if (after >= until) return
    for (const period of periodsOf(spec.tz, after, until)) yield* slotsOfPeriod(cron, period, after, until)
  }
}

const one = (slot: number): Slots => ({ count: 1, at: () => slot })

/** The instant of `at`: in a gap that came with a later table of zones, as a clock shows it that was not set. */
function slotOfAt(at: string, tz: string): number {
  if (/(?:Z|[+-][0-9]{2}:[0-9]{2})$/.test(at)) return Date.parse(at)
  return Temporal.PlainDateTime.from(at).toZonedDateTime(tz).epochMilliseconds
}

function slotsOfEvery(from: number, distance: number, after: number, until: number): Slots {
  const first = Math.max(0, Math.floor((after - from) / distance) + 1)
  const last = Math.floor((until - from) / distance)
  return { count: Math.max(0, last - first + 1), at: index => from + (first + index) * distance }
}

function* slotsOfPeriod(cron: Cron, period: Period, after: number, until: number): Generator<Slots> {
  const { start, end, offset, before } = period
  let from = start + offset
  if (cron.fixed && start > after && skips(cron, period)) {
    yield one(start)
    from += MINUTE_MS
  }
  // What a fixed pattern names in a repeated hour was due in the period before.
  if (cron.fixed) from = Math.max(from, start + before)
  yield* localTimes(cron, Math.max(from, after + 1 + offset), Math.min(end - 1, until) + offset, offset)
}

/** Whether a local time of `cron` does not exist because the clock was put forward at the start of `period`. */
function skips(cron: Cron, { start, offset, before }: Period): boolean {
  return !localTimes(cron, start + before, start + offset - 1, 0).next().done
}

/** The local times of `cron` from `from` to `to`, less `offset`; the times of a day at once. */
export function* localTimes(cron: Cron, from: number, to: number, offset: number): Generator<Slots> {
  const { times } = cron
  for (const day of daysOf(cron, Math.floor(from / DAY_MS), Math.floor(to / DAY_MS))) {
    const midnight = day * DAY_MS
    const first = midnight < from ? times.findIndex(time => midnight + time * MINUTE_MS >= from) : 0
    const last =
      midnight + DAY_MS > to ? times.findLastIndex(time => midnight + time * MINUTE_MS <= to) : times.length - 1
    if (first === -1 || last < first) continue
    yield { count: last - first + 1, at: index => midnight + times[first + index]! * MINUTE_MS - offset }
  }
}
