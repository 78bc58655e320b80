// What keeps an occasion from starting now: a run before it, a firing that waits before it, or `at_most`. Pure, so that a
// home and a hub decide alike.

import type { FiringReason } from '../wire/records/trigger-words.ts'
import { kindOf } from './kinds.ts'
import type { Firing, Trigger, TriggerSpec } from './trigger.ts'

/** Why an occasion starts nothing, or not yet. */
export type Halt = { state: 'waiting' | 'skipped' | 'refused'; reason: FiringReason; detail: string }

export interface Facts {
  /** What is said of the run of this trigger that has not ended; null: there is none, or `overlap` does not ask. */
  holder: string | null
  /** The oldest firing that waits. */
  first: Pick<Firing, 'id' | 'reason'> | null
  /** How many wait that were judged. It matters only where `at_most` makes some wait. */
  waiting: number
  /** How many started within the time of `at_most`; 0 without one. */
  started: number
}

/** With these, or without a reason, a firing waits that nobody has judged: it is caught up after a pause, the end of a run wrote it, or daemons had yet to call. */
export const UNJUDGED = ['paused', 'copy'] as const
export const isUnjudged = ({ reason }: Pick<Firing, 'reason'>): boolean =>
  reason === null || UNJUDGED.some(each => each === reason)
/** Most firings of a trigger that wait for `at_most`. */
const MOST_WAITING = 10_000

/** Whether anything but its own realm keeps an occasion of a trigger from starting at once: otherwise nothing need be asked. */
export const mayWait = ({ overlap, at_most }: Pick<TriggerSpec, 'overlap' | 'at_most'>): boolean =>
  overlap !== 'allow' || at_most !== null

/** `overlap` and `at_most`. `known` waits already. */
export function haltOf(
  { overlap, at_most: atMost }: Pick<TriggerSpec, 'overlap' | 'at_most'>,
  { holder, first, waiting, started }: Facts,
  known: Pick<Firing, 'id' | 'reason'> | undefined,
): Halt | null {
  const isNew = !known || isUnjudged(known)
  if (holder !== null) {
    return { state: overlap === 'skip' && isNew ? 'skipped' : 'waiting', reason: 'overlap', detail: holder }
  }
  if (first && first.id !== known?.id && (overlap !== 'allow' || atMost)) {
    const detail = `the firing ${first.id} waits before it`
    return first.reason === 'limit' ? limited(detail) : { state: 'waiting', reason: 'overlap', detail }
  }
  if (!atMost || started < atMost.count) return null
  return limited(`${atMost.count} started within ${atMost.per}`)

  function limited(detail: string): Halt {
    if (!isNew || waiting < MOST_WAITING) return { state: 'waiting', reason: 'limit', detail }
    return { state: 'skipped', reason: 'limit', detail: `${detail}, and ${MOST_WAITING} wait` }
  }
}

/** Whether that is worth a change of a firing that waits. What waits for the limit is never superseded. */
export const isWorthAWord = ({ state, reason }: Halt, known: Firing): boolean =>
  state !== 'waiting' || (reason !== known.reason && known.reason !== 'limit')

/** How many firings may wait for the run before; null: as many as there are. Those that people fire do not count. */
export function mostWaiting({ kind, spec }: Pick<Trigger, 'kind' | 'spec'>): number | null {
  const { overlap, queue_max, own } = spec
  if (overlap === 'queue') return Math.max(queue_max, kindOf({ kind }).mostWaiting?.(own) ?? 1)
  return overlap === 'cancel_running' ? 1 : null
}

/** What becomes of a firing that waits when there are too many, because only the newest are kept. */
export const superseded = (firing: Firing): Firing => ({
  ...firing,
  ...{ state: 'skipped', reason: 'superseded', detail: 'a newer occasion waits in its place' },
})
