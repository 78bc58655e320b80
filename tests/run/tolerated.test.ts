// How many failures a completed run passed over: each counts once, in every run above it that completed.

import { afterEach, expect, test } from 'bun:test'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'
import { act, keyed, scripted, team } from '../support/scripted.ts'

let t: TestEngine
let home: string
/** The names of entries that fail. */
let bad: Set<string>
afterEach(async () => {
  await t.close()
  checkInvariants(home)
})

async function begin(...names: string[]) {
  home = folder()
  bad = new Set(names)
  const check = (name: string) => {
    if (bad.has(name)) throw new Error(`${name} is bad`)
  }
  let turn = 0
  const { agents } = scripted({
    one: () => check('one'),
    two: () => check('two'),
    mend: () => {
      bad.clear()
      return { turn: ++turn }
    },
    item: (_, value) => check(String(value)),
  })
  t = await testEngine({ home, agents })
}

const ONWARD = { on_failure: 'continue' }
const EACH = { on_item_failure: 'continue', inputs: { name: '{{ item }}' } }
const ITEM = team([act('do', 'item', { value: '{{ inputs.name }}' })], {
  inputs: [{ name: 'name', type: 'string', required: true }],
})
/** Two groups of three items, each of which may fail, and after them a phase that may. */
const NESTED = {
  'team.yml': team([
    keyed(['left', 'right'], './group', EACH),
    act('after', 'one', { ...ONWARD, depends_on: ['each'] }),
  ]),
  'group/team.yml': team(
    [
      { ...keyed(['a', 'b', 'c'], '../item', EACH), inputs: { name: '{{ inputs.name }} {{ item }}' } },
      act('group', 'item', { value: '{{ inputs.name }}', depends_on: ['each'] }),
    ],
    { inputs: [{ name: 'name', type: 'string', required: true }] },
  ),
  'item/team.yml': ITEM,
}

/** What each run of the tree says, by its place in it. */
const told = () =>
  t.db
    .query<{ place: string; tolerated: number | null }, []>(
      `SELECT coalesce(above.run_name || '/', '') || coalesce(runs.run_name, 'top') AS place, runs.tolerated
       FROM runs LEFT JOIN runs AS above ON above.id = runs.parent_id ORDER BY runs.tree_key`,
    )
    .all()
    .filter(({ tolerated }) => tolerated !== 0)
    .map(({ place, tolerated }) => `${place} ${tolerated}`)

async function run(yamls: Parameters<TestEngine['start']>[0]) {
  const { run_id } = await t.start(yamls)
  const { state } = await t.engine.ended(run_id)
  return { run_id, state }
}
async function resumed(run_id: string, how = {}) {
  await t.engine.resume(run_id, how)
  return (await t.engine.ended(run_id)).state
}

test('a failed item and a failed phase count once each, in every completed run above them', async () => {
  await begin('left b', 'right a', 'right c', 'one')
  const { run_id } = await run(NESTED)
  expect(t.engine.record(run_id)).toMatchObject({ state: 'completed', tolerated: 4 })
  expect(told()).toEqual(['top 4', 'left 1', 'left/b null', 'right 2', 'right/a null', 'right/c null'])
})

test('what failed in an item that failed counts as that one failure', async () => {
  await begin('left b', 'right a', 'right c', 'right')
  await run(NESTED)
  expect(told()).toEqual(['top 2', 'left 1', 'left/b null', 'right null', 'right/a null', 'right/c null'])
})

test('a new attempt counts again, and until its end nothing is said', async () => {
  await begin('left b', 'right a', 'one')
  const { run_id } = await run(NESTED)
  expect(told()[0]).toBe('top 3')
  bad = new Set(['right a'])
  expect(await resumed(run_id, { failed: true })).toBe('completed')
  expect(told()).toEqual(['top 1', 'right 1', 'right/a null'])
  bad.clear()
  expect(await resumed(run_id, { failed: true })).toBe('completed')
  expect(told()).toEqual([])
})

test('a phase that failed and was passed over counts once, whatever is below it', async () => {
  await begin('x', 'y')
  await run({
    'team.yml': team([keyed(['x', 'y', 'z'], './item', { ...EACH, ...ONWARD, on_item_failure: 'stop' })]),
    'item/team.yml': ITEM,
  })
  expect(told()[0]).toBe('top 1')
})

test('a run that failed or was cancelled says nothing', async () => {
  await begin('one', 'two')
  const { state } = await run(team([act('a', 'one', ONWARD), act('b', 'two', { depends_on: ['a'] })]))
  expect([state, ...told()]).toEqual(['failed', 'top null'])
})

test('of a phase with turns the last one counts', async () => {
  await begin('one')
  const { run_id } = await run({
    'team.yml': team([
      { name: 'loop', type: 'team', team: './soft', repeat: { until: 'result.data.turn == 2', every: '1ms', most: 2 } },
    ]),
    'soft/team.yml': team([act('a', 'one', ONWARD), act('mend', 'mend', { depends_on: ['a'] })], {
      outputs: [{ name: 'turn', type: 'number', value: '{{ phases.mend.data.turn }}' }],
    }),
  })
  expect(t.engine.record(run_id)).toMatchObject({ state: 'completed', tolerated: 0 })
  expect(told()).toEqual(['top 1'])
})
