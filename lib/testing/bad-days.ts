// What every agent must handle when its vendor has a bad day: refusals, rate limits, faults, replies of another
// service, and no reply at all.

import { describe, expect } from 'bun:test'
import type { AgentError } from '../agent/core/agent-error.ts'
import type { AgentTest } from './example.ts'
import { endless, type FakeVendor, halfReply, refusal, silence, type Vendor } from './fake-vendor.ts'
import { shownBy, shownIn } from './secrecy.ts'
import { attempt, check, failureOf, type Trial, type Tried, timesSent } from './trial.ts'

/** How long the engine waits for an agent that it has asked to stop. */
const GRACE_MS = 4_000
const LONG = 99

const REFUSALS: [status: number, code: string, retryable: boolean][] = [
  [400, 'rejected', false],
  [401, 'unauthorized', false],
  [403, 'forbidden', false],
  [404, 'not_found', false],
  [410, 'gone', false],
  [429, 'rate_limited', true],
  [500, 'vendor_error', true],
]

/** JSON that no vendor returns when it is asked for a record or a list of records. */
const FOREIGN = [{ hello: 'from another service' }, [{ hello: 'from another service' }], 'hello', 7, null]

export function badDays<V extends FakeVendor>(trial: Trial<V>): void {
  const { subject, effect, open, request, names, scope, anyReply, hasSecrets } = trial
  const isOnce = effect === 'once'
  /** Makes one call at a vendor that fails in this way every time. */
  const failing = async (answer: Parameters<FakeVendor['fail']>[1], signal?: AbortSignal) => {
    await using vendor = await open()
    // What comes before the request, such as a commit, is no matter of the vendor, and slow on a slow machine.
    let answeredAt = Number.POSITIVE_INFINITY
    const answered: typeof answer = request => {
      answeredAt = Math.min(answeredAt, performance.now())
      return answer(request)
    }
    vendor.fail(request, answered, { times: LONG })
    const tried = await attempt(trial, vendor, signal && { signal })
    return { tried, sent: timesSent(trial, vendor), msAfter: performance.now() - answeredAt }
  }

  describe('on a bad day of the vendor', () => {
    for (const [status, code, retryable] of REFUSALS) {
      check(`${status} for good is an error that says what failed`, async () => {
        // A 403 with this header would be a rate limit.
        const headers: Record<string, string> = retryable ? { 'retry-after': '0' } : {}
        const { tried, sent } = await failing(() => refusal(status, { error: 'said by the vendor' }, headers))
        const error = failureOf(tried)
        expect(error.code).toBe(code)
        expect(error.message).toContain(names)
        expect(error.message).toContain(`HTTP ${status}`)
        expect(error.message).toContain('said by the vendor')
        if (hasSecrets && (status === 401 || status === 403)) {
          expect(error.hint).toContain(`agents.${subject.name}.`)
        }
        if (status === 403 && scope !== undefined) expect(error.hint).toContain(scope)
        if (!isOnce || status < 500) expect(error.retryable).toBe(retryable)
        if (isOnce) expect(error.sent === 'no').toBe(status < 500)
        // A refused token may be renewed, and the request sent once more: nothing was written.
        if (isOnce && status !== 429) expect(sent).toBeLessThanOrEqual(status === 401 ? 2 : 1)
      })
    }

    check('429 with Retry-After is waited out', () => waitedOut(() => refusal(429, '', { 'retry-after': '0' }), 2))
    check('429 without is waited out', () => waitedOut(() => refusal(429)))
    if (effect === 'read') {
      check('503 is waited out', () => waitedOut(() => refusal(503, 'maintenance', { 'retry-after': '0' })))
    }
    async function waitedOut(answer: () => Response, times = 1) {
      await using good = await open()
      await using vendor = await open()
      vendor.fail(request, answer, { times })
      const { result, error, files } = await attempt(trial, vendor)
      if (!result) throw error
      expect(Object.keys(files)).toEqual(Object.keys((await attempt(trial, good)).files))
      expect(timesSent(trial, vendor)).toBe(timesSent(trial, good) + times)
    }

    check('429 until tomorrow is left to a later try', async () => {
      const { tried, sent, msAfter } = await failing(() => refusal(429, '', { 'retry-after': '86400' }))
      expect(failureOf(tried)).toMatchObject({ code: 'rate_limited', retryable: true })
      expect(sent).toBe(1)
      expect(msAfter).toBeLessThan(GRACE_MS)
    })

    if (!anyReply) {
      for (const reply of FOREIGN) {
        check(`${JSON.stringify(reply)} with 200 is an error`, async () => {
          foreign((await failing(() => Response.json(reply))).tried)
        })
      }
      check('a web page with 200 is an error', async () => {
        const page = () => refusal(200, '<!doctype html><title>Sign in', { 'content-type': 'text/html' })
        expect(foreign((await failing(page)).tried).code).toBe('no_json')
      })
      check('half a reply is an error', async () => {
        expect(foreign((await failing(halfReply)).tried).code).toBe('network')
      })
      check('a reply that never ends is left when the run is stopped', () => stopped(endless))
    }
    /** The error of a call that got a reply from another service, so that something may have been written. */
    function foreign(tried: Tried): AgentError {
      const error = failureOf(tried)
      expect(error.message).toContain(names)
      if (effect !== 'read') expect(error.sent).not.toBe('no')
      return error
    }

    check('no reply is left when the run is stopped', () => stopped(silence))
    check('no reply is left when the time of the phase is over', () =>
      stopped(silence, new DOMException('The phase is over its time.', 'TimeoutError')),
    )
    /** Stops the call as soon as its request has reached the vendor. */
    async function stopped(answer: () => Response | Promise<Response>, reason?: DOMException) {
      const controller = new AbortController()
      const asked = () => {
        setTimeout(() => controller.abort(reason), 10)
        return answer()
      }
      const { tried, msAfter } = await failing(asked, controller.signal)
      expect(failureOf(tried).code).toBe('aborted')
      expect(msAfter).toBeLessThan(GRACE_MS)
    }
  })
}

/** The bad days of a vendor that does not speak HTTP, as the author of the test describes them. */
export function ownBadDays<V extends Vendor>(trial: Trial<V>, days: NonNullable<AgentTest<V>['badDays']>): void {
  const { subject, open, names } = trial

  describe('on a bad day of the vendor', () => {
    for (const [code, happens] of Object.entries(days)) {
      check(`${code} is an error that says what failed`, async () => {
        await using vendor = await open()
        const secrets = await subject.secretsOf(subject.settingsAt(vendor))
        await happens(vendor)
        const tried = await attempt(trial, vendor)
        const error = failureOf(tried)
        expect(error.code).toBe(code)
        expect(error.message).toContain(names)
        expect(shownIn(shownBy(tried), secrets)).toEqual([])
      })
    }

    check('a run that was stopped before begins nothing', async () => {
      await using vendor = await open()
      const { result, files } = await attempt(trial, vendor, { signal: AbortSignal.abort() })
      expect([result, files]).toEqual([null, {}])
    })
  })
}
