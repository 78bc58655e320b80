// Measures `runs/list` of a hub that has very many runs, with every filter of its page, and what a report of a daemon costs
// there. The database is made at the first time, and kept with `--database`.
//
//   bun bench/hub-lists.ts [--runs 1000000] [--database FILE|postgres://…] [--repeats 20]

import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DaemonClient } from '../lib/daemon/link/daemon-client.ts'
import { HubClient } from '../lib/daemon/link/hub-client.ts'
import { GenerateToken } from '../lib/wire/calls/auth.ts'
import { Register, Sync } from '../lib/wire/calls/daemon-link.ts'
import { ListHubRuns } from '../lib/wire/calls/hub-runs.ts'
import { AddTeam, CreateRealm, ListRealms } from '../lib/wire/calls/realms.ts'
import { CreateSession } from '../lib/wire/calls/session.ts'
import { HUB_RUN_STATES } from '../lib/wire/states.ts'
import { serve } from './server.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000000' },
    database: { type: 'string' },
    repeats: { type: 'string', default: '20' },
  },
})
const RUNS = Number(values.runs)
const REPEATS = Number(values.repeats)
/** A report has so many new runs. */
const BATCH = 100
const folder = mkdtempSync(join(tmpdir(), 'cadre-hub-lists-'))
const database = values.database ?? join(folder, 'hub.db')
const isPostgres = database.startsWith('postgres')

const hub = await serve([join(import.meta.dir, '../hub.ts'), 'serve', '--port', '0'], {
  CADRE_HOME: folder,
  CADRE_HUB_DATABASE: database,
  CADRE_ADMIN_PASSWORD: 'bench',
  CADRE_LOG_LEVEL: 'error',
})
const stranger = new HubClient(hub.url, null)
const { token } = await stranger.call(CreateSession, { username: 'admin', password: 'bench' })
const admin = new HubClient(hub.url, token)
const listed = await admin.call(ListRealms, {})
const [first] = listed.realms
const others = ['second', 'third'].map(async slug => {
  const found = listed.realms.find(realm => realm.slug === slug)
  return found ?? (await admin.call(CreateRealm, { org_id: first!.org_id, slug, name: slug }))
})
const realms = [first!.id, ...(await Promise.all(others)).map(({ id }) => id)]

/** The database by itself: a statement with the functions that differ. */
async function run(text: string): Promise<Record<string, unknown>[]> {
  if (isPostgres) {
    const sql = new Bun.SQL(database, { max: 1 })
    const rows = await sql.unsafe(text)
    await sql.close()
    return rows
  }
  using db = new Database(database)
  db.run('PRAGMA busy_timeout = 60000')
  return db.query<Record<string, unknown>, []>(text).all()
}

/**
 * Runs of three realms (90, 9 and 1 %), of forty teams of which the first has a third; one in a hundred failed, and three
 * hundred have not ended. A third are sub-runs.
 */
async function fill(): Promise<void> {
  const known = Number((await run('SELECT count(*) AS n FROM runs'))[0]!.n)
  const hex = (value: string, digits: number) =>
    isPostgres ? `lpad(to_hex(${value}), ${digits}, '0')` : `printf('%0${digits}x', ${value})`
  for (let from = known; from < RUNS; from += 100_000) {
    const to = Math.min(RUNS, from + 100_000) - 1
    const numbers = isPostgres
      ? `generate_series(${from}, ${to}) AS s(n)`
      : `(WITH RECURSIVE s(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM s WHERE n < ${to}) SELECT n FROM s) AS s`
    // A multiple of a prime mixes what belongs to a run.
    const mixed = '((n * CAST(7919 AS bigint)) % 1000003)'
    const id = (
      n: string,
    ) => `'01900000-' || ${hex(`${n} / 4096`, 4)} || '-7' || ${hex(`${n} % 4096`, 3)} || '-a000-' ||
      ${hex(`(${n} * CAST(7919 AS bigint)) % 1000003`, 12)}`
    const live = `n >= ${RUNS} - 300`
    const isSub = 'n % 3 = 2'
    await run(`INSERT INTO runs (run_id, realm_id, root_run_id, parent_run_id, parent_phase, call_path, call_depth, tree_key,
        team, version, state, inputs, outputs, attempt, created_at, started_at, completed_at, run_name, daemon_id,
        starter_kind, starter_name)
      SELECT ${id('n')}, CASE WHEN ${mixed} % 100 < 90 THEN '${realms[0]}' WHEN ${mixed} % 100 < 99 THEN '${realms[1]}' ELSE '${realms[2]}' END,
        CASE WHEN ${isSub} THEN ${id('(n - 1)')} ELSE ${id('n')} END,
        CASE WHEN ${isSub} THEN ${id('(n - 1)')} END, CASE WHEN ${isSub} THEN 'each' END,
        '["@admin/team-0"]', CASE WHEN ${isSub} THEN 1 ELSE 0 END, CASE WHEN ${isSub} THEN '/00000001' ELSE '' END,
        CASE WHEN ${mixed} % 3 = 0 THEN '@admin/team-0' WHEN ${mixed} % 2000 = 1 THEN '@other/rare'
          ELSE '@admin/team-' || (${mixed} % 38 + 1) END,
        '1.0.0', CASE WHEN ${live} AND n % 3 = 0 THEN 'awaiting_input' WHEN ${live} AND n % 3 = 1 THEN 'running'
          WHEN ${live} THEN 'queued' WHEN ${mixed} % 100 = 7 THEN 'failed' WHEN ${mixed} % 250 = 9 THEN 'cancelled' ELSE 'completed' END,
        '{"customer":"' || n || '","text":"the inputs of a run are about as long as this line is"}',
        CASE WHEN ${live} THEN NULL ELSE '{"done":true,"text":"and its outputs are hardly longer"}' END, 1,
        1700000000000 + n * CAST(60000 AS bigint), 1700000000000 + n * CAST(60000 AS bigint),
        CASE WHEN ${live} THEN NULL ELSE 1700000009000 + n * CAST(60000 AS bigint) END,
        CASE WHEN n % 2 = 0 THEN 'customer ' || n END, 'no-daemon',
        CASE WHEN ${isSub} THEN NULL WHEN ${mixed} % 5 = 0 THEN 'person' WHEN ${mixed} % 5 < 4 THEN 'schedule' ELSE 'token' END,
        CASE WHEN ${isSub} THEN NULL WHEN ${mixed} % 5 = 0 THEN 'person-' || (${mixed} % 21) WHEN ${mixed} % 5 < 4 THEN 'schedule-' || (${mixed} % 7) ELSE 'token' END
      FROM ${numbers}`)
  }
  await run('ANALYZE')
}

const begun = performance.now()
await fill()
console.log(
  `${RUNS} runs in ${isPostgres ? 'PostgreSQL' : 'SQLite'}, made in ${Math.round((performance.now() - begun) / 1_000)} s`,
)

const FILTERS: [string, object][] = [
  ['none', {}],
  ...HUB_RUN_STATES.map((state): [string, object] => [`state ${state}`, { state }]),
  ['team, a third of all', { team: '@admin/team-0' }],
  ['team, one in 3,000', { team: '@other/rare' }],
  ['team, none', { team: '@admin/none' }],
  ['team by its short name', { team: 'team-0' }],
  ['team by its short name, rare', { team: 'rare' }],
  ['started by schedules', { started_by: 'schedule' }],
  ['started by a person', { started_by: 'person:person-5' }],
  ['started by nobody known', { started_by: 'unknown' }],
  ['state and team', { state: 'failed', team: '@admin/team-0' }],
  ['state and starter', { state: 'failed', started_by: 'schedule' }],
  ['team and starter', { team: '@other/rare', started_by: 'schedule' }],
  ['search, in most', { search: 'team' }],
  ['search, in one name', { search: `customer ${RUNS - 100_000}` }],
  ['search, in none', { search: 'nowhere' }],
]

const at = (times: number[], part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!
for (const [place, where] of [
  ['one realm', { realm_id: realms[0]! }],
  ['all realms', {}],
] as const) {
  console.log(`\n${place.padEnd(32)}     p50      p95`)
  for (const [name, filter] of FILTERS) {
    const times: number[] = []
    let total = ''
    const end = performance.now() + 4_000
    for (let n = 0; n < REPEATS + 2 && (n < 2 || performance.now() < end); n++) {
      const start = performance.now()
      const found = await admin.call(ListHubRuns, { ...where, ...filter }, { timeout: 60_000 })
      if (n > 0) times.push(performance.now() - start)
      total = `${found.total}${(found as { total_more?: boolean }).total_more ? '+' : ''}`
    }
    times.sort((a, b) => a - b)
    const [p50, p95] = [at(times, 0.5), at(times, 0.95)].map(ms => `${ms.toFixed(1)} ms`.padStart(9))
    console.log(`${name.padEnd(32)}${p50}${p95}   ${total}`)
  }
}

// What the indexes cost: reports of new runs.
const { token: secret } = await admin.call(GenerateToken, { type: 'realm', name: 'bench', realm_ids: [realms[0]!] })
await admin.call(AddTeam, { realm_id: realms[0]!, team: '@admin/team-0' })
const daemon = new DaemonClient(
  hub.url,
  secret,
  () => ({}),
  () => {},
)
const { daemon_id } = await daemon.call(Register, { name: 'bench' })
const epoch = crypto.randomUUID()
const syncs: number[] = []
for (let n = 0; n < 40; n++) {
  const changes = Array.from({ length: BATCH }, (_, k) => {
    const run_id = crypto.randomUUID()
    const place = {
      root_run_id: run_id,
      parent_run_id: null,
      parent_phase: null,
      call_path: ['@admin/team-0'],
      call_depth: 0,
    }
    const what = {
      run_id,
      run_name: null,
      ...place,
      tree_key: '',
      team: '@admin/team-0',
      version: '1.0.0',
      workspace: null,
    }
    const state = { state: 'completed', reason: null, error: null, inputs: { a: 1 }, outputs: {} }
    const times = { started_at: 1_000, completed_at: 2_000 }
    return { seq: n * BATCH + k + 1, kind: 'run', run_id, attempt: 1, run: { ...what, ...state, ...times } }
  })
  const start = performance.now()
  const { rejected } = await daemon.call(Sync, { daemon_id, epoch, from_seq: n * BATCH + 1, changes })
  if (rejected.length > 0) throw new Error(JSON.stringify(rejected[0]))
  if (n >= 5) syncs.push(performance.now() - start)
}
syncs.sort((a, b) => a - b)
console.log(`\na report of ${BATCH} runs: p50 ${at(syncs, 0.5).toFixed(1)} ms, p95 ${at(syncs, 0.95).toFixed(1)} ms`)
await run(`DELETE FROM runs WHERE run_id NOT LIKE '01900000-%'`)
await hub.stop()
rmSync(folder, { recursive: true, force: true })
