// The checks of an action that must not write twice: it sends once, reports when it does not know the outcome, and
// finds what it wrote.

import { expect } from 'bun:test'
import { AgentError, type AgentResult } from '../agent/define.ts'
import { attempt, check, failureOf, type Trial, timesSent } from './check.ts'
import { type FakeVendor, halfReply, refusal } from './fake-vendor.ts'

const LONG = 99
const OTHER_KEY = '00000000-0000-8000-a000-00000000000f'

export function onceWrites<V extends FakeVendor>(trial: Trial<V>): void {
  const { subject, call, handler, open, example, request } = trial

  for (const [what, answer] of [
    ['lost', () => refusal(502)],
    ['cut off', halfReply],
  ] as const) {
    check(`does not send again what may have been written: its reply is ${what}`, async () => {
      using vendor = open()
      vendor.fail(request, answer, { done: true, times: LONG })
      const tried = await attempt(trial, vendor)
      expect(timesSent(trial, vendor)).toBe(1)
      if (!tried.result) expect(failureOf(tried).sent).not.toBe('no')
    })
  }

  if (!handler.find) return
  const ask = async (vendor: V, key?: string): Promise<AgentResult | null> => {
    const { entry, files, event } = example(vendor)
    const given = { ...(files && { files }), ...(event && { event }), ...(key !== undefined && { key }) }
    const { find } = await subject.begin(vendor, call, entry, given)
    return find!()
  }
  /** Expects that `find` finds nothing. A `find` that cannot know must throw, but it must never return a result. */
  const expectNothing = async (asking: Promise<AgentResult | null>) => {
    const found = await asking.catch(error => error)
    if (!(found instanceof AgentError)) expect(found).toBeNull()
  }

  check('finds nothing before anything was written', async () => {
    using vendor = open()
    await expectNothing(ask(vendor))
  })

  check('finds what it wrote, and nothing that another entry wrote', async () => {
    using vendor = open()
    const { result, error } = await attempt(trial, vendor)
    if (!result) throw error
    const found = await ask(vendor)
    expect(found?.external).toEqual(result.external)
    expect(found?.text).toMatch(/\S/)
    await expectNothing(ask(vendor, OTHER_KEY))
  })

  check('finds what it wrote when the reply was lost', async () => {
    using vendor = open()
    vendor.fail(request, () => refusal(502), { done: true })
    failureOf(await attempt(trial, vendor))
    expect(await ask(vendor)).toMatchObject({ text: expect.stringMatching(/\S/) })
  })
}
