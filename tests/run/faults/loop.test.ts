// Nothing holds the event loop for long: much work is done in pieces, or elsewhere.

import { afterEach, expect, test } from 'bun:test'
import type { JsonObject } from '../../../lib/json.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { LONGEST_GAP_MS, longestGap } from '../../support/gap.ts'
import { dataOf, phaseOf, rowsOf } from '../../support/home.ts'
import { type Act, act, scripted, shell, team } from '../../support/scripted.ts'

const WAIT_MS = 100_000
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const echo: Act = (_, value) => ({ value })
const { agents, calls } = scripted({ echo, ...Object.fromEntries(numbers(20).map(n => [`echo${n}`, echo])) })
let t: TestEngine
afterEach(() => t.close(), 60_000)

const list = (length: number) => ({ list: Array.from({ length }, (_, n) => `item ${n}`) })
const inputs = [{ name: 'list', type: 'list', required: true }]
const over = (fields: JsonObject, child: string) => ({
  'team.yml': team([{ name: 'each', type: 'map', items: '{{ inputs.list }}', team: './child', ...fields }], { inputs }),
  'child/team.yml': child,
})
/** Runs it to its end, and gives the longest gap from its start on. */
async function gapOf(begin: Awaited<ReturnType<TestEngine['prepare']>>) {
  let runId = ''
  const gap = await longestGap(async () => {
    runId = (await begin()).run_id
    await within(t.engine.ended(runId), 'the end of the run', WAIT_MS)
  })
  return { gap, run: t.engine.record(runId) }
}

test.each<[what: string, count: number, fields: JsonObject]>([
  ['10,000 items whose phases are all skipped by `when`', 10_000, { concurrency: 10_000 }],
  [
    'a `key` that filters 2,000 items for each of them',
    2_000,
    { key: '{{ inputs.list.filter(other, other == item)[0] }}', concurrency: 2 },
  ],
])(
  '%s',
  async (_, count, fields) => {
    t = await testEngine({ agents })
    const begin = await t.prepare(over(fields, team([act('work', 'echo', { when: '1 > 2' })])), list(count))
    const { gap, run } = await gapOf(begin)
    expect(run.state).toBe('completed')
    expect(dataOf(t, run.run_id, 'each')).toMatchObject({ total: count, completed: count })
    expect(gap).toBeLessThan(LONGEST_GAP_MS)
  },
  120_000,
)

test('500 MB that are handed over', async () => {
  t = await testEngine()
  const begin = await t.prepare({
    'team.yml': team([{ name: 'down', type: 'team', team: './child' }]),
    'child/team.yml': team([shell('make', 'head -c 524288000 /dev/zero > big')], {
      outputs: [{ name: 'big', type: 'file', value: 'big' }],
    }),
  })
  const { gap, run } = await gapOf(begin)
  expect(run.state).toBe('completed')
  expect(phaseOf(t, run.run_id, 'down').files).toMatchObject([{ bytes: 524_288_000 }])
  expect(gap).toBeLessThan(LONGEST_GAP_MS)
}, 120_000)

test('a tree of 5,000 sub-runs that is cancelled', async () => {
  t = await testEngine()
  const child = team([{ name: 'ask', type: 'gate', review: { prompt: 'Go on?' } }])
  const begin = await t.prepare(over({ concurrency: 5_000 }, child), list(5_000))
  const { run_id } = await begin()
  const asked = "SELECT count(*) AS count FROM reviews WHERE state = 'pending'"
  await until(() => rowsOf<{ count: number }>(t.home, asked)[0]!.count === 5_000, '5,000 questions', WAIT_MS)
  const gap = await longestGap(async () => {
    await t.engine.cancel(run_id)
    await within(t.engine.ended(run_id), 'the end of the run', WAIT_MS)
  })
  expect(t.engine.record(run_id).state).toBe('cancelled')
  const open = 'SELECT count(*) AS count FROM runs WHERE completed_at IS NULL'
  expect(rowsOf<{ count: number }>(t.home, open)).toEqual([{ count: 0 }])
  expect(gap).toBeLessThan(LONGEST_GAP_MS)
}, 180_000)

test('teams that no run needs any more are found beside 100,000 runs', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.run(team([act('work', 'echo')]))
  const columns = rowsOf<{ name: string }>(t.home, "SELECT name FROM pragma_table_info('runs')").map(({ name }) => name)
  const copied: Record<string, string> = { id: "id || '-' || n", root_id: "root_id || '-' || n" }
  t.db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
     INSERT INTO runs (${columns.join(', ')}) SELECT ${columns.map(name => copied[name] ?? name).join(', ')} FROM runs, n
     WHERE id = '${run_id}'`,
  )
  const { bundles } = t.engine.store
  for (let n = 0; n < 50; n++) bundles.insert(`unused ${n}`, '{}')
  const gap = await longestGap(async () => bundles.dropUnused())
  expect(rowsOf(t.home, 'SELECT id FROM bundles')).toHaveLength(1)
  expect(gap).toBeLessThan(LONGEST_GAP_MS)
}, 60_000)

/** An expression that is true and takes some milliseconds. */
const costly = 'inputs.list.filter(one, one == inputs.list[0]).size() == 1'
const twenty = (of: (n: number) => JsonObject) => numbers(20).map(of)
const pending = (id: string) => t.engine.phases(id).phases.filter(({ state }) => state === 'pending').length

test.each<[what: string, phases: JsonObject[], outputs: JsonObject[], left: (id: string) => number]>([
  ['`when` of phases', twenty(n => act(`p${n}`, 'echo', { when: costly })), [], pending],
  [
    'inputs of team phases',
    twenty(n => ({ name: `p${n}`, type: 'team', team: './child', inputs: { given: `{{ ${costly} }}` } })),
    [],
    pending,
  ],
  [
    'outputs of a run',
    [act('work', 'echo')],
    twenty(n => ({ name: `o${n}`, type: 'boolean', value: `{{ ${costly} }}` })),
    id => (t.engine.record(id).completed_at === null ? 1 : 0),
  ],
  [
    'entries of a phase',
    [{ name: 'work', agent: 'act', sources: twenty(n => ({ name: `echo${n}`, value: `{{ ${costly} }}` })) }],
    [],
    () => 20 - calls.filter(call => call !== 'echo').length,
  ],
])('twenty costly %s do not keep a run waiting that starts beside them', async (_, phases, outputs, left) => {
  t = await testEngine({ agents })
  calls.length = 0
  const child = team([act('work', 'echo')], { inputs: [{ name: 'given', type: 'boolean', required: true }] })
  const large = await t.prepare(
    { 'team.yml': team(phases, { inputs, outputs }), 'child/team.yml': child },
    list(20_000),
  )
  const small = await t.prepare(team([act('work', 'echo')]))
  const [costlyRun, { run_id }] = await Promise.all([large(), small()])
  await within(t.engine.ended(run_id), 'the small run', WAIT_MS)
  expect(left(costlyRun.run_id)).toBeGreaterThan(0)
  expect(await within(t.engine.ended(costlyRun.run_id), 'the costly run', WAIT_MS)).toMatchObject({
    state: 'completed',
  })
})
