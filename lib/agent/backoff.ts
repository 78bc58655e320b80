// How long to wait before the next attempt. Pure: the time and the random numbers are parameters.

const FIRST = 500
const MOST = 30_000

/**
 * Milliseconds to wait before attempt `attempt + 1`: exponential with full jitter, so that many clients do not retry at
 * the same moment.
 */
export function backoff(attempt: number, random: () => number): number {
  return Math.round(random() * Math.min(MOST, FIRST * 2 ** (attempt - 1)))
}

/**
 * Milliseconds that a `Retry-After` header asks for, given as seconds or as an HTTP date (RFC 9110, 10.2.3). Null when
 * the header is absent or cannot be understood. Some vendors send fractions of a second.
 */
export function retryAfter(header: string | null, now: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1_000)
  // Only text with letters is parsed as a date, because Date.parse would read "-5" as a year.
  if (!/^[A-Za-z]{3}.*\d{2}:\d{2}:\d{2}/.test(text)) return null
  const date = Date.parse(text)
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}
