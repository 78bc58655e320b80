// The approval of a run before it begins, in the engine: how long it is waited for, and which clocks stand meanwhile.

import { afterEach, expect, test } from 'bun:test'
import { livedMs } from '../../lib/lived-time.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const DAY = 24 * 60 * 60_000
const TEAM = `name: "@local/t"
version: 1.0.0
timeout: 1m
phases: [{ name: work, agent: exec, commands: [{ name: c, run: 'true' }] }]
`
let home: string
let t: TestEngine
let clock = 0
async function open() {
  t = await testEngine({ home, lived: () => livedMs() + clock })
}
/** The engine in a new process, after it has lived so long. */
async function reopenAfter(ms: number) {
  clock += ms
  await t.close()
  await open()
}
afterEach(async () => {
  expect(brokenInvariants(t.db)).toEqual([])
  await t.close()
})
const asking = async () => {
  home = folder()
  await open()
  const { run_id, state } = await t.start(TEAM, {}, { review: ['any'], environment: 'production' })
  expect(state).toBe('awaiting_input')
  return run_id
}
const reviewsOf = (runId: string) => t.engine.store.reviews.list({ runId, limit: 10, offset: 0 }).rows

test('the clock of the run stands until it is approved', async () => {
  const run_id = await asking()
  await reopenAfter(10 * DAY)
  expect(t.engine.record(run_id).state).toBe('awaiting_input')
  const [review] = reviewsOf(run_id)
  await t.engine.decide(review!.id, { decision: 'approve', by: 'ada' })
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed' })
})

test('a run that nobody approved for 30 days ends as if it were rejected', async () => {
  const run_id = await asking()
  await reopenAfter(29 * DAY)
  expect(t.engine.record(run_id).state).toBe('awaiting_input')
  await reopenAfter(2 * DAY)
  expect(await t.engine.ended(run_id)).toMatchObject({
    ...{ state: 'cancelled', reason: 'rejected' },
    error: { code: 'rejected', message: 'nobody approved it in time' },
  })
  expect(reviewsOf(run_id)).toMatchObject([{ state: 'decided', decision: 'cancelled', decided_by: null }])
})

test('what no approval is asked for any more, a resume begins at once', async () => {
  const run_id = await asking()
  await t.engine.cancel(run_id)
  await t.engine.resume(run_id, { review: null })
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed', attempt: 2 })
})
