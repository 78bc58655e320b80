// Places in the concurrency of nested maps, when runs are cancelled, answered and end in any order: a run that waits for
// a place gets it, no place is lost, and who cleans up needs none.

import { afterEach, expect, test } from 'bun:test'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf, questions, rowsOf, subRunOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, keyed, scripted, team } from '../../support/scripted.ts'

let release = Promise.withResolvers<void>()
const { agents, calls } = scripted({
  wait: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  held: () => release.promise,
  ok: () => ({}),
})
let home = ''
let t: TestEngine
const open = async (more = {}) => {
  home = folder()
  t = await testEngine({ home, agents, ...more })
}
afterEach(async () => {
  release.resolve()
  await t.close()
  checkInvariants(home)
  calls.length = 0
  release = Promise.withResolvers<void>()
})
const gate = (name: string, more = {}) => ({ name, type: 'gate', review: { prompt: name }, ...more })
const reviewOf = async (runId: string, phase: string) =>
  until(
    () =>
      rowsOf<{ id: string; position: number }>(
        home,
        "SELECT reviews.id, position FROM reviews WHERE state = 'pending' AND run_id = ?",
        runId,
      ).find(({ position }) => t.engine.phases(runId).phases[position]!.name === phase)?.id,
    `question ${phase}`,
  )
const approve = async (runId: string, phase: string) =>
  t.engine.decide(await reviewOf(runId, phase), { decision: 'approve', by: 'me' })

test('a run that waited for the place of the run above goes on, although another one got that place', async () => {
  await open()
  // root: each (1 at once) over a, b. a: each over y, x (1 at once). x: each over g1, g2. Leaves: ask, then held.
  const { run_id } = await t.start({
    'team.yml': team([keyed(['a', 'b'], './p', { concurrency: 1, inputs: { name: '{{ item }}' } })]),
    'p/team.yml': team(
      [
        keyed(['y', 'x'], '../x', { concurrency: 1, when: "inputs.name == 'a'", inputs: { name: '{{ item }}' } }),
        act('work', 'held', { when: "inputs.name == 'b'" }),
      ],
      { inputs: [{ name: 'name', type: 'string', required: true }] },
    ),
    'x/team.yml': team([{ ...keyed(['g1', 'g2'], '../g', { concurrency: 2 }) }], {
      inputs: [{ name: 'name', type: 'string', required: true }],
    }),
    'g/team.yml': team([gate('ask'), act('work', 'ok', { depends_on: ['ask'] })]),
  })
  await questions(t, 4)
  await until(() => calls.includes('held'), 'b at work')
  const a = subRunOf(t, run_id, 'each', 'a')
  const [y, x] = [subRunOf(t, a, 'each', 'y'), subRunOf(t, a, 'each', 'x')]
  const [g1, g2] = [subRunOf(t, x, 'each', 'g1'), subRunOf(t, x, 'each', 'g2')]
  await approve(subRunOf(t, y, 'each', 'g1'), 'ask') // y has its place in a, and waits for that of a
  await approve(g1, 'ask') // waits for the place of x, which y has
  await t.engine.cancel(y) // y's place is free, but a has none and looks at nothing
  await approve(g2, 'ask') // x has its place
  release.resolve() // b ends, and a has its place
  await until(() => t.engine.record(g2).completed_at !== null, 'g2')
  await until(() => t.engine.record(g1).completed_at !== null, 'g1', 5_000)
  await within(t.engine.ended(run_id), 'the end', 5_000)
})

test('a map has all of its places after a run took one while its own run had none', async () => {
  await open()
  const { run_id } = await t.start({
    'team.yml': team([keyed(['a', 'b'], './p', { concurrency: 1, inputs: { name: '{{ item }}' } })]),
    'p/team.yml': team(
      [
        keyed(['g1', 'g2', 'g3', 'g4', 'g5'], '../g', {
          concurrency: 2,
          when: "inputs.name == 'a'",
          on_item_failure: 'continue',
        }),
        act('work', 'held', { when: "inputs.name == 'b'" }),
      ],
      { inputs: [{ name: 'name', type: 'string', required: true }] },
    ),
    'g/team.yml': team([
      gate('ask'),
      gate('too'),
      act('one', 'ok', { depends_on: ['ask'] }),
      act('two', 'wait', { depends_on: ['one', 'too'] }),
    ]),
  })
  await questions(t, 10)
  await until(() => calls.includes('held'), 'b at work')
  const a = subRunOf(t, run_id, 'each', 'a')
  const [g1, g2, g3, g4, g5] = ['g1', 'g2', 'g3', 'g4', 'g5'].map(name => subRunOf(t, a, 'each', name)) as string[]
  await approve(g1!, 'ask')
  await approve(g2!, 'ask') // both have places in a, which has none
  await approve(g3!, 'ask') // waits for a place in a
  await t.engine.cancel(g1!)
  await approve(g3!, 'too') // takes the place of g1
  await t.engine.cancel(g2!) // one place is free
  release.resolve() // a may go on
  await until(() => calls.includes('wait'), 'g3 at work')
  await t.engine.cancel(g3!)
  for (const g of [g4!, g5!]) for (const phase of ['ask', 'too']) await approve(g, phase)
  await until(() => calls.filter(name => name === 'wait').length === 3, 'g4 and g5 at work, two at once', 5_000)
})

test('the cleanup of a cancelled run that gave its place away does not wait for another run', async () => {
  await open()
  const { run_id } = await t.start({
    'team.yml': team([
      keyed(['a', 'b'], './p', { concurrency: 1, on_item_failure: 'continue', inputs: { name: '{{ item }}' } }),
    ]),
    'p/team.yml': team(
      [
        gate('ask', { when: "inputs.name == 'a'" }),
        act('work', 'held', { when: "inputs.name == 'b'" }),
        { name: 'clean', type: 'team', team: '../clean', depends_on: ['ask', 'work'], always: true, timeout: '1s' },
      ],
      { inputs: [{ name: 'name', type: 'string', required: true }] },
    ),
    'clean/team.yml': team([act('remove', 'ok')]),
  })
  await questions(t, 1)
  await until(() => calls.includes('held'), 'b at work')
  const a = subRunOf(t, run_id, 'each', 'a')
  await t.engine.cancel(a)
  expect(await within(t.engine.ended(a), 'the end of a', 5_000)).toMatchObject({ state: 'cancelled' })
  expect(phaseOf(t, a, 'clean')).toMatchObject({ state: 'completed', error: null })
  expect(calls).toContain('ok')
})
