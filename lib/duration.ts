// Durations are strings with units (`90s`, `5m`, `24h`, `1h30m`). Bare numbers are refused, because their unit would be
// a guess.

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/**
 * The form of a duration, for schemas.
 * @example window: Type.Optional(Type.String({ pattern: DURATION_PATTERN }))
 */
export const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$'
/** What `DURATION_PATTERN` accepts, for messages. */
export const A_DURATION = 'a duration such as 90s, 5m or 2h'
const WHOLE = new RegExp(DURATION_PATTERN)
const PART = /([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)/g

/** A longer duration counts as this one: a hundred years, which every place can calculate with. */
const LONGEST_MS = 100 * 365 * UNITS.d

/**
 * The milliseconds of `text`; null when it is not a duration.
 * @example parseDuration('1h30m') // 5400000
 */
export function parseDuration(text: string): number | null {
  if (!WHOLE.test(text)) return null
  let total = 0
  for (const [, amount, unit] of text.matchAll(PART)) total += Number(amount) * UNITS[unit as keyof typeof UNITS]
  return Math.min(Math.round(total), LONGEST_MS)
}

/** `ms` in a readable form: `340ms`, `2.1s`, `3m 20s`, `1h 5m`, `2d 4h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)}s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds}s`
  const pairs: [number, string, number, string][] = [
    [86_400, 'd', 3_600, 'h'],
    [3_600, 'h', 60, 'm'],
    [60, 'm', 1, 's'],
  ]
  const [big, bigUnit, small, smallUnit] = pairs.find(([size]) => seconds >= size) ?? pairs[2]!
  const rest = Math.floor((seconds % big) / small)
  return `${Math.floor(seconds / big)}${bigUnit}${rest ? ` ${rest}${smallUnit}` : ''}`
}

/** A wall clock that is set a little back must not make what just was a thing of the future. */
const SET_BACK_MS = 60_000

/** The times, each after the first and up to the second, that count as within the last `ms`: see `isWithin`. */
export const within = (now: number, ms: number): { after: number; to: number } => ({
  after: now - ms,
  to: now + Math.min(ms, SET_BACK_MS),
})

/**
 * Whether `at` was within the last `ms`, by a wall clock. What is far in the future was not: the clock was ahead when that
 * was written, and would be waited for until it comes.
 */
export function isWithin(at: number, now: number, ms: number): boolean {
  const { after, to } = within(now, ms)
  return at > after && at <= to
}
