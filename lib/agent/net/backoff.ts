// How long to wait before the next attempt when the vendor does not say it. Pure: the random numbers are a parameter.

const FIRST = 500
const MOST = 30_000

/**
 * Milliseconds to wait before attempt `attempt + 1`: exponential with full jitter, so that many clients do not retry at
 * the same moment.
 */
export function backoff(attempt: number, random: () => number): number {
  return Math.round(random() * Math.min(MOST, FIRST * 2 ** (attempt - 1)))
}
