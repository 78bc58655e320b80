// Maps and depth: whom `concurrency` counts, what names a duplicate, and how deep sub-runs may nest.

import { afterEach, describe, expect, test } from 'bun:test'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { dataOf, phaseOf, questions, rowsOf } from '../../support/home.ts'
import { act, keyed, scripted, team } from '../../support/scripted.ts'

let active = 0
let most = 0
const held = new Map<unknown, PromiseWithResolvers<void>>()
const { agents, calls } = scripted({
  work: async ({ signal }, value) => {
    most = Math.max(most, ++active)
    try {
      await Promise.race([
        held.get(value)?.promise,
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ])
    } finally {
      active--
    }
    return { value }
  },
})
let t: TestEngine
afterEach(async () => {
  calls.length = 0
  most = 0
  held.clear()
  await t.close()
})
const ended = (runId: string, ms?: number) => within(t.engine.ended(runId), 'the end of the run', ms)
const holding = (...values: string[]) => {
  for (const value of values) held.set(value, Promise.withResolvers())
}
const release = (value: string) => held.get(value)!.resolve()

/** Items that begin with `ask` ask a person before they work. */
const mapped = (items: string[], concurrency: number) => ({
  'team.yml': team([keyed(items, './child', { inputs: { v: '{{ item }}' }, concurrency })]),
  'child/team.yml': team(
    [
      { name: 'ask', type: 'gate', review: { prompt: 'Go on?' }, when: "inputs.v.startsWith('ask')" },
      act('work', 'work', { depends_on: ['ask'], value: '{{ inputs.v }}' }),
    ],
    { inputs: [{ name: 'v', type: 'string' }] },
  ),
})

describe('a sub-run that waits for a person', () => {
  test('takes no place of `concurrency`, and the limit holds when it continues', async () => {
    t = await testEngine({ agents })
    holding('a', 'b')
    const { run_id } = await t.start(mapped(['ask 1', 'ask 2', 'a', 'b', 'c'], 1))
    await until(() => calls.includes('work a'), 'an item behind those that wait')
    for (const { id } of await questions(t, 2)) await t.engine.decide(id, { decision: 'approve', by: 'somebody' })
    await Bun.sleep(300)
    expect(calls).toEqual(['work a'])
    release('a')
    await until(() => calls.length > 1, 'the next item')
    release('b')
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(most).toBe(1)
    expect(calls.toSorted()).toEqual(['work a', 'work ask 1', 'work ask 2', 'work b', 'work c'])
    expect(dataOf(t, run_id, 'each')).toMatchObject({ total: 5, completed: 5 })
  })

  test('takes none after a restart either', async () => {
    const home = folder()
    t = await testEngine({ home, agents })
    holding('a')
    const { run_id } = await t.start(mapped(['ask 1', 'a', 'ask 2', 'b'], 1))
    await until(() => calls.includes('work a'), 'an item behind the one that waits')
    await t.close()
    held.clear()
    t = await testEngine({ home, agents })
    await until(() => calls.includes('work b'), 'the last item')
    for (const { id } of await questions(t, 2)) await t.engine.decide(id, { decision: 'approve', by: 'somebody' })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(most).toBe(1)
  })

  test('keeps a map open that has no other work, and a cancel ends the map', async () => {
    t = await testEngine({ agents })
    const { run_id } = await t.start(mapped(['ask 1', 'a', 'ask 2'], 1))
    await questions(t, 2)
    await until(() => calls.includes('work a'), 'the item between')
    expect(phaseOf(t, run_id, 'each')).toMatchObject({ state: 'awaiting_input' })
    expect(t.engine.record(run_id).state).toBe('awaiting_input')
    await t.engine.cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
  })
})

test('a duplicate key is an error that names both indexes, however many items there are', async () => {
  t = await testEngine({ agents })
  const items = Array.from({ length: 600 }, (_, n) => `k${n}`)
  items[431] = 'k17'
  const { run_id } = await t.start(mapped(items, 4))
  const { state, error } = await ended(run_id)
  expect(state).toBe('failed')
  expect(error!.message).toMatch(/\b17 and 431\b/)
  expect(error!.message).toContain('"k17"')
  expect(calls).toEqual([])
})

describe('sub-runs that nest', () => {
  /** A team that calls itself until it is `n` runs deep. */
  const nested = team(
    [
      { name: 'down', type: 'team', team: '.', inputs: { n: '{{ inputs.n - 1 }}' }, when: 'inputs.n > 0' },
      act('work', 'work', { when: 'inputs.n == 0', value: 'bottom' }),
    ],
    { inputs: [{ name: 'n', type: 'number', required: true }] },
  )
  const depth = () => rowsOf<{ depth: number }>(t.home, 'SELECT max(call_depth) AS depth FROM runs')[0]!.depth

  test('1,000 deep complete', async () => {
    t = await testEngine({ agents })
    const { run_id } = await t.start(nested, { n: 1_000 })
    expect(await ended(run_id, 60_000)).toMatchObject({ state: 'completed' })
    expect(depth()).toBe(1_000)
    expect(calls).toEqual(['work bottom'])
  }, 90_000)

  test('1,000 deep are cancelled, and continued after a restart', async () => {
    const home = folder()
    t = await testEngine({ home, agents })
    holding('bottom')
    const { run_id } = await t.start(nested, { n: 1_000 })
    await until(() => calls.length === 1, 'the bottom', 60_000)
    await t.close()
    t = await testEngine({ home, agents })
    await until(() => calls.length === 2, 'the bottom again', 60_000)
    await within(t.engine.cancel(run_id), 'the cancel', 30_000)
    expect(await ended(run_id, 60_000)).toMatchObject({ state: 'cancelled' })
    expect(rowsOf(home, 'SELECT id FROM runs WHERE completed_at IS NULL')).toEqual([])
  }, 150_000)

  test('deeper sub-runs are an error instead of a crash, and affect no other run', async () => {
    t = await testEngine({ agents })
    holding('other')
    const other = await t.start(team([act('work', 'work', { value: 'other' })]))
    await until(() => calls.length === 1, 'the other run')
    for (const n of [1_001, 5_000]) {
      const { run_id } = await t.start(nested, { n })
      const { state, error } = await ended(run_id, 60_000)
      expect(state).toBe('failed')
      expect(error!.message).toMatch(/1,?000/)
    }
    expect(depth()).toBe(1_000)
    release('other')
    expect(await ended(other.run_id)).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work other'])
  }, 150_000)
})
