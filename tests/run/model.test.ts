// Random trees of runs against the model: 300 of them. The seed is printed; CADRE_TEST_SEED repeats it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { JsonObject } from '../../lib/json.ts'
import { runPhases, treeEntries } from '../../lib/run/engine.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { seedOf } from '../support/random.ts'
import { type ModelPhase, model, teamFiles } from './model.ts'

const leaf = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Fails as it is told.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), value: Type.Number(), fail: Type.Boolean(), flaky: Type.Boolean() }),
    async run({ value, fail, flaky }, context) {
      if (flaky && context.attempt === 1) throw new AgentError('not yet', { retryable: true })
      if (fail) throw new AgentError('told to')
      return { text: '', data: { value } }
    },
  },
})

const phase = (depth: number, position: number): fc.Arbitrary<ModelPhase> =>
  fc
    .oneof({ weight: 3, arbitrary: fc.constant('leaf' as const) }, fc.constantFrom('team' as const, 'map' as const))
    .chain(type =>
      fc.record({
        type: fc.constant(depth === 0 ? 'leaf' : type),
        depends: position === 0 ? fc.constant([]) : fc.uniqueArray(fc.nat(position - 1), { maxLength: 2 }),
        when: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.constant(false)),
        always: fc.boolean(),
        onFailure: fc.constantFrom('fail', 'continue'),
        fails: fc.integer({ min: -2, max: 2 }),
        flaky: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
        items: fc.nat(3),
        onItem: fc.constantFrom('stop', 'continue'),
        team: depth === 0 || type === 'leaf' ? fc.constant([]) : team(depth - 1),
      }),
    )

const team = (depth: number): fc.Arbitrary<ModelPhase[]> =>
  fc.integer({ min: 1, max: 4 }).chain(size => fc.tuple(...Array.from({ length: size }, (_, n) => phase(depth, n))))

let t: TestEngine
beforeAll(async () => {
  t = await testEngine({ agents: { leaf }, slots: 8 })
})
afterAll(() => t.close())

test('states, reasons, outputs and the tree are what the model says', async () => {
  const seed = seedOf('model')
  await fc.assert(fc.asyncProperty(team(3), check), { seed, numRuns: 300 })
  expect(brokenInvariants(t.engine.store.db)).toEqual([])
}, 60_000)

async function check(phases: ModelPhase[]): Promise<void> {
  const expected = model(phases, 0)
  const run = await t.run(teamFiles(phases), { n: 0 })
  const outputs = expected.phases.map(([, , data]) => data)
  expect(run.state).toBe(expected.state as never)
  expect(run.outputs).toEqual(run.state === 'completed' ? ({ all: outputs } as JsonObject) : null)
  const rows = runPhases(t.engine.store, run.run_id, id => t.engine.bundle(id)).phases
  expect(rows.map(({ state, reason }) => [state, reason])).toEqual(
    expected.phases.map(([state, reason]) => [state, reason]) as never,
  )
  const tree = [...treeEntries(t.engine.store.db, run.run_id)]
  expect(tree.map(entry => [entry.call_depth, entry.parent_phase, entry.run_name, entry.state])).toEqual(
    expected.tree as never,
  )
  expect(run.error === null).toBe(run.state === 'completed')
}
