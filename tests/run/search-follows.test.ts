// The index of searches follows what the engine does with the runs that it has: after each step, a search finds by the index
// what it finds by looking at all runs, in each state. The index has every run before each step.

import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { listRunsHere, Store } from '../../lib/run/engine.ts'
import { find } from '../../lib/run/search/find.ts'
import { offerRuns, SearchIndex } from '../../lib/run/search/search-index.ts'
import { RUN_STATES } from '../../lib/wire/states.ts'
import { until } from '../support/bounded.ts'
import { testEngine } from '../support/engine.ts'

/** Fails until there is the file that the input names. */
const team = (name: string, more: string, before = '') => `
name: "@local/${name}"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
${more}
phases:
${before}  - { name: look, agent: exec${before && ', depends_on: [ask]'}, commands: [{ name: look, run: 'test -e "$FILE"', env: { FILE: "{{ inputs.file }}" } }] }
`
const ONE_AT_A_TIME = team(
  'asks',
  'concurrency: { key: asks }',
  '  - { name: ask, type: gate, review: { prompt: "Go on?" } }\n',
)
const MAP = (files: readonly string[]) => ({
  'team.yml': `
name: "@local/above"
version: 1.0.0
phases:
  - { name: each, type: map, items: "{{ ${JSON.stringify(files).replaceAll('"', "'")} }}", team: ./one, inputs: { file: "{{ item }}" } }
`,
  'one/team.yml': team('one', ''),
})

/** Returns how many runs are found in each state. */
function search(db: Database, runs: Database, index: SearchIndex): Record<string, number> {
  const found: Record<string, number> = {}
  for (const state of RUN_STATES) {
    const filter = { limit: 50, offset: 0, state, search: 'local' }
    const looked = listRunsHere(new Store(db), filter).runs.map(({ run_id }) => run_id)
    expect([state, find(runs, index, filter).rows.map(({ id }) => `${id}`)]).toEqual([state, looked])
    if (looked.length > 0) found[state] = looked.length
  }
  return found
}

test('what a search finds is what is there, whatever becomes of the runs that the index has', async () => {
  await using t = await testEngine()
  using runs = openDatabase(join(t.home, 'daemon.db'), { readonly: true })
  const index = new SearchIndex(join(t.home, 'search.db'), runs)
  const { engine, db, home } = t
  const fill = () => {
    while (index.fillSome()) {}
  }
  const after = async (step: () => Promise<unknown>) => {
    offerRuns(db)
    fill()
    await step()
    const found = search(db, runs, index)
    fill()
    expect(search(db, runs, index)).toEqual(found)
    return found
  }
  const is = (id: string, state: string) => until(() => engine.record(id).state === state, `run ${id} is ${state}`)
  const approve = async (id: string) => {
    const { id: review } = db.query<{ id: string }, []>("SELECT id FROM reviews WHERE state = 'pending'").get()!
    await engine.decide(review, { decision: 'approve', by: 'ada' })
    await engine.ended(id)
  }
  const resume = async (id: string) => {
    await engine.resume(id)
    await engine.ended(id)
  }
  const [one, two] = [join(home, 'one'), join(home, 'two')]
  const start = await t.prepare(ONE_AT_A_TIME, { file: one })
  const ids: string[] = []
  const begin = async () => ids.push((await start()).run_id)
  try {
    expect(await after(() => begin().then(() => is(ids[0]!, 'awaiting_input')))).toEqual({ awaiting_input: 1 })
    expect(await after(() => begin().then(begin))).toEqual({ awaiting_input: 1, queued: 2 })
    expect(await after(() => engine.cancel(ids[1]!))).toEqual({ awaiting_input: 1, queued: 1, cancelled: 1 })
    const next = () => approve(ids[0]!).then(() => is(ids[2]!, 'awaiting_input'))
    expect(await after(next)).toEqual({ awaiting_input: 1, failed: 1, cancelled: 1 })
    expect(await after(() => engine.cancel(ids[2]!).then(() => engine.ended(ids[2]!)))).toEqual({
      failed: 1,
      cancelled: 2,
    })
    writeFileSync(one, '')
    expect(await after(() => resume(ids[0]!))).toEqual({ completed: 1, cancelled: 2 })
    const above = (await t.run(MAP([one, two]))).run_id
    expect(await after(async () => {})).toEqual({ completed: 2, failed: 2, cancelled: 2 })
    writeFileSync(two, '')
    expect(await after(() => resume(above))).toEqual({ completed: 4, cancelled: 2 })
    const remove = () =>
      engine.deleteTree(above, async () => void db.query('DELETE FROM runs WHERE root_id = ?').run(above))
    expect(await after(remove)).toEqual({ completed: 1, cancelled: 2 })
    // It gets the number of one that was deleted.
    expect(await after(() => t.run(MAP([one])))).toEqual({ completed: 3, cancelled: 2 })
  } finally {
    index.close()
  }
})
