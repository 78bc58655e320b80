// How long to wait before the next try. Pure: time and chance are given.

const FIRST = 500
const MOST = 30_000

/** Milliseconds before try `attempt + 1`: exponential with full jitter, so that many clients do not return at once. */
export function backoff(attempt: number, random: () => number): number {
  return Math.round(random() * Math.min(MOST, FIRST * 2 ** (attempt - 1)))
}

/**
 * Milliseconds that a `Retry-After` asks for, seconds or an HTTP date (RFC 9110, 10.2.3); null when it is absent or
 * says nothing usable. Some vendors send fractions of a second.
 */
export function retryAfter(header: string | null, now: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1_000)
  // A date has letters: Date.parse would take "-5" for a year.
  if (!/^[A-Za-z]{3}.*\d{2}:\d{2}:\d{2}/.test(text)) return null
  const date = Date.parse(text)
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}
