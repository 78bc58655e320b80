// The checks of an action that must not write twice: it sends once, reports when it does not know the outcome, and
// finds what it wrote.

import { expect } from 'bun:test'
import type { AgentResult } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { SETTLE_MS, settle } from '../agent/settling.ts'
import { parseDuration } from '../duration.ts'
import { drivenClock } from './driven-clock.ts'
import { type FakeVendor, halfReply, refusal, reset, type Vendor } from './fake-vendor.ts'
import { attempt, callOf, check, failureOf, type Trial, timesSent } from './trial.ts'

const LONG = 99
const OTHER_KEY = '00000000-0000-8000-a000-00000000000f'

/** That a write whose outcome is unknown is not sent again, and is found. */
export function onceRequests<V extends FakeVendor>(trial: Trial<V>): void {
  const { handler, open, request } = trial

  for (const [what, answer] of [
    ['lost', () => refusal(502)],
    ['cut off', halfReply],
    ['a reset after the last byte', reset],
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

/** When a write shows late: milliseconds after a 504 of a proxy. */
const LATE = [100, 3_000, 30_000]

/**
 * That what is written after the answer, or shown late, is not written twice: the suite asks as the engine does, on a clock
 * that it drives.
 */
export function lateWrites<V extends FakeVendor>(trial: Trial<V>): void {
  const { handler, open, request } = trial
  if (!handler.find) return
  const turn = () => new Promise<void>(resolve => setImmediate(resolve))

  for (const ms of LATE) {
    check(`is not written twice when it lands ${ms / 1_000} s after a 504`, async () => {
      await using vendor = await open()
      const clock = drivenClock(0, turn)
      vendor.fail(request, () => refusal(504), { done: clock.pause(ms) })
      const tried = await attempt(trial, vendor)
      failureOf(tried)
      const settled = await settleOn(trial, clock, () => ask(trial, vendor, tried))
      if (settled !== 'absent') return expectFound(settled)
      const why = `find returned null ${clock.now() / 1_000} s after a request whose write landed after ${ms / 1_000} s`
      expect(handler.sees, `${why}: leave \`settles\` out, or make it longer`).toBe('at once')
      // Its look-up goes by an identity, by which the vendor has to know the second request, too.
      await attempt(trial, vendor, { workspace: tried.workspace })
      await clock.advance(ms)
      const all = await ask(trial, vendor, tried)
      const times = vendor.seen.filter(each => request.test(`${each.method} ${each.path}`) && (each.done ?? 500) < 300)
      const isOne = vendor.traits.knowsRepetitions || times.length < 2 || (Array.isArray(all) && all.length === 1)
      expect(isOne, `${why}, and it was written twice: \`sees: 'at once'\` is wrong`).toBe(true)
    })
  }

  check('is not written twice where its search lags', async () => {
    await using vendor = await open()
    if (vendor.traits.lags === 0) return
    const shown = Promise.withResolvers<void>()
    vendor.fail(request, () => refusal(502), { done: shown.promise })
    const tried = await attempt(trial, vendor)
    failureOf(tried)
    let looks = 0
    const settled = await settleOn(trial, drivenClock(0, turn), async () => {
      if (looks++ === vendor.traits.lags) {
        shown.resolve()
        for (let n = 0; n < 10; n++) await turn()
      }
      return ask(trial, vendor, tried)
    })
    const why = `the vendor shows a write only after ${vendor.traits.lags} looks, and null counted after ${looks}`
    expect(settled, `${why}: remove \`sees: 'at once'\`, and declare \`settles\``).not.toBe('absent')
    expectFound(settled)
  })

  check('is found behind a page of other writes', async () => {
    await using vendor = await open()
    if (vendor.traits.pages === null) return
    vendor.fail(request, () => refusal(502), { done: true })
    const tried = await attempt(trial, vendor)
    failureOf(tried)
    for (let n = 0; n <= vendor.traits.pages; n++) {
      const key = `00000000-0000-8000-a000-${String(n + 1).padStart(12, '0')}`
      await attempt(trial, vendor, { key })
    }
    expectFound({ found: await ask(trial, vendor, tried) })
  })

  check('is one write when its identity is repeated', async () => {
    await using vendor = await open()
    if (!vendor.traits.knowsRepetitions) return
    const first = await attempt(trial, vendor)
    const second = await attempt(trial, vendor, { workspace: first.workspace })
    if (!first.result) throw first.error
    if (!second.result) throw second.error
    expect(second.result.external).toEqual(first.result.external)
  })
}

function expectFound(settled: unknown): void {
  const { found } = settled as { found: AgentResult | AgentResult[] | null }
  const [first] = Array.isArray(found) ? found : [found]
  expect(first).toMatchObject({ text: expect.stringMatching(/\S/) })
}

/** Asks as the engine does after a request that ended when the clock began. */
function settleOn<V extends FakeVendor>(
  { handler: { sees, settles } }: Trial<V>,
  clock: ReturnType<typeof drivenClock>,
  find: () => Promise<AgentResult | AgentResult[] | null>,
) {
  return settle({
    find,
    seesAtOnce: sees === 'at once',
    ended: 0,
    settles: (settles === undefined ? null : parseDuration(settles)) ?? SETTLE_MS,
    now: clock.now,
    pause: ms => clock.advance(ms),
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
  const { find } = await subject.prepareCall(vendor, call, entry, { ...given, ...known })
  return find!()
}
