// Slots of the past that a person has started after all. Pure.

import { CadreError } from '../error.ts'
import { slotsOf } from '../triggers/schedule/slots.ts'
import type { ScheduleSpec } from '../triggers/schedule/spec.ts'
import { localText, zoneOf } from '../triggers/schedule/zone.ts'
import type { BackfillRecord } from '../wire/records/triggers.ts'
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

/** What a person asks for: slots in [`from`, `to`), the oldest `most` of them. */
export interface Backfill {
  from: number
  to: number
  most: number
  /** Only says what would start. */
  dryRun: boolean
  /** Also those that may have started elsewhere. */
  yes: boolean
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

/** Throws `invalid_state` where nothing would start the slots. */
export function mustStartThem({ name, enabled }: Pick<Schedule, 'name' | 'enabled'>): void {
  if (!enabled) throw new CadreError('invalid_state', `${name} is disabled: enable it first`)
}

/** Those that start. Throws `conflict` when some may have started elsewhere, unless `yes`. `copied`: what is said of these. */
export function slotsToStart(
  slots: readonly PastSlot[],
  { most, yes }: Pick<Backfill, 'most' | 'yes'>,
  copied: string,
): readonly PastSlot[] {
  const those = slots.slice(0, most)
  const doubtful = those.filter(({ inDoubt }) => inDoubt)
  if (doubtful.length === 0 || yes) return those
  const named = doubtful
    .map(({ at }) => occasionOf(at))
    .slice(0, 10)
    .join(', ')
  throw new CadreError('conflict', `${named}: ${copied}; \`yes\` starts them here`)
}

/** What starts, or would start. */
export const backfillRecord = (
  schedule: ScheduleSpec,
  slots: readonly PastSlot[],
  most: number,
  firings: BackfillRecord['firings'] = [],
): BackfillRecord => ({
  slots: slots.slice(0, most).map(({ at }) => ({ at, local: localText(at, zoneOf(schedule)) })),
  left: Math.max(0, slots.length - most),
  firings,
})

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
