// How long a run took: the lived time of its attempts, whatever wall clocks say and however long nobody executed it. Time
// passes only when the test says so.

import { afterEach, expect, test } from 'bun:test'
import { why } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'
import { team } from '../support/scripted.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const asking = (more = {}) =>
  team([{ name: 'ask', type: 'gate', review: { prompt: 'Go on?', reviewers: ['any'] } }], more)
const ASK = asking()
const KEYED = asking({ concurrency: { key: 'one' } })
const BELOW = team([{ name: 'below', type: 'team', team: './ask' }])

let t: TestEngine
let home: string
let [wall, lived] = [0, 0]
afterEach(async () => {
  await t.close()
  checkInvariants(home)
})

async function open() {
  t = await testEngine({ home, now: () => wall, lived: () => lived })
}

async function begin() {
  ;[home, wall, lived] = [folder(), Date.now(), 0]
  await open()
}

/** The home lives so long, and meanwhile its wall clock goes so far. */
function pass(livedMs: number, wallMs: number) {
  lived += livedMs
  wall += wallMs
}

/** Another process takes the home, after nobody had it for so long. */
async function again(wallMs: number) {
  await t.close()
  wall += wallMs
  await open()
}

const asks = (runId: string) => until(() => t.engine.record(runId).state === 'awaiting_input', 'the question')

async function answer(decision: 'approve' | 'reject') {
  const [review] = t.engine.store.reviews.list({ state: 'pending', limit: 10, offset: 0 }).rows
  await t.engine.decide(review!.id, { decision, by: 'ada' })
}

/** What is told of all runs. */
const told = () =>
  t.db
    .query<{ id: string }, []>('SELECT id FROM runs ORDER BY id')
    .all()
    .map(({ id }) => t.engine.record(id).lived_ms)
const said = (runId: string) => why(t.engine.store, runId, id => t.engine.bundle(id)).lines.join('\n')

test('it is what its attempts lived, over restarts, pauses between attempts and steps of the clock', async () => {
  await begin()
  const { run_id } = await t.start({ 'team.yml': BELOW, 'ask/team.yml': ASK })
  await asks(run_id)
  pass(MINUTE, 3 * DAY)
  await again(5 * DAY)
  await asks(run_id)
  pass(MINUTE, -DAY)
  expect(told()).toEqual([null, null])
  await answer('reject')
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'failed', lived_ms: 2 * MINUTE })
  expect(said(run_id)).toContain(' failed after 2m because ')

  // The home lives on, and nothing of the run goes on.
  pass(DAY, DAY)
  await t.engine.resume(run_id)
  await asks(run_id)
  expect(told()).toEqual([null, null])
  pass(30_000, 0)
  await again(DAY)
  await asks(run_id)
  await answer('approve')
  await t.engine.ended(run_id)
  expect(told()).toEqual([2.5 * MINUTE, 2.5 * MINUTE])
  expect(t.engine.record(run_id)).toMatchObject({ state: 'completed', attempt: 2 })
  expect(said(run_id)).toContain(' completed after 2m 30s.')
})

test('a wait for a concurrency key is no part of it, and one that is given up takes nothing away', async () => {
  await begin()
  const one = (await t.start(KEYED)).run_id
  const two = (await t.start(KEYED)).run_id
  await asks(one)
  pass(MINUTE, MINUTE)
  await answer('approve')
  await t.engine.ended(one)
  await asks(two)
  pass(2 * MINUTE, 2 * MINUTE)
  await answer('reject')
  await t.engine.ended(two)
  const three = (await t.start(KEYED)).run_id
  await asks(three)
  await t.engine.resume(two)
  expect(t.engine.record(two)).toMatchObject({ state: 'queued', lived_ms: null })
  pass(DAY, DAY)
  await t.engine.cancel(two)
  await t.engine.cancel(three)
  await t.engine.ended(three)
  expect(t.engine.record(two)).toMatchObject({ state: 'cancelled', attempt: 2 })
  expect(told()).toEqual([MINUTE, 2 * MINUTE, DAY])
})

test('a run from before it was counted has times only, also when it is resumed', async () => {
  await begin()
  const { run_id } = await t.start(ASK)
  await asks(run_id)
  t.db.run('UPDATE runs SET lived_ms = NULL, lived_since = NULL')
  await again(0)
  pass(MINUTE, DAY)
  await asks(run_id)
  await answer('reject')
  await t.engine.ended(run_id)
  expect(told()).toEqual([null])
  expect(said(run_id)).toContain(' failed after 1d because ')
  await t.engine.resume(run_id)
  await asks(run_id)
  pass(MINUTE, 2 * DAY)
  await answer('approve')
  await t.engine.ended(run_id)
  expect(told()).toEqual([null])
  expect(said(run_id)).toContain(' completed after 2d.')
})
