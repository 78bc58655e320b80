// How rate limits of vendors are waited out, by the headers that each of them sends.

import { describe, expect, test } from 'bun:test'
import { askedWait } from '../../lib/agent/net/rate-limit.ts'
import { replyError } from '../../lib/agent/net/reply-error.ts'
import { fakeVendor, refusal } from '../../lib/testing/fake-vendor.ts'
import { fetcher } from '../support/fetcher.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const DATE = new Date(NOW).toUTCString()
const seconds = (ms: number) => `${(NOW + ms) / 1_000}`

const LIMITS: [vendor: string, status: number, headers: Record<string, string>, body: unknown, wait: number][] = [
  [
    'HubSpot, ten seconds',
    429,
    { 'x-hubspot-ratelimit-interval-milliseconds': '10000', 'x-hubspot-ratelimit-daily-remaining': '249000' },
    { policyName: 'TEN_SECONDLY_ROLLING' },
    10_000,
  ],
  [
    'Datadog',
    429,
    { 'x-ratelimit-limit': '100', 'x-ratelimit-period': '60', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '37' },
    { errors: ['Too many requests'] },
    37_000,
  ],
  [
    'GitHub, primary',
    403,
    { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': seconds(42_000) },
    { message: 'API rate limit exceeded for user ID 1.' },
    42_000,
  ],
  [
    'GitHub, secondary',
    403,
    { 'retry-after': '20', 'x-ratelimit-remaining': '4999' },
    { message: 'slow down' },
    20_000,
  ],
  [
    'GitHub, secondary, without a time',
    403,
    { 'x-github-request-id': 'A:1', 'x-ratelimit-remaining': '4999', 'x-ratelimit-reset': seconds(250_000) },
    { message: 'You have exceeded a secondary rate limit.' },
    60_000,
  ],
  ['Zendesk', 429, { 'x-rate-limit': '700', 'ratelimit-remaining': '0', 'ratelimit-reset': '41' }, '', 41_000],
  [
    'Zendesk, of one endpoint',
    429,
    {
      'ratelimit-remaining': '500',
      'ratelimit-reset': '9',
      'zendesk-ratelimit-search-index': 'total=100; remaining=0; resets=33',
    },
    '',
    33_000,
  ],
  [
    'Bitbucket',
    429,
    { 'x-ratelimit-limit': '1000', 'x-ratelimit-nearlimit': 'true' },
    'Rate limit for this resource',
    60_000,
  ],
  ['Jira', 429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2026-01-01T00:00:30.000Z' }, '', 30_000],
  ['GitLab', 429, { 'ratelimit-remaining': '0', 'ratelimit-reset': seconds(25_000) }, '', 25_000],
  ['the IETF draft 3', 429, { ratelimit: 'limit=100, remaining=0, reset=50' }, '', 50_000],
  ['the IETF draft 9', 429, { ratelimit: '"burst";r=0;t=7, "daily";r=90;t=280' }, '', 7_000],
  ['Drive', 403, {}, { error: { errors: [{ reason: 'userRateLimitExceeded' }] } }, 250],
]

describe('a rate limit', () => {
  test.each(LIMITS)('of %s is waited out', async (_, status, headers, body, wait) => {
    using vendor = fakeVendor(() => 'ok')
    vendor.fail(/./, () => refusal(status, body, { date: DATE, ...headers }))
    const { fetch, waits, reported } = fetcher({ effect: 'once' })
    expect((await fetch(vendor.url, { method: 'POST', body: 'x' })).status).toBe(200)
    expect(waits).toEqual([wait])
    expect(reported).toEqual([['rate limit', wait === 250 ? undefined : new Date(NOW + wait).toISOString()]])
  })

  test.each(LIMITS)('of %s that outlasts the retries is an error that says so', async (_, status, headers, body) => {
    using vendor = fakeVendor(() => 'ok')
    vendor.fail(/./, () => refusal(status, body, { date: DATE, ...headers }), { times: 9 })
    const { fetch } = fetcher({ effect: 'once' })
    const error = await replyError(await fetch(vendor.url, { method: 'POST', body: 'x' }), 'add a note')
    expect(error).toMatchObject({ code: 'rate_limited', retryable: true, sent: 'no' })
    expect(error.message).toStartWith(`add a note: HTTP ${status}`)
  })

  test('of a whole day is not waited for', async () => {
    using vendor = fakeVendor(() => 'ok')
    const headers = { 'x-hubspot-ratelimit-interval-milliseconds': '10000', 'x-hubspot-ratelimit-daily-remaining': '0' }
    vendor.fail(/./, () => refusal(429, { policyName: 'DAILY' }, headers))
    const { fetch, waits } = fetcher({})
    expect((await fetch(vendor.url)).status).toBe(429)
    expect(waits).toEqual([])
  })
})

test('a refusal that is no rate limit is left as it is', async () => {
  using vendor = fakeVendor(() => refusal(403, { message: 'no access' }, { 'x-ratelimit-remaining': '4999' }))
  const { fetch, waits } = fetcher({})
  const reply = await fetch(vendor.url)
  expect(await replyError(reply, 'get it')).toMatchObject({
    code: 'forbidden',
    message: 'get it: HTTP 403: {"message":"no access"}',
  })
  expect([waits, vendor.seen.length]).toEqual([[], 1])
})

describe('a vendor whose clock is wrong', () => {
  const HOUR = 3_600_000
  const limited = (reset: number, date?: number) =>
    askedWait(
      429,
      new Headers({
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': `${reset / 1_000}`,
        ...(date !== undefined && { date: new Date(date).toUTCString() }),
      }),
      NOW,
    )

  test.each([-3 * HOUR, 3 * HOUR])('is understood by its own Date: off by %d ms', off => {
    expect(limited(NOW + off + 20_000, NOW + off)).toBe(20_000)
    const headers = new Headers({
      'retry-after': new Date(NOW + off + 5_000).toUTCString(),
      date: new Date(NOW + off).toUTCString(),
    })
    expect(askedWait(503, headers, NOW)).toBe(5_000)
  })

  test('and that sends no Date leads to the ordinary wait, or to none', async () => {
    expect(limited(NOW - 3 * HOUR)).toBeNull()
    expect(limited(NOW + 3 * HOUR)).toBe(3 * HOUR)
  })

  test.each(['soon', '', '-5', 'NaN'])('a reset of %p is not understood', text => {
    expect(askedWait(429, new Headers({ 'x-ratelimit-reset': text }), NOW)).toBeNull()
  })
})
