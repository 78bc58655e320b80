// What a home writes of the slots of a schedule when a person changes it.

import { mustFitOverlap, pausedText } from '../../firing/changes.ts'
import { occasionOf, type Schedule, skippedSlots } from '../../firing/slot-rows.ts'
import { due, passedOver } from '../../triggers/schedule/due.ts'
import type { ScheduleSpec } from '../../triggers/schedule/spec.ts'
import { type AtHome, MAY_HAVE_STARTED } from './at-home.ts'
import { forgetAfter, recordSkipped } from './slot-rows.ts'
import type { Tables } from './tables.ts'

export const schedule: AtHome<ScheduleSpec> = {
  beforeNow({ tables: { firings } }, trigger, now) {
    // The clock was ahead when slots were last looked at, and has been put back.
    if (now < trigger.cursor) forgetAfter(firings, trigger, now)
  },

  /** What was due meanwhile becomes one row, unless it is caught up. */
  resumed({ tables }, trigger, { catchUp, copiedAt, now }) {
    const { id, spec } = trigger
    mustFitOverlap(catchUp, spec)
    const { firings } = tables
    const cursor = passOverCopied(tables, trigger, copiedAt, now)
    if (catchUp === 'none') {
      const { row } = passedOver(spec.own, cursor, now, id)
      recordSkipped(firings, trigger, row, { reason: 'paused', detail: pausedText(trigger), now })
      return
    }
    // They wait for the next look, which judges them like slots that are due then.
    const judged = due({ ...spec.own, catch_up: catchUp }, cursor, now, id)
    const detail = 'it was due while the trigger was paused'
    recordSkipped(firings, trigger, judged.missed, { reason: 'missed', detail, now })
    for (const { slot, late_ms } of judged.starts) keepForLater(tables, trigger, slot, late_ms)
  },
}

/** What was due before this home was found to be a copy is left to the home that it was made from. Returns the cursor. */
function passOverCopied({ firings }: Tables, trigger: Schedule, copiedAt: number, now: number): number {
  if (copiedAt <= trigger.cursor || copiedAt > now) return trigger.cursor
  const { row } = passedOver(trigger.spec.own, trigger.cursor, copiedAt, trigger.id)
  recordSkipped(firings, trigger, row, { reason: 'copy', detail: MAY_HAVE_STARTED, now })
  return copiedAt
}

function keepForLater({ firings, now }: Tables, trigger: Schedule, slot: number, lateMs: number): void {
  if (firings.of(trigger.id, occasionOf(slot))) return
  const row = { at: slot, until: slot, count: 1 }
  const skipped = { reason: 'paused', detail: 'it is caught up after a pause', now: now() } as const
  firings.insert({ ...skippedSlots(trigger, row, skipped), state: 'waiting', late_ms: lateMs })
}
