// Runs that end in one unit, and so by one statement: each has its own end.

import { afterEach, expect, spyOn, test } from 'bun:test'
import { openForReading } from '../../db/open.ts'
import type { Json } from '../../lib/json.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { Phases } from '../../lib/run/store/phases.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { act, keyed, scripted, team } from '../support/scripted.ts'

const RUNS = 37
const items = Array.from({ length: RUNS }, (_, n) => `item ${n}`)
const numberOf = (value: Json) => Number(String(value).slice(5))

let held = Promise.withResolvers<void>()
const { agents, calls } = scripted({
  /** All of them return in one turn: every third fails. */
  async hold(_, value) {
    await held.promise
    if (numberOf(value) % 3 === 2) throw new Error(`no ${value}`)
    return { value }
  },
})
let t: TestEngine
afterEach(async () => {
  held.resolve()
  held = Promise.withResolvers()
  calls.length = 0
  await t.close()
})

const map = {
  'team.yml': team([
    keyed(items, './one', { concurrency: RUNS, on_item_failure: 'continue', inputs: { item: '{{ item }}' } }),
  ]),
  'one/team.yml': team([act('work', 'hold', { value: '{{ inputs.item }}' })], {
    inputs: [{ name: 'item', type: 'string', required: true }],
    outputs: [{ name: 'value', type: 'string', value: '{{ phases.work.data.value }}' }],
  }),
}

const rows = (root: string) =>
  t.db
    .query<{ id: string; run_name: string; state: string; outputs: string | null; error: string | null }, [string]>(
      'SELECT id, run_name, state, outputs, error FROM runs WHERE parent_id = ? ORDER BY item',
    )
    .all(root)

test('runs that end together have their own outputs and errors', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.start(map)
  await until(() => calls.length === RUNS, 'all items')
  held.resolve()
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed' })
  for (const [n, row] of rows(run_id).entries()) {
    expect(row.run_name).toBe(items[n]!)
    if (n % 3 === 2) {
      expect(row).toMatchObject({ state: 'failed', outputs: null })
      expect(row.error).toContain(`no ${items[n]}`)
    } else expect(row).toMatchObject({ state: 'completed', outputs: JSON.stringify({ value: items[n] }), error: null })
  }
  expect(brokenInvariants(t.db)).toEqual([])
  expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
})

test('a run that has ended in its row holds up none of those that end with it', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.start(map)
  await until(() => calls.length === RUNS, 'all items')
  const before = rows(run_id)[20]!
  t.db.run(
    `UPDATE phases SET state = 'completed', completed_at = 1, data = '{}', files = '[]' WHERE run_id = '${before.id}'`,
  )
  t.db.run(
    `UPDATE runs SET state = 'completed', completed_at = 1, outputs = '{"value":"before"}' WHERE id = '${before.id}'`,
  )
  held.resolve()
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed' })
  const states = rows(run_id).map(({ state }) => state)
  expect(states).toEqual(items.map((_, n) => (n % 3 === 2 && n !== 20 ? 'failed' : 'completed')))
  expect(rows(run_id)[20]!.outputs).toBe('{"value":"before"}')
  expect(calls).toHaveLength(RUNS)
})

test('a phase that starts and completes calls no trigger, and leaves no error', async () => {
  t = await testEngine({ agents })
  held.resolve()
  const { run_id } = await t.run(team([act('work', 'hold', { value: 'item 0' })]))
  const texts: string[] = []
  const query = t.db.query.bind(t.db)
  const asked = spyOn(t.db, 'query').mockImplementation(((sql: string) => {
    texts.push(sql)
    return query(sql)
  }) as typeof query)
  const phases = new Phases(t.db)
  asked.mockRestore()
  const clean = texts.filter(sql => sql.startsWith('UPDATE') && sql.includes('error IS NULL'))
  expect(clean).toHaveLength(2)
  using other = openForReading(t.db.filename)
  for (const sql of clean) {
    const operations = other.query<{ opcode: string }, []>(`EXPLAIN ${sql}`).all()
    expect(operations.map(({ opcode }) => opcode)).not.toContain('Program')
  }
  // A phase whose row has an error of an earlier attempt is started and completed all the same.
  const error = JSON.stringify({ code: 'broken', message: 'once' })
  t.db.query("UPDATE phases SET state = 'pending', error = ? WHERE run_id = ?").run(error, run_id)
  const errorNow = () => phases.get(run_id, 0)!.error
  expect(phases.start(run_id, 0, 2, 1, null)).toBe(true)
  expect(errorNow()).toBeNull()
  t.db.query('UPDATE phases SET error = ? WHERE run_id = ?').run(error, run_id)
  expect(phases.end(run_id, 0, 2, 'completed', 2, {})).toBe(true)
  expect(errorNow()).toBeNull()
  expect(phases.end(run_id, 0, 2, 'completed', 3, {})).toBe(false)
})
