// Measures the engine against floors in the same run. A floor is the cost of the same durability without an engine: one
// `synchronous=FULL` transaction of bun:sqlite for each state change, or a file that is written, synced and renamed.
// The ratios matter, because the machine affects both sides. Throughput is the best of `--rounds`, with floor and
// engine in turn; times that a person waits for are medians. Every line ends with its goal, and with MISSED if the goal
// was not reached.
//
//   bun bench/engine.ts [--rounds 5] [--only NAME,NAME]

import type { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import http from '../agents/http.ts'
import { openDatabase } from '../db/open.ts'
import { compile } from '../deploy/build.ts'
import type { JsonObject } from '../lib/json.ts'
import { testEngine } from '../tests/support/engine.ts'
import noop from './agents/noop.ts'
import wait from './agents/wait.ts'
import { completed, FROM_SOURCE, memory, serve } from './daemon.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, only: { type: 'string' } } })
const rounds = Number(values.rounds)
const only = values.only?.split(',')
const WAIT_MS = 50
/** After this, a daemon without work has given back what it does not need. */
const IDLE_MS = 20_000
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

const folders: string[] = []
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/**
 * A folder that is removed at the end of the program and not before: ext4 gives the number of a removed file to no other
 * one for some seconds, and looks at all such numbers, one by one, whenever it makes a file (measured: 0.5 ms instead of
 * 0.03 ms after 5,000 were removed).
 */
function temporary(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `cadre-${name}-`))
  folders.push(folder)
  return folder
}

const chain = (count: number) =>
  `name: "@local/chain"\nversion: 1.0.0\nphases:\n${numbers(count)
    .map(n => `  - { name: p${n}, agent: noop, ${n ? `depends_on: [p${n - 1}], ` : ''}sources: [{ name: x }] }`)
    .join('\n')}\n`

/** The same team with commands that do nothing. */
const commands = (count: number) =>
  chain(count)
    .replaceAll('agent: noop', 'agent: exec')
    .replaceAll('sources: [{ name: x }]', 'commands: [{ name: t, run: "true" }]')

const mapOf = (team: string, concurrency = 16) => ({
  'team.yml': `
name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: ${concurrency} }
`,
  'one/team.yml': team,
})

const onePhase = (phase: string) => `name: "@local/one"\nversion: 1.0.0\nphases: [${phase}]\n`

const waiting = onePhase(`{ name: wait, agent: wait, sources: [{ name: x, ms: ${WAIT_MS} }] }`)

/** Seconds for `changes` durable changes, each in its own commit. */
function fullFloor(changes: number): number {
  const folder = temporary('floor')
  const db = openDatabase(join(folder, 'floor.db'))
  db.run(
    'CREATE TABLE phases (run TEXT, position INTEGER, state TEXT, data TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID',
  )
  const insert = db.query('INSERT INTO phases VALUES (?, ?, ?, ?)')
  const run = Bun.randomUUIDv7()
  const commit = db.transaction((n: number) => insert.run(run, n, 'completed', '{"done":true}'))
  const started = performance.now()
  for (let n = 0; n < changes; n++) commit.immediate(n)
  const seconds = secondsSince(started)
  db.close()
  return seconds
}

/** Seconds to write, sync and rename `count` files, each in its own folder, 16 at once. */
async function fileFloor(count: number): Promise<number> {
  const folder = temporary('floor')
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
  return secondsSince(started)
}

const secondsSince = (started: number) => (performance.now() - started) / 1_000

/** How large the database of the last measurement became, without its log. */
let databaseBytes = 0

/** Seconds from the start of a run to its end, without the time to read and check the team. */
async function engine(files: string | Record<string, string>, inputs: JsonObject): Promise<number> {
  const t = await testEngine({ agents: { noop, http }, home: temporary('engine'), grown: true })
  const empty = bytesOf(t.db)
  const start = await t.prepare(files, inputs)
  const started = performance.now()
  const run = await t.engine.ended((await start()).run_id)
  const seconds = secondsSince(started)
  completed(run)
  databaseBytes = bytesOf(t.db) - empty
  await t.close()
  return seconds
}

function bytesOf(db: Database): number {
  const { bytes } = db
    .query<{ bytes: number }, []>('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
    .get()!
  return bytes
}

interface Measured {
  floor: number
  took: number
}

/** The best times of floor and engine, measured in turn. */
async function beside(floor: () => number | Promise<number>, measure: () => Promise<number>): Promise<Measured> {
  const best = { floor: Number.POSITIVE_INFINITY, took: Number.POSITIVE_INFINITY }
  for (let round = 0; round < rounds; round++) {
    best.floor = Math.min(best.floor, await floor())
    best.took = Math.min(best.took, await measure())
  }
  return best
}

/** The median of at least nine measurements, or of three if one takes seconds. */
async function median(measure: () => Promise<number>, times = Math.max(9, rounds)): Promise<number> {
  const all: number[] = []
  for (let n = 0; n < times; n++) all.push(await measure())
  return all.toSorted((a, b) => a - b)[times >> 1]!
}

function told(name: string, value: string, about = '', goal?: { text: string; met: boolean }): void {
  const end = goal ? `goal ${goal.text}${goal.met ? '' : '  MISSED'}` : ''
  console.log(`${name.padEnd(48)} ${value.padStart(10)}  ${about.padEnd(44)} ${end}`.trimEnd())
}

/** Prints a throughput and its ratio to the floor. */
function ratio(name: string, count: number, { floor, took }: Measured, goal: number): void {
  const about = `${Math.round(count / took)}/s; floor ${Math.round(count / floor)}/s`
  told(name, `${(took / floor).toFixed(2)} ×`, about, { text: `≤ ${goal} ×`, met: took / floor <= goal })
}

function size(name: string, value: number, unit: string, goal: number, about = ''): void {
  const shown = unit === 'MiB' ? Math.round(value) : value.toFixed(1)
  told(name, `${shown} ${unit}`, about, { text: `≤ ${goal} ${unit}`, met: value <= goal })
}

function time(name: string, ms: number, goal: number, about = ''): void {
  told(name, `${Math.round(ms)} ms`, about, { text: `< ${goal} ms`, met: ms < goal })
}

/** The longest time in milliseconds during which `work` blocked the event loop. */
async function largestGap(work: () => Promise<unknown>): Promise<number> {
  let last = performance.now()
  let largest = 0
  const step = () => {
    const now = performance.now()
    largest = Math.max(largest, now - last)
    last = now
  }
  const timer = setInterval(step, 1)
  await work()
  step()
  clearInterval(timer)
  return largest
}

/** How long a run of one phase waits while a map occupies all `slots`, measured in durations of the map's phases. */
async function waitBeside(slots: number): Promise<number> {
  const t = await testEngine({ agents: { wait }, home: temporary('engine'), slots })
  const start = await t.prepare(mapOf(waiting, slots), { items: numbers(slots * 30) })
  const second = await t.prepare(waiting, {})
  const map = await start()
  let going = true
  const end = t.engine.ended(map.run_id).then(() => {
    going = false
  })
  let worst = 0
  for (let n = 0; n < 5 && going; n++) {
    // A random delay, so that the runs are not in step with the phases of the map.
    do await Bun.sleep(WAIT_MS * (1 + Math.random()))
    while (going && t.engine.load.free > 0)
    const asked = performance.now()
    completed(await t.engine.ended((await second()).run_id))
    worst = Math.max(worst, (performance.now() - asked - WAIT_MS) / WAIT_MS)
  }
  if (going) await t.engine.cancel(map.run_id)
  await end
  await t.close()
  return worst
}

/** The columns that differ between copies of a run, as SQL. */
const COPIED: Record<string, string> = {
  id: "id || '-' || n",
  tree_key: "substr(tree_key, 1, 3) || printf('%06d', n)",
  item: 'n',
}

const programs: Record<string, () => Promise<void>> = {
  async sequential() {
    const measured = await beside(
      () => fullFloor(1_000),
      () => engine(chain(1_000), {}),
    )
    ratio('1,000 phases in a row', 1_000, measured, 1.35)
  },
  async map() {
    const run = () => engine(mapOf(chain(2)), { items: numbers(1_000) })
    const measured = await beside(() => fullFloor(2_000), run)
    ratio('map of 1,000 sub-runs × 2 phases, 16 at once', 2_000, measured, 0.3)
    const gap = await largestGap(run)
    time('  largest gap of the event loop during the map', gap, 100)
  },
  async burst() {
    const [home, folder] = [temporary('burst'), temporary('burst')]
    await Bun.write(join(folder, 'team.yml'), chain(3))
    const daemon = await serve(home)
    let done = 0
    let last: number[] = []
    const measured = await beside(
      () => fullFloor(3_000),
      async () => {
        const begun = Date.now()
        await Promise.all(numbers(1_000).map(() => daemon.call('/v1/runs/start', { path: folder })))
        done += 1_000
        const list = (page: object) => daemon.call('/v1/runs/list', { state: 'completed', ...page })
        // The rows tell when the runs ended, so nothing depends on how often this asks, except what it costs the daemon.
        while ((await list({ limit: 1 })).data.total < done) await Bun.sleep(25)
        const pages = await Promise.all(numbers(10).map(n => list({ limit: 100, offset: 100 * n })))
        last = pages
          .flatMap(({ data }) => data.runs.map(({ completed_at }) => completed_at - begun))
          .sort((a, b) => a - b)
        return last.at(-1)! / 1_000
      },
    )
    await daemon.stop()
    ratio('1,000 runs × 3 phases at once over HTTP', 3_000, measured, 0.35)
    told('  from the first request to the end of a run', `${last[499]} ms`, `p99 ${last[989]} ms`)
  },
  async gets() {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('body\n') })
    const get = `{ name: get, agent: http, sources: [{ name: body.txt, url: "{{ '${server.url}' }}" }] }`
    const measured = await beside(
      async () => fullFloor(1_000) + (await fileFloor(1_000)),
      () => engine(mapOf(onePhase(get)), { items: numbers(1_000) }),
    )
    ratio('1,000 GETs with an artifact each, 16 at once', 1_000, measured, 1)
    size('  database a sub-run', databaseBytes / 1_024 / 1_000, 'KiB', 3)
    await server.stop(true)
  },
  async kill() {
    const folder = temporary('kill')
    for (const [path, text] of Object.entries(mapOf(commands(2)))) await Bun.write(join(folder, path), text)
    const ms = await median(async () => {
      const home = temporary('kill')
      const first = await serve(home)
      const { data } = await first.call('/v1/runs/start', { path: folder, inputs: { items: numbers(200) } })
      await Bun.sleep(400)
      await first.stop('SIGKILL')
      const started = performance.now()
      const second = await serve(home)
      await second.ended(data.run_id)
      const took = performance.now() - started
      await second.stop()
      return took
    }, 3)
    time('kill -9 in a map of 200 × 2 commands, to done', ms, 1_000)
  },
  async cold() {
    const folder = temporary('cold')
    await Bun.write(join(folder, 'team.yml'), commands(1))
    const home = () => join(folder, crypto.randomUUID())
    // Tells how fast the machine starts programs, on which the two times depend.
    const empty = await median(async () => {
      const started = performance.now()
      await Bun.spawn([process.execPath, '-e', '0'], { stdout: 'ignore', stderr: 'ignore' }).exited
      return performance.now() - started
    })
    const floor = `floor ${empty.toFixed(1)} ms (a process that does nothing)`
    const compiled = join(folder, 'cadre')
    await compile(compiled)
    const programs = { 'from its source': FROM_SOURCE, compiled: [compiled] }
    const goals = { 'from its source': 160, compiled: 80 }
    for (const [form, program] of Object.entries(programs)) {
      const served = await median(async () => {
        const started = performance.now()
        const daemon = await serve(home(), program)
        await daemon.ended((await daemon.call('/v1/runs/start', { path: folder })).data.run_id)
        const took = performance.now() - started
        await daemon.stop()
        return took
      })
      time(`cold daemon to its first run done, ${form}`, served, 250, floor)
      const alone = await median(async () => {
        const started = performance.now()
        const child = Bun.spawn([...program, '--home', home(), 'run', folder], { stdout: 'ignore', stderr: 'ignore' })
        if ((await child.exited) !== 0) throw new Error('a run of its own failed')
        return performance.now() - started
      })
      time(`cold \`run\` to its exit, ${form}`, alone, goals[form as keyof typeof goals], floor)
    }
  },
  async fairness() {
    for (const slots of [4, 64]) {
      const waited = await waitBeside(slots)
      const goal = { text: '≤ 2 phases', met: waited <= 2 }
      told(
        `wait of a second run beside a map, ${slots} slots`,
        waited.toFixed(1),
        'phases of 50 ms; the worst of 5',
        goal,
      )
    }
  },
  async idle() {
    const home = temporary('idle')
    const folder = temporary('idle')
    await Bun.write(join(folder, 'team.yml'), chain(3))
    const daemon = await serve(home)
    const tell = async (name: string, goal: number) => {
      const [all, anonymous] = [await memory(daemon.pid, 'VmRSS'), await memory(daemon.pid, 'RssAnon')]
      size(name, all, 'MiB', goal, `of which ${Math.round(anonymous)} are anonymous`)
    }
    await Bun.sleep(IDLE_MS)
    await tell('idle daemon', 60)
    for (let done = 0; done < 10_000; ) {
      await Promise.all(numbers(500).map(() => daemon.call('/v1/runs/start', { path: folder })))
      done += 500
      while ((await daemon.call('/v1/runs/list', { state: 'completed', limit: 1 })).data.total < done)
        await Bun.sleep(25)
    }
    await Bun.sleep(IDLE_MS)
    await tell('  after 10,000 runs', 120)
    await daemon.stop()
  },
  async tree() {
    const home = temporary('tree')
    const t = await testEngine({ agents: { noop }, home })
    const { run_id } = await t.run(mapOf(chain(2)), { items: [0] })
    await t.close()
    const db = openDatabase(join(home, 'daemon.db'))
    const columns = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('runs')").all()
    db.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 99999)
      INSERT INTO runs SELECT ${columns.map(({ name }) => COPIED[name] ?? name).join(', ')} FROM runs, n
      WHERE parent_id IS NOT NULL`)
    db.close()
    const daemon = await serve(home)
    told('start-up with 100,000 finished runs', `${Math.round(daemon.ms)} ms`)
    const started = performance.now()
    const { data } = await daemon.call('/v1/runs/tree', { run_id })
    const took = Math.round(performance.now() - started)
    told(`tree of ${data.runs.length} runs`, `${took} ms`, `peak ${Math.round(await memory(daemon.pid, 'VmHWM'))} MiB`)
    await daemon.stop()
  },
}

for (const [name, program] of Object.entries(programs)) if (!only || only.includes(name)) await program()
