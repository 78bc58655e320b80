// Measures a home of many finished runs: how long `serve` takes to start, how long each list takes and how long the main
// loop is held meanwhile, how soon the index for searches is filled, and the longest stall while old runs are deleted.
// It is slow, and no part of the gate.
//
//   bun bench/large-home.ts [--runs 1000000] [--home FOLDER] [--only start,lists,retention]
//
// With `--home` the home is kept, and taken as it is when it exists.

import type { Database } from 'bun:sqlite'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase, openForReading, openRunDatabase, readMigrations } from '../db/open.ts'
import type { RunId } from '../lib/files/run-id.ts'
import { Store } from '../lib/run/engine.ts'
import { ASKER } from './asker.ts'
import { type Server, serve } from './server.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000000' },
    home: { type: 'string' },
    only: { type: 'string', default: 'start,lists,retention' },
  },
})
const RUNS = Number(values.runs)
const only = values.only.split(',')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The runs are spread over so many days, up to now. */
const DAYS = 100
/** A top run and the sub-runs of its map. */
const TREE = 20
const TEAMS = 40
/** A list is asked so often, or for so long. */
const REPEATS = 20
const LIST_MS = 3_000
const PATIENCE_MS = 600_000
/** The index of searches forgets changes of deleted runs after their space was given back; a home keeps so many free pages. */
const FREE_PAGES = 250
const root = join(import.meta.dir, '..')
const folder = values.home ?? mkdtempSync(join(tmpdir(), 'cadre-large-home-'))
const file = join(folder, 'daemon.db')

/** Rows as a daemon leaves them behind: trees of a map with 19 sub-runs, of which one in ten fails. */
function fill(db: Database, runs: number): void {
  const trees = Math.ceil(runs / TREE)
  const begin = Date.now() - DAYS * DAY_MS
  const step = Math.floor((DAYS * DAY_MS - 3_600_000) / trees)
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
  let seed = 1
  const random = (below: number) => {
    seed = (seed * 48_271) % 0x7fffffff
    return seed % below
  }
  const idAt = (ms: number): RunId => {
    const time = hex(ms, 12)
    const rest = `${hex(random(0x1000000), 6)}${hex(random(0x1000000), 6)}`
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(random(0x1000), 3)}-a${hex(random(0x1000), 3)}-${rest}` as RunId
  }
  db.run("INSERT OR IGNORE INTO bundles (id, json) VALUES ('bench', '{}')")
  const run = db.query(
    `INSERT INTO runs (id, root_id, tree_key, parent_id, parent_position, parent_phase, item, run_name, call_path,
       call_depth, bundle_id, team_key, team, version, state, reason, error, inputs, outputs, workspace, from_path, synced,
       attempt, created_at, started_at, completed_at, settled, started_by, group_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'bench', '', ?, '1.0.0', ?, NULL, ?, ?, ?, ?, 1, 0, 1, ?, ?, ?, 1, ?, ?)`,
  )
  const phase = db.query(
    `INSERT INTO phases (run_id, position, state, attempt, failures, started_at, completed_at, error, text, data, files)
     VALUES (?, 0, ?, 1, 0, ?, ?, ?, 'done', '{"total":1}', '[]')`,
  )
  const groups = new Store(db).runGroups
  const some = db.transaction((from: number, to: number) => {
    for (let tree = from; tree < to; tree++) {
      const at = begin + tree * step
      const number = tree % TEAMS
      const top = idAt(at)
      const state = tree % 10 === 0 ? 'failed' : tree % 97 === 0 ? 'cancelled' : 'completed'
      const error = state === 'failed' ? JSON.stringify({ code: 'failed', message: `item ${tree} failed` }) : null
      const inputs = JSON.stringify({
        ticket: `TICKET-${tree}`,
        note: 'Prepare the weekly digest of the open tickets.',
      })
      const team = `@acme/digest-${number}`
      const starter = JSON.stringify(
        tree % 3 === 0 ? { kind: 'person', name: 'ops', via: 'cli' } : { kind: 'schedule', name: `nightly-${number}` },
      )
      run.run(
        top,
        top,
        '',
        null,
        null,
        null,
        null,
        null,
        JSON.stringify([team]),
        0,
        team,
        state,
        error,
        inputs,
        '{"total":19}',
        `/srv/work-${number % 5}`,
        at,
        at,
        at + 9_000,
        starter,
        groups.of({ team, parent_id: null, started_by: starter }),
      )
      phase.run(top, state, at, at + 9_000, error)
      for (let item = 0; item < TREE - 1; item++) {
        const id = idAt(at + 10 + item)
        const leaf = state === 'failed' && item % 10 === 3
        const why = leaf
          ? JSON.stringify({ code: 'vendor_error', message: `GET item ${tree * TREE + item}: 500` })
          : null
        const key = `0000${hex(item, 6)}`
        run.run(
          id,
          top,
          key,
          top,
          0,
          'each',
          item,
          `ticket-${item}`,
          JSON.stringify([team, `@acme/each-${number}`]),
          1,
          `@acme/each-${number}`,
          leaf ? 'failed' : 'completed',
          null,
          '{"id":1}',
          '{"ok":true}',
          `/srv/work-${number % 5}`,
          at + 10 + item,
          at + 10 + item,
          at + 100 + item,
          null,
          groups.of({ team: `@acme/each-${number}`, parent_id: top, started_by: null }),
        )
        phase.run(id, leaf ? 'failed' : 'completed', at + 10 + item, at + 100 + item, why)
      }
    }
  })
  for (let tree = 0; tree < trees; tree += 500) some(tree, Math.min(trees, tree + 500))
}

interface Held {
  p99: number
  slowest: number
  held: number
}

async function heldDuring({ url, pid }: Server, work: () => Promise<void>): Promise<Held> {
  const asker = Bun.spawn([process.execPath, '-e', ASKER, url, String(pid)], { stdin: 'pipe', stdout: 'pipe' })
  const reader = asker.stdout.getReader()
  const next = async () => new TextDecoder().decode((await reader.read()).value)
  await next()
  await work()
  asker.stdin.write('x')
  asker.stdin.end()
  const said = JSON.parse(await next())
  await asker.exited
  return said
}

// biome-ignore lint/suspicious/noExplicitAny: the data of two calls.
async function call(url: string, path: string, body: object): Promise<any> {
  const headers = { 'content-type': 'application/json' }
  const reply = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const said = (await reply.json()) as { ok: boolean; data: unknown; error: unknown; payload: { data: unknown } }
  if (!reply.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${JSON.stringify(said)}`)
  return said.data ?? said.payload.data
}

const ms = (value: number) => `${value.toFixed(1)} ms`.padStart(11)
const textOf = ({ p99, slowest, held }: Held) => {
  const [usual, longest, own] = [p99, slowest, held].map(each => ms(each).trim())
  return `/health meanwhile p99 ${usual}, slowest ${longest}; held at most ${own} besides waits for a processor`
}
const say = (text: string) => process.stdout.write(`${text}\n`)

function daemonOf(home: string, env: Record<string, string> = {}): Promise<Server> {
  return serve([join(root, 'daemon.ts'), '--home', home, '--port', '0'], { CADRE_KEEP_RUNS_DAYS: '100000', ...env })
}

/** The start of an empty home stands beside, because the machine affects both. */
async function starts(): Promise<void> {
  const empty = mkdtempSync(join(tmpdir(), 'cadre-empty-home-'))
  const took: Record<string, string[]> = { 'large home': [], 'empty home': [] }
  for (let round = 0; round < 4; round++) {
    for (const [name, home] of [
      ['large home', folder],
      ['empty home', empty],
    ] as const) {
      const began = performance.now()
      const server = await daemonOf(home)
      // The first start migrates the home.
      if (round > 0) took[name]!.push(ms(performance.now() - began).trim())
      await server.stop()
    }
  }
  rmSync(empty, { recursive: true, force: true })
  for (const [name, each] of Object.entries(took)) say(`start of the ${name} to the listening line: ${each.join(', ')}`)
}

const now = Date.now()
const envelope = (type: string) => ({
  ...{ type, version: 1, id: crypto.randomUUID(), timestamp: now, run_id: null, instance_id: null, payload: {} },
})
const LISTS: [name: string, path: string, body: object][] = [
  ['all', 'runs/list', {}],
  ['root_only', 'runs/list', { root_only: true }],
  ['state completed', 'runs/list', { state: 'completed' }],
  ['state failed, root_only', 'runs/list', { state: 'failed', root_only: true }],
  ['state running', 'runs/list', { state: 'running' }],
  ['state interrupted', 'runs/list', { state: 'interrupted' }],
  ['team', 'runs/list', { team: '@acme/each-7' }],
  ['team without scope, root_only', 'runs/list', { team: 'digest-7', root_only: true }],
  ['team, state cancelled', 'runs/list', { team: '@acme/digest-7', state: 'cancelled' }],
  ['unknown team', 'runs/list', { team: 'nothing' }],
  ['started by schedules', 'runs/list', { started_by: 'schedule' }],
  ['started by a schedule, failed', 'runs/list', { started_by: 'schedule:nightly-7', state: 'failed' }],
  ['started by a person, team', 'runs/list', { started_by: 'person:ops', team: 'digest-7' }],
  ['since an hour ago', 'runs/list', { since: now - 3_600_000 }],
  ['since 50 days ago', 'runs/list', { since: now - 50 * DAY_MS }],
  [
    'since 50 days, state, team, root',
    'runs/list',
    {
      since: now - 50 * DAY_MS,
      state: 'failed',
      team: '@acme/digest-30',
      root_only: true,
    },
  ],
  ['begins', 'runs/list', { begins: (now - 50 * DAY_MS).toString(16).padStart(12, '0').slice(0, 6) }],
  ['offset 9,000', 'runs/list', { offset: 9_000 }],
  ['offset 500,000', 'runs/list', { offset: 500_000 }],
  ['search: a ticket', 'runs/list', { search: `ticket-${Math.floor(RUNS / TREE / 2)}` }],
  ['search: an error of a leaf', 'runs/list', { search: `item ${Math.floor(RUNS / 400) * 200 + 3}: 500` }],
  ['search: a team', 'runs/list', { search: 'digest-7' }],
  ['search: in all top runs', 'runs/list', { search: 'weekly digest' }],
  ['search: the same, failed, root', 'runs/list', { search: 'weekly digest', state: 'failed', root_only: true }],
  [
    'search: the same, team, since',
    'runs/list',
    {
      search: 'weekly digest',
      team: 'digest-30',
      since: now - 20 * DAY_MS,
    },
  ],
  ['search: nothing', 'runs/list', { search: 'no run has this' }],
  ['search: 2 characters, few', 'runs/list', { search: 'zq' }],
  ['search: 2 characters, many', 'runs/list', { search: 'ac' }],
  ['search: 1 character', 'runs/list', { search: '7' }],
  ['workspaces/get', 'workspaces/get', envelope('workspace_list')],
]

async function lists(): Promise<void> {
  const server = await daemonOf(folder)
  for (let number = 0; number < 5; number++) {
    await call(server.url, 'workspaces/add', { path: folder, name: `work-${number}` }).catch(() => {})
  }
  const began = performance.now()
  const filling = await heldDuring(server, async () => {
    while ((await call(server.url, 'runs/list', { search: 'weekly digest' })).indexed_until !== undefined) {
      await Bun.sleep(1_000)
    }
  })
  say(`searches are complete after ${((performance.now() - began) / 1_000).toFixed(0)} s: ${textOf(filling)}`)
  say(`\n${'list'.padEnd(34)}${'p50'.padStart(11)}${'p95'.padStart(11)}   total      /health p99, slowest, held`)
  for (const [name, path, body] of LISTS) {
    const took: number[] = []
    let found: { total?: number; total_more?: boolean } = {}
    const held = await heldDuring(server, async () => {
      const until = performance.now() + LIST_MS
      for (let round = 0; round < REPEATS && performance.now() < until; round++) {
        const asked = performance.now()
        found = await call(server.url, path, body)
        took.push(performance.now() - asked)
      }
    })
    took.sort((a, b) => a - b)
    const total = found.total === undefined ? '' : `${found.total}${found.total_more ? '+' : ''}`
    const at = (part: number) => ms(took[Math.ceil(took.length * part) - 1]!)
    say(
      `${name.padEnd(34)}${at(0.5)}${at(0.95)}${total.padStart(9)} ${ms(held.p99)}${ms(held.slowest)}${ms(held.held)}`,
    )
  }
  await server.stop()
}

/** Lets an hour of life pass, before which a home deletes nothing. A daemon that was there has begun to count. */
async function liveAnHour(): Promise<void> {
  await (await daemonOf(folder)).stop()
  using db = openDatabase(file)
  db.run("UPDATE meta SET value = CAST(value AS INTEGER) + 3700000 WHERE key = 'lived'")
}

/** Deletes the runs of the first ten days, a tenth of all, and gives their space back. */
async function retention(): Promise<void> {
  await liveAnHour()
  const server = await daemonOf(folder, { CADRE_KEEP_RUNS_DAYS: String(DAYS - DAYS / 10) })
  // The home believes a time that may be as far behind as its newest run is old, and by its hour.
  const until = (Date.now() - (DAYS - DAYS / 10) * DAY_MS - 4 * HOUR_MS).toString(16).padStart(12, '0')
  const began = performance.now()
  using db = openForReading(file)
  const oldest = () =>
    db.query<{ id: string }, []>('SELECT id FROM runs ORDER BY id LIMIT 1').get()!.id.replace('-', '')
  const free = () => db.query<{ freelist_count: number }, []>('PRAGMA freelist_count').get()!.freelist_count
  const held = await heldDuring(server, async () => {
    while ((oldest() < until || free() > FREE_PAGES) && performance.now() - began < PATIENCE_MS) await Bun.sleep(500)
  })
  const took = ((performance.now() - began) / 1_000).toFixed(0)
  const state = oldest() < until ? 'not over after' : 'took'
  say(`retention of a tenth of the runs ${state} ${took} s: ${textOf(held)}`)
  await server.stop()
}

try {
  if (!existsSync(file)) {
    using db = openRunDatabase(file, await readMigrations(join(root, 'db/daemon/migrations')))
    db.run('PRAGMA synchronous = OFF')
    fill(db, RUNS)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  say(`${RUNS.toLocaleString('en')} runs, database of ${(statSync(file).size / 1e6).toFixed(0)} MB`)
  if (only.includes('start')) await starts()
  if (only.includes('lists')) await lists()
  if (only.includes('retention')) await retention()
} finally {
  if (!values.home) rmSync(folder, { recursive: true, force: true })
}
