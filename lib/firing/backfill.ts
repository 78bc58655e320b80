// Slots of the past that a person has started after all. Pure.

import { slotsOf } from '../triggers/schedule/slots.ts'
import { familyOf, holderOf, nextName } from './family.ts'
import { occasionOf, type Schedule, variablesOf } from './slot-rows.ts'
import type { Firing } from './trigger.ts'

/** A slot to start. */
export interface PastSlot {
  at: number
  /** The name of its firing, which has a number where the slot has one already. */
  occasion: string
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
  const of = Map.groupBy(rows, familyOf)
  const spans = rows.filter(({ until }) => until !== null)
  return slotsOf(own, from - 1, to - 1, LOOKED_AT).flatMap(at => {
    const named = of.get(occasionOf(at)) ?? []
    const span = spans.find(row => row.at <= at && at <= row.until!)
    const last = named.at(-1) ?? span
    const wasMissed = last === undefined || last.reason === 'missed' || last.reason === 'copy'
    if (!wasMissed || holderOf(named)) return []
    const occasion = named.length === 0 ? occasionOf(at) : nextName(occasionOf(at), named)
    return [{ at, occasion, inDoubt: last?.reason === 'copy' || at <= copiedAt }]
  })
}

/** The firing of a slot of the past, which waits for those before it. */
export const filled = (
  { id, revision }: Pick<Schedule, 'id' | 'revision'>,
  { at, occasion }: PastSlot,
  { by, now }: { by: string; now: number },
): Firing => ({
  ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, at, until: null, seen_at: now, started_at: null },
  ...{ occasion, run_id: null, count: 1 },
  ...{ state: 'waiting', reason: null, detail: null, late_ms: now - at, manual: { by, backfill: true } },
  variables: variablesOf(at, now),
})

/** Those start one after the other, whatever `overlap` says. */
export const isFilled = (firing: Pick<Firing, 'manual'> | undefined): boolean => firing?.manual?.backfill === true
