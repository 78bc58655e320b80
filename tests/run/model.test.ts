// Random trees of runs against the model: 300 of them. The seed is printed; CADRE_TEST_SEED repeats it.

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { livedMs } from '../../lib/lived-time.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { openHome, pendingReviews, type Question, treeOf } from '../support/home-rows.ts'
import { leapingClock } from '../support/leaping-clock.ts'
import { seedOf } from '../support/random.ts'
import { type ModelPhase, model, teamFiles, VALUES } from './model.ts'

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
        when: fc.oneof(
          { weight: 12, arbitrary: fc.constant('none' as const) },
          { weight: 3, arbitrary: fc.constantFrom('true' as const, 'false' as const, 'null' as const) },
          { weight: 1, arbitrary: fc.constant('error' as const) },
        ),
        always: fc.boolean(),
        onFailure: fc.oneof(
          { weight: 5, arbitrary: fc.constantFrom('fail' as const, 'continue' as const) },
          { weight: 1, arbitrary: fc.constant('escalate' as const) },
        ),
        answer: fc.constantFrom('fail', 'skip', 'complete'),
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
let db: Database
beforeEach(async () => {
  t = await testEngine({ agents: { leaf }, slots: 8 })
  db = openHome(t.home)
})
afterEach(async () => {
  db.close()
  await t.close()
})

test('states, reasons, outputs and the tree are what the model says', async () => {
  const seed = seedOf('model')
  await fc.assert(fc.asyncProperty(team(3), check), { seed, numRuns: 300 })
  expect(brokenInvariants(db)).toEqual([])
}, 120_000)

test('the rules hold after every commit, also when each unit and each group has time for one thing only', async () => {
  const seed = seedOf('commits')
  const clock = leapingClock()
  let commits = 0
  const unfollow = t.engine.follow(() => {
    commits++
    // An engine stays on its feet when a follower throws, so the rule is kept for the test to see.
    broken ??= brokenInvariants(db)[0]
  })
  let broken: ReturnType<typeof brokenInvariants>[number] | undefined
  try {
    await fc.assert(
      fc.asyncProperty(team(3), async phases => {
        await check(phases)
        expect(broken).toBeUndefined()
      }),
      { seed, numRuns: 60, endOnFailure: true },
    )
  } finally {
    unfollow()
    clock[Symbol.dispose]()
  }
  expect(commits).toBeGreaterThan(500)
  // Other tests of this process count lived time too.
  const lived = livedMs()
  await Bun.sleep(20)
  expect(livedMs()).toBeGreaterThan(lived)
}, 120_000)

async function check(phases: ModelPhase[]): Promise<void> {
  const expected = model(phases, 0)
  const { run_id } = await t.start(teamFiles(phases), { n: 0 })
  while (await waits(run_id)) for (const review of pendingReviews(db)) await answer(review, phases)
  const run = await t.engine.ended(run_id)
  const rows = t.engine.phases(run_id).phases
  expect(rows.map(({ state, reason }) => [state, reason])).toEqual(
    expected.phases.map(([state, reason]) => [state, reason]) as never,
  )
  const tree = treeOf(db, run_id)
  expect(tree.map(entry => [entry.call_depth, entry.parent_phase, entry.run_name, entry.state])).toEqual(
    expected.tree as never,
  )
  expect(run.state).toBe(expected.state as never)
  const outputs = expected.phases.map(([, , data]) => data)
  const plain = phases.flatMap(({ type }, n) => (type === 'leaf' ? [[`v${n}`, outputs[n]!] as const] : []))
  expect(run.outputs).toEqual(run.state === 'completed' ? { all: outputs, ...Object.fromEntries(plain) } : null)
  for (const [position, { type, data }] of rows.entries()) {
    // A map that fails keeps what it has; nothing else does that did not complete.
    if (rows[position]!.state === 'failed' && type === 'map' && phases[position]!.when !== 'error') {
      const shown = (data as { items: { outputs: { all: unknown } | null }[] }).items.map(
        item => item.outputs?.all ?? null,
      )
      expect(shown).toEqual(outputs[position] as never)
    } else if (rows[position]!.state !== 'completed') expect(data).toBeNull()
  }
  expect(run.error === null).toBe(run.state === 'completed')
}

/**
 * Resolves when the run has ended, false, or when nothing goes on in it until a person has answered: then its clock is
 * stopped.
 */
async function waits(runId: string): Promise<boolean> {
  let heard = 0
  const unfollow = t.engine.follow(() => heard++)
  try {
    for (let still = 0, before = -1; ; before = heard) {
      const { state, completed_at } = t.engine.record(runId)
      if (completed_at !== null) return false
      const rests = isStopped(runId) && t.engine.load.slots === 0 && heard === before
      still = rests ? still + 1 : 0
      if (still === 3) return true
      await Bun.sleep(state === 'awaiting_input' ? 3 : 1)
    }
  } finally {
    unfollow()
  }
}

const isStopped = (runId: string): boolean =>
  db.query('SELECT 1 FROM runs WHERE id = ? AND time_left IS NOT NULL').get(runId) !== null

/** As the phase says that was asked about, wherever it stands. */
async function answer({ id, run_id, position }: Question, phases: ModelPhase[]): Promise<void> {
  const above = (run: string): number[] => {
    const row = db
      .query<{ parent_id: string | null; parent_position: number }, [string]>(
        'SELECT parent_id, parent_position FROM runs WHERE id = ?',
      )
      .get(run)!
    return row.parent_id === null ? [] : [...above(row.parent_id), row.parent_position]
  }
  const at = above(run_id).reduce((team, n) => team[n]!.team, phases)
  const decision = at[position]!.answer
  await t.engine.decide(id, { decision, by: 'the test', ...(decision === 'complete' && { values: VALUES }) })
}
