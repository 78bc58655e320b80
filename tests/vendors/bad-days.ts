// What every connector must bear when its vendor has a bad day: the same tests for each of them.

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { type AgentContext, AgentError, type AgentResult } from '../../lib/agent/define.ts'
import { type FakeVendor, halfReply, refusal } from '../../lib/testing/fake-vendor.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'

export interface Conduct<V extends FakeVendor> {
  open(): V
  /** The agent's settings for a vendor at this address. */
  settings(url: string): Record<string, unknown>
  /** A source action that reads one thing into the file `out.json`. */
  read(context: AgentContext<never>): Promise<AgentResult>
  /** `METHOD /path` of its request. */
  request: RegExp
  /** The setting that a 401 must name, and the scope that a 403 must. */
  setting: string
  scope?: string
  /** Values that must never be seen outside the request itself. */
  canaries: string[]
}

export async function failureOf(work: Promise<unknown>): Promise<AgentError> {
  const error = await work.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error as AgentError
}

const filesOf = (at: TestContext) => (existsSync(phaseFolder(at)) ? readdirSync(phaseFolder(at)) : [])

export function badDays<V extends FakeVendor>(conduct: Conduct<V>): void {
  const begin = (vendor: V, options: Parameters<typeof testContext>[0] = {}): TestContext =>
    testContext({
      agent: conduct.setting.split('.')[1]!,
      settings: conduct.settings(vendor.url),
      network: { allow: [], literalOrigins: [] },
      ...options,
    })
  const read = (at: TestContext) => conduct.read(at.context as AgentContext<never>)

  describe('on a bad day of the vendor', () => {
    test.each([
      ['429 with Retry-After', () => refusal(429, '', { 'retry-after': '0' })],
      ['429 without', () => refusal(429)],
      ['503', () => refusal(503, 'maintenance', { 'retry-after': '0' })],
    ])('%s once is waited out', async (_, answer) => {
      using vendor = conduct.open()
      vendor.fail(conduct.request, answer)
      const at = begin(vendor)
      await read(at)
      expect(vendor.seen.length).toBeGreaterThan(1)
      expect(filesOf(at)).toEqual(['out.json'])
    })

    test.each([
      [401, 'unauthorized', false],
      [403, 'forbidden', false],
      [404, 'not_found', false],
      [410, 'gone', false],
      [429, 'rate_limited', true],
      [500, 'vendor_error', true],
    ])('%d for good is an error of its own, never an empty result', async (status, code, retryable) => {
      using vendor = conduct.open()
      vendor.fail(conduct.request, () => refusal(status, { error: 'said by the vendor' }, { 'retry-after': '0' }), {
        times: 99,
      })
      const at = begin(vendor)
      const error = await failureOf(read(at))
      expect(error).toMatchObject({ code, retryable })
      expect(error.message).toContain(`HTTP ${status}`)
      expect(error.message).toContain('said by the vendor')
      if (status === 401) expect(error.hint).toContain(conduct.setting)
      if (status === 403 && conduct.scope) expect(error.hint).toContain(conduct.scope)
      expect(filesOf(at)).toEqual([])
      const seen = JSON.stringify([error.message, error.hint, String(error.cause), at.lines])
      for (const canary of conduct.canaries) expect(seen).not.toContain(canary)
    })

    test.each([
      ['half a reply', halfReply, 'network'],
      ['a login page', () => refusal(200, '<html>sign in', { 'content-type': 'text/html' }), 'no_json'],
    ])('%s leaves no file', async (_, answer, code) => {
      using vendor = conduct.open()
      vendor.fail(conduct.request, answer, { times: 99 })
      const at = begin(vendor)
      expect((await failureOf(read(at))).code).toBe(code)
      expect(filesOf(at)).toEqual([])
    })

    test('a reply that does not come ends with the phase', async () => {
      using vendor = conduct.open()
      vendor.fail(
        conduct.request,
        () => new Response(new ReadableStream({}), { headers: { 'content-type': 'application/json' } }),
      )
      const at = begin(vendor, { signal: AbortSignal.timeout(50) })
      expect((await failureOf(read(at))).code).toBe('aborted')
    })
  })
}
