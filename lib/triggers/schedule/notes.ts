// What changes of the clock do to a schedule: the days on which a slot is moved, twice or missing. They are made from the
// changes of the zone, so that a schedule of every minute costs no more than a yearly one.

import { listed } from '../../text/spelling.ts'
import { type Cron, DAY_MS, parseCron } from './cron.ts'
import { localTimes, slotsOf } from './slots.ts'
import type { ScheduleSpec } from './spec.ts'
import { localText, type Period, periodsOf, plainText } from './zone.ts'

export interface Note {
  /** The local day on which the slot was due: `2026-03-29`. */
  day: string
  /** `rare`: no slot within a year; `day` is that of the next one. */
  kind: 'moved' | 'twice' | 'missing' | 'rare'
  text: string
}

const LOOKED_AT_MS = 400 * DAY_MS
const YEAR_MS = 366 * DAY_MS
/** How many times of a day a text lists. */
const LISTED = 4

/** The notes of the 400 days after `now`, by day. */
export function notesOf(spec: ScheduleSpec, now: number): Note[] {
  if (!('cron' in spec)) return []
  const cron = parseCron(spec.cron)
  if ('problems' in cron) return []
  const notes: Note[] = []
  for (const period of periodsOf(spec.tz, now, now + LOOKED_AT_MS)) {
    if (period.start > now) notes.push(...notesOfChange(cron, spec.tz, period))
  }
  const [next] = slotsOf(spec, now, Infinity, 1)
  if (next !== undefined && next > now + YEAR_MS) {
    const day = localText(next, spec.tz).slice(0, 10)
    notes.push({ day, kind: 'rare', text: `Such a day is rare: next ${day}.` })
  }
  return notes
}

/** The notes of the change at the start of `period`. */
function notesOfChange(cron: Cron, tz: string, { start, offset, before }: Period): Note[] {
  const forward = offset > before
  if (cron.fixed && !forward) return []
  const kind = !forward ? 'twice' : cron.fixed ? 'moved' : 'missing'
  const [from, until] = [start + Math.min(offset, before), start + Math.max(offset, before)]
  const notes: Note[] = []
  for (const some of localTimes(cron, from, until - 1, 0)) {
    const day = plainText(some.at(0)).slice(0, 10)
    const shown = Array.from({ length: Math.min(LISTED, some.count) }, (_, index) =>
      plainText(some.at(index)).slice(11),
    )
    if (some.count > LISTED) shown.push(`${some.count - LISTED} more`)
    const [times, one] = [listed(shown), some.count === 1]
    const text = {
      moved: `${times} ${one ? 'does' : 'do'} not exist on ${day} in ${tz}: the start is at ${localText(start, tz)}.`,
      twice: `${times} ${one ? 'is' : 'are'} twice on ${day} in ${tz}, and so ${one ? 'is the start' : 'are the starts'}.`,
      missing: `${times} ${one ? 'does' : 'do'} not exist on ${day} in ${tz}: nothing starts then.`,
    }[kind]
    notes.push({ day, kind, text })
  }
  return notes
}
