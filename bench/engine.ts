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
import type { JsonObject } from '../lib/json.ts'
import { testEngine } from '../tests/support/engine.ts'
import noop from './agents/noop.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, only: { type: 'string' } } })
const rounds = Number(values.rounds)
const DAEMON = join(import.meta.dir, '../daemon.ts')
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

const chain = (count: number) =>
  `name: "@local/chain"\nversion: 1.0.0\nphases:\n${numbers(count)
    .map(n => `  - { name: p${n}, agent: noop, ${n ? `depends_on: [p${n - 1}], ` : ''}sources: [{ name: x }] }`)
    .join('\n')}\n`

/** The same with commands that do nothing. */
const commands = (count: number) =>
  chain(count)
    .replaceAll('agent: noop', 'agent: exec')
    .replaceAll('sources: [{ name: x }]', 'commands: [{ name: t, run: "true" }]')

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
async function engine(files: string | Record<string, string>, inputs: JsonObject): Promise<number> {
  const t = await testEngine({ agents: { noop, http } })
  const start = await t.prepare(files, inputs)
  const started = performance.now()
  const run = await t.engine.ended((await start()).run_id)
  const seconds = (performance.now() - started) / 1_000
  if (run.state !== 'completed') throw new Error(`a run ${run.state}: ${JSON.stringify(run.error)}`)
  await t.close()
  return seconds
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

/** A daemon on `home`, and the milliseconds until it takes requests. */
async function serve(home: string) {
  const started = performance.now()
  const child = Bun.spawn([process.execPath, DAEMON, '--home', home, 'serve', '--port', '0'], {
    env: { ...process.env, CADRE_AGENTS: join(import.meta.dir, 'agents') },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const { value } = await child.stdout.getReader().read()
  const url = new TextDecoder().decode(value).trim().split(' ').at(-1)!
  const call = async (path: string, body: object) => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await reply.json()) as {
      data: { run_id: string; state: string; runs: { completed_at: number }[]; total: number }
    }
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    await child.exited
  }
  return { pid: child.pid, call, stop, ms: performance.now() - started }
}

/** MiB of a process, as the kernel counts them; Linux only. */
async function memory(pid: number, file: string, field: string): Promise<number | string> {
  const text = await Bun.file(`/proc/${pid}/${file}`)
    .text()
    .catch(() => '')
  const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)
  return found ? Math.round(Number(found[1]) / 1_024) : '?'
}

const told = (name: string, value: string) => console.log(`${name.padEnd(46)} ${value}`)

/** Columns of a run that differ between its copies, as SQL. */
const COPIED: Record<string, string> = {
  id: "id || '-' || n",
  tree_key: "substr(tree_key, 1, 3) || printf('%06d', n)",
  item: 'n',
}

const programs: Record<string, () => Promise<void>> = {
  async sequential() {
    const floor = await best(() => fullFloor(1_000))
    const took = await best(() => engine(chain(1_000), {}))
    line('1,000 phases in a row', took, 1_000, floor, 'one FULL commit a phase')
  },
  async map() {
    const floor = await best(() => fullFloor(2_000))
    const took = await best(() => engine(map, { items: numbers(1_000) }))
    line('map of 1,000 sub-runs × 2 phases, 16 at once', took, 2_000, floor, 'one FULL commit a phase')
  },
  async burst() {
    const floor = await best(() => fullFloor(3_000))
    const [home, folder] = [mkdtempSync(join(tmpdir(), 'cadre-burst-')), mkdtempSync(join(tmpdir(), 'cadre-burst-'))]
    await Bun.write(join(folder, 'team.yml'), chain(3))
    const daemon = await serve(home)
    let done = 0
    let last: number[] = []
    const took = await best(async () => {
      const begun = Date.now()
      await Promise.all(numbers(1_000).map(() => daemon.call('/v1/runs/start', { path: folder })))
      done += 1_000
      const completed = (page: object) => daemon.call('/v1/runs/list', { state: 'completed', ...page })
      while ((await completed({ limit: 1 })).data.total < done) await Bun.sleep(5)
      const pages = await Promise.all(numbers(10).map(n => completed({ limit: 100, offset: 100 * n })))
      last = pages
        .flatMap(({ data }) => data.runs.map(({ completed_at }) => completed_at - begun))
        .sort((a, b) => a - b)
      return last.at(-1)! / 1_000
    })
    await daemon.stop()
    for (const path of [home, folder]) rmSync(path, { recursive: true, force: true })
    line('1,000 runs × 3 phases at once over HTTP', took, 3_000, floor, 'one FULL commit a phase')
    console.log(`  p50 ${last[499]} ms, p99 ${last[989]} ms from the first request`)
  },
  async gets() {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('body\n') })
    const floor = await best(async () => fullFloor(1_000) + (await fileFloor(1_000)))
    const files = { ...gets, 'one/team.yml': gets['one/team.yml'].replace('URL', String(server.url)) }
    const took = await best(() => engine(files, { items: numbers(1_000) }))
    line('1,000 GETs with an artifact each, 16 at once', took, 1_000, floor, 'FULL commits + files synced and renamed')
    await server.stop(true)
  },
  async cold() {
    const folder = mkdtempSync(join(tmpdir(), 'cadre-cold-'))
    await Bun.write(join(folder, 'team.yml'), commands(1))
    const seconds = await best(async () => {
      const home = join(folder, crypto.randomUUID())
      const started = performance.now()
      await $`${process.execPath} ${DAEMON} --home ${home} run ${folder}`.quiet()
      return (performance.now() - started) / 1_000
    })
    told('cold start to the end of a first run', `${Math.round(seconds * 1_000)} ms`)
    const idle = await serve(join(folder, 'idle'))
    await Bun.sleep(1_000)
    told('idle daemon', `${await memory(idle.pid, 'smaps_rollup', 'Pss')} MiB`)
    await idle.stop()
    rmSync(folder, { recursive: true, force: true })
  },
  async tree() {
    const home = mkdtempSync(join(tmpdir(), 'cadre-tree-'))
    const t = await testEngine({ agents: { noop }, home })
    const { run_id } = await t.run(map, { items: [0] })
    const { db } = t.engine.store
    const columns = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('runs')").all()
    db.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 99999)
      INSERT INTO runs SELECT ${columns.map(({ name }) => COPIED[name] ?? name).join(', ')} FROM runs, n
      WHERE parent_id IS NOT NULL`)
    await t.close()
    const daemon = await serve(home)
    told('start-up with 100,000 finished runs', `${Math.round(daemon.ms)} ms`)
    const started = performance.now()
    const { data } = await daemon.call('/v1/runs/tree', { run_id })
    const took = Math.round(performance.now() - started)
    told(`tree of ${data.runs.length} runs`, `${took} ms, peak ${await memory(daemon.pid, 'status', 'VmHWM')} MiB`)
    await daemon.stop()
    rmSync(home, { recursive: true, force: true })
  },
  async kill() {
    const [home, folder] = [mkdtempSync(join(tmpdir(), 'cadre-kill-')), mkdtempSync(join(tmpdir(), 'cadre-kill-'))]
    await Bun.write(join(folder, 'team.yml'), map['team.yml'])
    await Bun.write(join(folder, 'one/team.yml'), commands(2))
    const first = await serve(home)
    const { data } = await first.call('/v1/runs/start', { path: folder, inputs: { items: numbers(200) } })
    await Bun.sleep(400)
    await first.stop('SIGKILL')
    const started = performance.now()
    const second = await serve(home)
    while ((await second.call('/v1/runs/get', { run_id: data.run_id })).data.state !== 'completed') await Bun.sleep(5)
    told('kill -9 in a map of 200 × 2 commands, to done', `${Math.round(performance.now() - started)} ms`)
    await second.stop()
    for (const path of [home, folder]) rmSync(path, { recursive: true, force: true })
  },
}

for (const [name, program] of Object.entries(programs)) if (!values.only || values.only === name) await program()
