// How long a phase waits before its next attempt. Pure.

const LONGEST_MS = 5 * 60_000

/**
 * Milliseconds to wait before the attempt that follows failure number `failures` (from 0). `backoffMs` is doubled for
 * each failure, up to five minutes. The delay is a random part of that, between half and all of it, so that phases that
 * failed together are not all retried at the same moment.
 */
export function retryDelay(backoffMs: number, failures: number, random: () => number): number {
  // Doubling 40 times exceeds five minutes from any backoff; a higher power would overflow in the end.
  const whole = Math.min(backoffMs * 2 ** Math.min(failures, 40), LONGEST_MS)
  return Math.round(whole / 2 + (whole / 2) * random())
}
