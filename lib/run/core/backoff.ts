// How long a phase waits before its next attempt. Pure.

const LONGEST_MS = 5 * 60_000

/**
 * Milliseconds before the attempt that follows failure number `failures` (from 0): `backoffMs` doubled by each failure, at
 * most five minutes, of which a random part between the half and the whole is waited, so that phases that failed
 * together do not come back together.
 */
export function retryDelay(backoffMs: number, failures: number, random: () => number): number {
  // A power of more than 40 reaches five minutes from any backoff, and would overflow at last.
  const whole = Math.min(backoffMs * 2 ** Math.min(failures, 40), LONGEST_MS)
  return Math.round(whole / 2 + (whole / 2) * random())
}
