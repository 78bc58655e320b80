// The clock of the server, as far as its replies tell it. Ages and durations are computed by it, because the clock of the
// reader's machine may be wrong.

import { signal } from '@preact/signals'

/** How far the clock of the server is ahead of that of this machine, in milliseconds. */
export const ahead = signal(0)
/** Between which values that is, after all replies. */
let least = Number.NEGATIVE_INFINITY
let most = Number.POSITIVE_INFINITY

/** The header `date` has whole seconds, and servers make it anew about once a second. */
const COARSE_MS = 2_000

export const serverNow = (): number => Date.now() + ahead.peek()

/** A reply was made after its request had been sent, and before it arrived. Many replies tell the time more exactly. */
export function hearClock(date: string | null, sentAt: number): void {
  const made = Date.parse(date ?? '')
  if (Number.isNaN(made)) return
  const from = made - Date.now()
  const until = made + COARSE_MS - sentAt
  least = Math.max(least, from)
  most = Math.min(most, until)
  if (least > most) {
    // One of the two clocks was set.
    least = from
    most = until
  }
  ahead.value = Math.min(most, Math.max(least, ahead.peek()))
}
