// What `preview` says of a schedule: its next slots with their local times, its words and its notes. Nothing is written.

import { type Note, notesOf } from './notes.ts'
import { slotsOf } from './slots.ts'
import type { ScheduleSpec } from './spec.ts'
import { wordsOf } from './words.ts'
import { localText, zoneOf } from './zone.ts'

export interface Preview {
  /** `local` has the offset: `2026-03-29T03:00+02:00`. */
  slots: { at: number; local: string }[]
  notes: Note[]
  words: string
}

/** Of the slots in (`after`, `until`], at most `limit`. The notes are of the 400 days after `after`. */
export function previewOf(spec: ScheduleSpec, after: number, until: number, limit: number): Preview {
  const tz = zoneOf(spec)
  return {
    slots: slotsOf(spec, after, until, limit).map(at => ({ at, local: localText(at, tz) })),
    notes: notesOf(spec, after),
    words: wordsOf(spec),
  }
}
