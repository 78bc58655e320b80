// Slots of the past that a person has started after all. Pure.

import { slotsOf } from '../triggers/schedule/slots.ts'
import { occasionOf, type Schedule, variablesOf } from './slot-rows.ts'
import type { Firing } from './trigger.ts'

/** A slot to start: `again` is the number of its firing where it has one already. */
export interface PastSlot {
  at: number
  again: number | null
  /** It may have started where this was copied from. */
  inDoubt: boolean
}

/** How many slots one look considers. */
const LOOKED_AT = 100_000

/**
 * The slots in [`from`, `to`) that have no firing, or were missed, oldest first. `rows`: the firings of these times.
 * `copiedAt`: what was due until then may have started elsewhere; 0 where nothing was copied.
 */
export function slotsToFill(
  { spec: { own } }: Pick<Schedule, 'spec'>,
  rows: readonly Pick<Firing, 'occasion' | 'at' | 'until' | 'state' | 'reason'>[],
  { from, to, copiedAt }: { from: number; to: number; copiedAt: number },
): PastSlot[] {
  const of = Map.groupBy(rows, ({ occasion }) => occasion.split('#')[0]!)
  const spans = rows.filter(({ until }) => until !== null)
  return slotsOf(own, from - 1, to - 1, LOOKED_AT).flatMap(at => {
    const named = of.get(occasionOf(at)) ?? []
    const span = spans.find(row => row.at <= at && at <= row.until!)
    const last = named.at(-1) ?? span
    const wasMissed = last === undefined || last.reason === 'missed' || last.reason === 'copy'
    if (!wasMissed) return []
    return [
      { at, again: named.length === 0 ? null : named.length + 1, inDoubt: last?.reason === 'copy' || at <= copiedAt },
    ]
  })
}

/** The firing of a slot of the past, which waits for those before it. */
export const filled = (
  { id, revision }: Pick<Schedule, 'id' | 'revision'>,
  { at, again }: PastSlot,
  { by, now }: { by: string; now: number },
): Firing => ({
  ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, at, until: null, seen_at: now, started_at: null },
  ...{ occasion: again === null ? occasionOf(at) : `${occasionOf(at)}#${again}`, run_id: null, count: 1 },
  ...{ state: 'waiting', reason: null, detail: null, late_ms: now - at, manual: { by, backfill: true } },
  variables: variablesOf(at, now),
})

/** Those start one after the other, whatever `overlap` says. */
export const isFilled = (firing: Pick<Firing, 'manual'> | undefined): boolean => firing?.manual?.backfill === true
