// When a vendor that limits the rate of requests may be asked again. Vendors say it in different headers, which are
// listed here as data. Pure: the time is a parameter.

/** A pair of headers: when the window ends, and how many requests are left until then. */
interface Window {
  reset: string
  remaining: string
}

/** The reset is a number of seconds, an epoch time in seconds or milliseconds, or a date. */
const WINDOWS: readonly Window[] = [
  // IETF drafts 0 to 7 (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/), Zendesk, GitLab.
  { reset: 'ratelimit-reset', remaining: 'ratelimit-remaining' },
  // GitHub (epoch seconds), Datadog (seconds from now), Jira and Confluence (a date).
  { reset: 'x-ratelimit-reset', remaining: 'x-ratelimit-remaining' },
  { reset: 'x-rate-limit-reset', remaining: 'x-rate-limit-remaining' },
]

/** Headers of several policies: `"burst";r=0;t=7` of the newer IETF drafts, `remaining=0; resets=7` of Zendesk. */
const POLICIES = /^(ratelimit|zendesk-ratelimit-.+)$/
const POLICY_RESET = /(?:^|[;,\s])(?:t|resets?)=(\d+)/
const POLICY_REMAINING = /(?:^|[;,\s])(?:r|remaining)=(\d+)/

/** HubSpot: the length of a rolling window, and what is left of the day, which ends at midnight of the account. */
const ROLLING_MS = 'x-hubspot-ratelimit-interval-milliseconds'
const LEFT_TODAY = 'x-hubspot-ratelimit-daily-remaining'

/** Headers of vendors that say nothing about the end of the window, but whose limits last at least a minute. */
const MINUTE = ['x-github-request-id', 'x-ratelimit-nearlimit']
const MINUTE_MS = 60_000

/** A refusal with 403 that is a rate limit: GitHub's secondary limits and Google Drive's, by the words of the body. */
const LIMITED_403 = /secondary rate limit|rate limit exceeded|rateLimitExceeded|userRateLimitExceeded/i

/** A smaller number is a number of seconds, because no window lasts for 30 years. */
const EPOCH = 1_000_000_000
const EPOCH_MS = 1_000 * EPOCH

/** Whether the reply refuses a request because of the number of requests. The body matters only for 403. */
export function isRateLimit(status: number, headers: Headers, body = ''): boolean {
  if (status === 429) return true
  if (status !== 403) return false
  return (
    headers.has('retry-after') ||
    WINDOWS.some(({ remaining }) => isNone(headers.get(remaining))) ||
    LIMITED_403.test(body)
  )
}

/**
 * Milliseconds until the vendor may be asked again: `Retry-After`, or for a rate limit the end of the window that is
 * used up. Null when the reply does not say it, and Infinity when the limit is that of the day.
 *
 * A time is compared with the `Date` of the reply where it has one, because the clock of the vendor may be wrong, and so
 * may that of this machine.
 */
export function askedWait(
  status: number,
  headers: Headers,
  now: number,
  isLimit = isRateLimit(status, headers),
): number | null {
  const theirs = Date.parse(headers.get('date') ?? '')
  const clock = Number.isNaN(theirs) ? now : theirs
  const asked = retryAfter(headers.get('retry-after'), clock)
  if (asked !== null || !isLimit) return asked
  if (isNone(headers.get(LEFT_TODAY))) return Number.POSITIVE_INFINITY
  const ends = [...policyResets(headers), ...windowResets(headers, clock)].filter(ms => ms > 0)
  if (ends.length > 0) return Math.max(...ends)
  return MINUTE.some(name => headers.has(name)) ? MINUTE_MS : null
}

function* policyResets(headers: Headers): Generator<number> {
  for (const [name, value] of headers) {
    if (!POLICIES.test(name)) continue
    // The drafts before the eighth separate the parts of one policy by commas, the later ones the policies.
    for (const policy of /reset=/.test(value) && !/resets=/.test(value) ? [value] : value.split(',')) {
      const reset = POLICY_RESET.exec(policy)?.[1]
      const remaining = POLICY_REMAINING.exec(policy)?.[1]
      if (reset !== undefined && (remaining === undefined || Number(remaining) === 0)) yield Number(reset) * 1_000
    }
  }
}

function* windowResets(headers: Headers, clock: number): Generator<number> {
  for (const { reset, remaining } of WINDOWS) {
    const left = headers.get(remaining)
    const end = headers.get(reset)
    // With requests left, another limit was reached than the one of this window.
    if (end !== null && (left === null || isNone(left))) yield untilReset(end, clock)
  }
  const rolling = headers.get(ROLLING_MS)
  if (/^\d+$/.test(rolling ?? '')) yield Number(rolling)
}

/** Milliseconds until the end of a window; not positive when it has passed or cannot be understood. */
function untilReset(text: string, clock: number): number {
  if (!/^\d+(\.\d+)?$/.test(text)) {
    const date = /\d{2}:\d{2}/.test(text) ? Date.parse(text) : Number.NaN
    return Number.isNaN(date) ? 0 : date - clock
  }
  const number = Number(text)
  if (number < EPOCH) return number * 1_000
  return (number < EPOCH_MS ? number * 1_000 : number) - clock
}

const isNone = (text: string | null): boolean => text !== null && /^0+$/.test(text.trim())

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
