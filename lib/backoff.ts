// How long to wait before something that failed is tried again: twice as long after each failure, up to a limit. A part
// of each wait is random, so that those who failed together do not all come back at the same moment. Pure.

interface Backoff {
  firstMs?: number
  mostMs?: number
  /** How much of the wait is random: 0.5 gives between half and all of it. */
  jitter?: number
  random?: () => number
}

/** The wait in milliseconds. `failures` counts from 0: the first wait has `firstMs`, the next one twice that. */
export function backoff(
  failures: number,
  { firstMs = 500, mostMs = 30_000, jitter = 0.5, random = Math.random }: Backoff = {},
): number {
  // Doubling 40 times exceeds every limit from any first wait; a higher power would overflow in the end.
  const whole = Math.min(firstMs * 2 ** Math.min(failures, 40), mostMs)
  return Math.round(whole * (1 - jitter) + whole * jitter * random())
}
