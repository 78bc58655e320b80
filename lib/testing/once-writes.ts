// The checks of an action that must not write twice: it sends once, reports when it does not know the outcome, and
// finds what it wrote.

import { expect } from 'bun:test'
import type { AgentResult } from '../agent/agent-context.ts'
import { AgentError } from '../agent/agent-error.ts'
import { attempt, callOf, check, failureOf, type Trial, timesSent } from './check.ts'
import { type FakeVendor, halfReply, refusal, type Vendor } from './fake-vendor.ts'

const LONG = 99
const OTHER_KEY = '00000000-0000-8000-a000-00000000000f'

/** That a write whose outcome is unknown is not sent again, and is found. */
export function onceRequests<V extends FakeVendor>(trial: Trial<V>): void {
  const { handler, open, request } = trial

  for (const [what, answer] of [
    ['lost', () => refusal(502)],
    ['cut off', halfReply],
  ] as const) {
    check(`does not send again what may have been written: its reply is ${what}`, async () => {
      await using vendor = await open()
      vendor.fail(request, answer, { done: true, times: LONG })
      const tried = await attempt(trial, vendor)
      expect(timesSent(trial, vendor)).toBe(1)
      if (!tried.result) expect(failureOf(tried).sent).not.toBe('no')
    })
  }

  if (!handler.find) return
  check('finds what it wrote when the reply was lost', async () => {
    await using vendor = await open()
    vendor.fail(request, () => refusal(502), { done: true })
    const tried = await attempt(trial, vendor)
    failureOf(tried)
    expect(await ask(trial, vendor, tried)).toMatchObject({ text: expect.stringMatching(/\S/) })
  })
}

/** That `find` gives what this entry wrote, and nothing else. */
export function finds<V extends Vendor>(trial: Trial<V>): void {
  const { handler, open } = trial
  if (!handler.find) return
  /** Expects that `find` finds nothing. A `find` that cannot know must throw, but it must never return a result. */
  const expectNothing = async (asking: Promise<AgentResult | null>) => {
    const found = await asking.catch(error => error)
    if (!(found instanceof AgentError)) expect(found).toBeNull()
  }

  check('finds nothing before anything was written', async () => {
    await using vendor = await open()
    await expectNothing(ask(trial, vendor))
  })

  check('finds what it wrote, and nothing that another entry wrote', async () => {
    await using vendor = await open()
    const { result, error, workspace } = await attempt(trial, vendor)
    if (!result) throw error
    expect(
      Object.keys(result.external ?? {}),
      'the result needs `external: { id }`, which a receipt keeps',
    ).not.toEqual([])
    const found = await ask(trial, vendor, { workspace })
    expect([found?.external, found?.data]).toEqual([result.external, result.data])
    expect(found?.text).toMatch(/\S/)
    await expectNothing(ask(trial, vendor, { key: OTHER_KEY }))
  })
}

/** Asks as the engine does: in the workspace of the call, where there was one. */
async function ask<V extends Vendor>(
  { subject, call, example }: Trial<V>,
  vendor: V,
  { key, workspace }: { key?: string; workspace?: string } = {},
): Promise<AgentResult | null> {
  const { entry, ...given } = callOf(example(vendor))
  const known = { ...(key !== undefined && { key }), ...(workspace !== undefined && { workspace }) }
  const { find } = await subject.begin(vendor, call, entry, { ...given, ...known })
  return find!()
}
