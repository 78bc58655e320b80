// The engine beside its floors, in one process run. A floor is what the same durability costs with nothing around it:
// one `synchronous=FULL` transaction of bun:sqlite for each state change, or a file written, synced and renamed.
// Ratios count; the machine does not. Best of `--rounds`.
//
//   bun bench/engine.ts [--rounds 3] [--only NAME]

import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'bun'
import http from '../agents/http.ts'
import { openDatabase } from '../db/open.ts'
import { agent, Type } from '../lib/agent/cadre.ts'
import type { JsonObject } from '../lib/json.ts'
import { testEngine } from '../tests/support/engine.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, only: { type: 'string' } } })
const rounds = Number(values.rounds)
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

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

const chain = (count: number) =>
  `name: "@local/chain"\nversion: 1.0.0\nphases:\n${numbers(count)
    .map(n => `  - { name: p${n}, agent: noop, ${n ? `depends_on: [p${n - 1}], ` : ''}sources: [{ name: x }] }`)
    .join('\n')}\n`

const map = {
  'team.yml': `
name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: 16 }
`,
  'one/team.yml': chain(2),
}

const gets = {
  'team.yml': map['team.yml'],
  'one/team.yml': `
name: "@local/get"
version: 1.0.0
phases:
  - { name: get, agent: http, sources: [{ name: body.txt, url: "{{ 'URL' }}" }] }
`,
}

/** Seconds of `changes` durable changes, each in a commit of its own. */
function fullFloor(changes: number): number {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-floor-'))
  const db = openDatabase(join(folder, 'floor.db'))
  db.run(
    'CREATE TABLE phases (run TEXT, position INTEGER, state TEXT, data TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID',
  )
  const insert = db.query('INSERT INTO phases VALUES (?, ?, ?, ?)')
  const run = Bun.randomUUIDv7()
  const commit = db.transaction((n: number) => insert.run(run, n, 'completed', '{"done":true}'))
  const started = performance.now()
  for (let n = 0; n < changes; n++) commit.immediate(n)
  const seconds = (performance.now() - started) / 1_000
  db.close()
  rmSync(folder, { recursive: true, force: true })
  return seconds
}

/** Seconds of `count` files written, synced and renamed, 16 at once. */
async function fileFloor(count: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-floor-'))
  const queue = numbers(count)
  const started = performance.now()
  await Promise.all(
    numbers(16).map(async () => {
      for (let n = queue.pop(); n !== undefined; n = queue.pop()) {
        await mkdir(join(folder, String(n)))
        const handle = await open(join(folder, String(n), 'draft'), 'w')
        await handle.write('body\n')
        await handle.sync()
        await handle.close()
        await rename(join(folder, String(n), 'draft'), join(folder, String(n), 'body.txt'))
      }
    }),
  )
  const seconds = (performance.now() - started) / 1_000
  rmSync(folder, { recursive: true, force: true })
  return seconds
}

/** Seconds from the start of a run to its end; what reads and checks the team is not part of it. */
async function engine(files: string | Record<string, string>, inputs: JsonObject, runs = 1): Promise<number[]> {
  const t = await testEngine({ agents: { noop, http } })
  const start = await t.prepare(files, inputs)
  const took = await Promise.all(
    numbers(runs).map(async () => {
      const started = performance.now()
      const run = await t.engine.ended((await start()).run_id)
      if (run.state !== 'completed') throw new Error(`a run ${run.state}: ${JSON.stringify(run.error)}`)
      return (performance.now() - started) / 1_000
    }),
  )
  await t.close()
  return took.sort((a, b) => a - b)
}

const best = async (measure: () => number | Promise<number>): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) least = Math.min(least, await measure())
  return least
}

const line = (name: string, seconds: number, count: number, floor: number, about: string) =>
  console.log(
    `${name.padEnd(42)} ${`${Math.round(count / seconds)}/s`.padStart(9)} ${`${(seconds / floor).toFixed(2)} ×`.padStart(8)}  ${about} (${Math.round(count / floor)}/s)`,
  )

const programs: Record<string, () => Promise<void>> = {
  async sequential() {
    const floor = await best(() => fullFloor(1_000))
    const took = await best(async () => (await engine(chain(1_000), {})).at(-1)!)
    line('1,000 phases in a row', took, 1_000, floor, 'one FULL commit a phase')
  },
  async map() {
    const floor = await best(() => fullFloor(2_000))
    const took = await best(async () => (await engine(map, { items: numbers(1_000) })).at(-1)!)
    line('map of 1,000 sub-runs × 2 phases, 16 at once', took, 2_000, floor, 'one FULL commit a phase')
  },
  async burst() {
    const floor = await best(() => fullFloor(3_000))
    let last: number[] = []
    const took = await best(async () => {
      last = await engine(chain(3), {}, 1_000)
      return last.at(-1)!
    })
    line('1,000 runs × 3 phases at once', took, 3_000, floor, 'one FULL commit a phase')
    console.log(`  p50 ${last[499]!.toFixed(3)} s, p99 ${last[989]!.toFixed(3)} s`)
  },
  async gets() {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('body\n') })
    const floor = await best(async () => fullFloor(1_000) + (await fileFloor(1_000)))
    const files = { ...gets, 'one/team.yml': gets['one/team.yml'].replace('URL', String(server.url)) }
    const took = await best(async () => (await engine(files, { items: numbers(1_000) })).at(-1)!)
    line('1,000 GETs with an artifact each, 16 at once', took, 1_000, floor, 'FULL commits + files synced and renamed')
    await server.stop(true)
  },
  async cold() {
    const folder = mkdtempSync(join(tmpdir(), 'cadre-cold-'))
    await Bun.write(
      join(folder, 'team.yml'),
      `${chain(1).replaceAll('noop', 'exec').replace('sources: [{ name: x }]', 'commands: [{ name: t, run: "true" }]')}`,
    )
    const daemon = join(import.meta.dir, '../daemon.ts')
    const seconds = await best(async () => {
      const home = join(folder, crypto.randomUUID())
      const started = performance.now()
      await $`${process.execPath} ${daemon} --home ${home} run ${folder}`.quiet()
      return (performance.now() - started) / 1_000
    })
    console.log(
      `${'cold start to the end of a first run'.padEnd(42)} ${`${Math.round(seconds * 1_000)} ms`.padStart(9)}`,
    )
    const home = join(folder, 'idle')
    const child = Bun.spawn([process.execPath, daemon, '--home', home, 'serve', '--port', '0'], {
      stdout: 'pipe',
      stderr: 'ignore',
    })
    await child.stdout.getReader().read()
    await Bun.sleep(1_000)
    const pss = (
      await Bun.file(`/proc/${child.pid}/smaps_rollup`)
        .text()
        .catch(() => '')
    ).match(/^Pss: +(\d+)/m)
    console.log(
      `${'idle daemon'.padEnd(42)} ${pss ? `${Math.round(Number(pss[1]) / 1_024)} MiB`.padStart(9) : '        ?'}  Pss`,
    )
    child.kill()
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  },
}

for (const [name, program] of Object.entries(programs)) if (!values.only || values.only === name) await program()
