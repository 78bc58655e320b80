// Turns go over top runs: one that has much to do keeps none waiting that has little.

import { afterEach, expect, test } from 'bun:test'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { act, scripted, team } from '../../support/scripted.ts'

const SLOTS = 4
const MANY = 60
/** Leaf phases of the large runs that may end while a run of one phase waits and works. */
const MOST = 20

const { agents, calls } = scripted({
  long: () => Bun.sleep(50),
  short: () => Bun.sleep(5),
})
let t: TestEngine
afterEach(() => t.close())

const wide = team(Array.from({ length: MANY }, (_, n) => act(`p${n}`, 'long')))
const mapped = {
  'team.yml': team([{ name: 'each', type: 'map', items: Array.from({ length: MANY }, (_, n) => n), team: './one' }]),
  'one/team.yml': team([act('work', 'long')]),
}
const deep = {
  'team.yml': team(Array.from({ length: 6 }, (_, n) => ({ name: `p${n}`, type: 'team', team: './ten' }))),
  'ten/team.yml': team(Array.from({ length: 10 }, (_, n) => act(`p${n}`, 'long'))),
}
const cases: [what: string, files: typeof mapped | typeof deep | string][] = [
  ['of many phases', wide],
  ['of a map', mapped],
  ['of teams of phases', deep],
]

test.each(cases)('a run of one phase does not wait for the whole run %s before it', async (_, files) => {
  t = await testEngine({ agents, slots: SLOTS })
  calls.length = 0
  const large = await t.start(files)
  await until(() => calls.length >= SLOTS, 'the large run at work')
  const before = calls.length
  const small = await within(t.run(team([act('only', 'short')])), 'the small run')
  expect(small.state).toBe('completed')
  expect(calls.length - before).toBeLessThan(MOST)
  expect((await within(t.engine.ended(large.run_id), 'the large run')).state).toBe('completed')
  expect(calls.filter(name => name === 'long')).toHaveLength(MANY)
})

test('runs that were started one after the other get slots in turn', async () => {
  t = await testEngine({ agents, slots: SLOTS })
  calls.length = 0
  const large = [await t.start(wide), await t.start(mapped), await t.start(deep)]
  await until(() => calls.length >= SLOTS, 'the large runs at work')
  const before = calls.length
  const small = await Promise.all(Array.from({ length: 3 }, () => t.start(team([act('only', 'short')]))))
  for (const { run_id } of small) await within(t.engine.ended(run_id), 'a small run')
  expect(calls.length - before).toBeLessThan(2 * MOST)
  for (const { run_id } of large) {
    expect((await within(t.engine.ended(run_id), 'a large run', 15_000)).state).toBe('completed')
  }
})
