// Phases per second of the engine, beside the floor in the same process: bare bun:sqlite writing the same number of
// state changes, one `synchronous=FULL` commit each, and in groups of 16. The ratio is what counts; the machine is not.
//
//   bun bench/engine.ts [--phases 1000] [--items 1000] [--rounds 3]

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase } from '../db/open.ts'
import { agent, Type } from '../lib/agent/cadre.ts'
import { testEngine } from '../tests/support/engine.ts'

const { values } = parseArgs({
  options: {
    phases: { type: 'string', default: '1000' },
    items: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
  },
})
const phases = Number(values.phases)
const items = Number(values.items)
const rounds = Number(values.rounds)

const noop = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Does nothing, so that only the engine is measured.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    run: async () => ({ text: 'nothing', data: { done: true } }),
  },
})

const sequential = `name: "@local/sequential"\nversion: 1.0.0\nphases:\n${Array.from(
  { length: phases },
  (_, n) => `  - { name: p${n}, agent: noop, ${n ? `depends_on: [p${n - 1}], ` : ''}sources: [{ name: x }] }`,
).join('\n')}\n`

const map = {
  'team.yml': `
name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: 16 }
`,
  'one/team.yml': `
name: "@local/one"
version: 1.0.0
phases:
  - { name: a, agent: noop, sources: [{ name: x }] }
  - { name: b, agent: noop, depends_on: [a], sources: [{ name: x }] }
`,
}

/** Seconds of `count` state changes, `group` to a commit. */
function floor(count: number, group: number): number {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-floor-'))
  const db = openDatabase(join(folder, 'floor.db'))
  db.run(
    'CREATE TABLE phases (run TEXT, position INTEGER, state TEXT, data TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID',
  )
  const insert = db.query('INSERT INTO phases VALUES (?, ?, ?, ?)')
  const run = Bun.randomUUIDv7()
  const commit = db.transaction((from: number) => {
    for (let n = from; n < Math.min(count, from + group); n++) insert.run(run, n, 'completed', '{"done":true}')
  })
  const started = performance.now()
  for (let n = 0; n < count; n += group) commit.immediate(n)
  const seconds = (performance.now() - started) / 1_000
  db.close()
  rmSync(folder, { recursive: true, force: true })
  return seconds
}

const best = async (measure: () => number | Promise<number>): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) least = Math.min(least, await measure())
  return least
}

async function engine(files: string | Record<string, string>, inputs: { items: number[] } | Record<string, never>) {
  const t = await testEngine({ agents: { noop } })
  const started = performance.now()
  const run = await t.run(files, inputs)
  const seconds = (performance.now() - started) / 1_000
  if (run.state !== 'completed') throw new Error(`the run is ${run.state}: ${JSON.stringify(run.error)}`)
  await t.close()
  return seconds
}

const line = (name: string, count: number, seconds: number, full: number, grouped: number) =>
  console.log(
    `${name.padEnd(34)} ${String(Math.round(count / seconds)).padStart(8)}/s  ${(seconds / full).toFixed(2).padStart(6)} × FULL floor  ${(seconds / grouped).toFixed(2).padStart(6)} × grouped floor`,
  )

const mapPhases = items * 2
for (const [name, count, files, inputs] of [
  [`${phases} sequential phases`, phases, sequential, {}],
  [`map of ${items} sub-runs × 2 phases`, mapPhases, map, { items: Array.from({ length: items }, (_, n) => n) }],
] as const) {
  const full = await best(() => floor(count, 1))
  const grouped = await best(() => floor(count, 16))
  line(name, count, await best(() => engine(files, inputs)), full, grouped)
  console.log(`${'  floor: one FULL commit each'.padEnd(34)} ${String(Math.round(count / full)).padStart(8)}/s`)
  console.log(`${'  floor: 16 a commit'.padEnd(34)} ${String(Math.round(count / grouped)).padStart(8)}/s`)
}
