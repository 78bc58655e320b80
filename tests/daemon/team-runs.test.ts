// What a daemon says of the runs of a team: statistics, and what changed since the last run that completed.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { statsStatements } from '../../lib/run/search/counted-runs.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { insertRun, runIdAt } from '../support/listed-runs.ts'

const DAY = 86_400_000
const NOW = Date.now()
const today = Math.floor(NOW / DAY) * DAY
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})
afterAll(() => daemon.stop())

interface Made {
  at: number
  team?: string
  state?: string
  took?: number
  lived?: number | null
  below?: string
}
let made = 0
function add(runs: readonly Made[]): string[] {
  using db = new Database(join(daemon.home, 'daemon.db'))
  db.run('PRAGMA busy_timeout = 5000')
  return db
    .transaction(() =>
      runs.map(({ at, team = '@a/counted', state = 'completed', took = 0, lived = null, below = null }) => {
        const id = runIdAt(at, ++made)
        insertRun(db, { id, parent_id: below, team, state, started_at: at })
        db.query('UPDATE runs SET completed_at = completed_at + ?, lived_ms = ? WHERE id = ?').run(took, lived, id)
        return id
      }),
    )
    .immediate()
}

test('runs/stats counts the top runs of a team since a moment, day by day in UTC', async () => {
  const yesterday = today - DAY
  const [top] = add([
    // Lived time, where it is known.
    { at: yesterday, took: 50_000, lived: 100 },
    { at: yesterday + DAY - 1, took: 300 },
    { at: today, took: 200 },
    { at: today, state: 'failed', took: 7_000 },
    { at: today, state: 'cancelled', took: 8_000 },
    { at: today, state: 'running' },
    { at: today, team: '@b/counted', took: 9_000 },
    // Before the moment that is asked for.
    { at: today - 2 * DAY - 1, took: 10_000 },
  ])
  add([{ at: today, below: top!, took: 11_000 }])
  const stats = (body: object) => daemon.call('/v1/runs/stats', body)
  const since = today - 2 * DAY
  expect(await stats({ team: '@a/counted', since })).toEqual({
    ...{ runs: 6, completed: 3, failed: 1, p50_ms: 200, p95_ms: 300 },
    days: [
      { day: dayOf(today - 2 * DAY), completed: 0, failed: 0 },
      { day: dayOf(yesterday), completed: 2, failed: 0 },
      { day: dayOf(today), completed: 1, failed: 1 },
    ],
  })
  expect(await stats({ team: 'counted', since })).toMatchObject({ runs: 7, completed: 4, p95_ms: 9_000 })
  expect((await stats({ team: '@a/counted' })).days).toHaveLength(31)
  const all = await stats({ team: '@a/counted', since: 0 })
  expect([all.completed, all.days.length, all.days.at(-1).day]).toEqual([4, 366, dayOf(today)])
  expect(await stats({ team: '@a/none', since: today })).toEqual({
    ...{ runs: 0, completed: 0, failed: 0, p50_ms: null, p95_ms: null },
    days: [{ day: dayOf(today), completed: 0, failed: 0 }],
  })
})

test('an index finds the runs of the team since then', () => {
  using db = new Database(join(daemon.home, 'daemon.db'), { readonly: true })
  const plans = statsStatements(db, { team: '@a/counted', since: today }).map(({ sql, values }) =>
    db
      .query<{ detail: string }, (string | number | null)[]>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...values)
      .map(({ detail }) => detail)
      .join('; '),
  )
  expect(plans[0]).toContain('SEARCH runs USING INDEX runs_by_group (group_id=? AND state=? AND id>?)')
  expect(plans[1]).toContain('SEARCH runs USING INDEX runs_open_by_state (state=? AND <expr>=? AND id>?)')
})

const TEAM = (version: string, phases: string) => `name: "@local/told"
version: ${version}
inputs:
  - { name: a, type: number, default: 1 }
  - { name: b, type: object, default: {} }
phases: [${phases}]
`
const GATE = '{ name: ask, type: gate, commands: [{ name: c, env: { A: "{{ inputs.a }}" }, run: \'test "$A" = 1\' }] }'
const EXEC = '{ name: ask, agent: exec, commands: [{ name: c, env: { A: "{{ inputs.a }}" }, run: \'test "$A" = 1\' }] }'

test('teams/history says what differs from the last run before it that completed', async () => {
  const path = files({ 'team.yml': TEAM('1.0.0', GATE), 'other/x': '' })
  const run = async (inputs: object, more: object = {}) => {
    const { run_id } = await daemon.call('/v1/runs/start', { path, inputs, ...more })
    await daemon.ended(run_id)
    return run_id
  }
  const write = (text: string) => Bun.write(join(path, 'team.yml'), text)
  const large = { text: 'x'.repeat(5_000) }
  const ids = [await run({}), await run({ a: 2 }), await run({ a: 2, b: { x: 1 } })]
  ids.push(await run({ b: large }))
  ids.push(await run({ b: large }))
  await write(TEAM('1.0.0', `${GATE}  `))
  ids.push(await run({}, { workspace: join(path, 'other') }))
  await write(TEAM('1.1.0', EXEC))
  ids.push(await run({ b: { y: 2, z: 1 } }, { workspace: join(path, 'other') }))

  const { runs, total } = await daemon.call('/v1/teams/history', { team: '@local/told' })
  expect(total).toBe(7)
  const told = runs.toReversed()
  expect(told.map((each: { run_id: string }) => each.run_id)).toEqual(ids)
  expect(told.map((each: { changed: string[] }) => each.changed)).toEqual([
    [],
    ['inputs.a'],
    ['inputs.a', 'inputs.b'],
    ['inputs'],
    [],
    ['team', 'inputs', 'workspace'],
    ['version', 'inputs.b', 'agents'],
  ])
  // The second and the third failed.
  const good = [null, ids[0], ids[0], ids[0], ids[3], ids[4], ids[5]]
  expect(told.map((each: { compared_to: string | null }) => each.compared_to)).toEqual(good)
  const { changed, compared_to, ...record } = runs[0]
  expect(record).toEqual((await daemon.call('/v1/runs/list', { team: '@local/told', limit: 1 })).runs[0])

  // A page compares with what is before it, and begins with a run that is named.
  const one = await daemon.call('/v1/teams/history', { team: 'told', limit: 1, upto: ids[2] })
  expect([one.total, one.runs.length, one.runs[0].run_id]).toEqual([3, 1, ids[2]])
  expect([one.runs[0].changed, one.runs[0].compared_to]).toEqual([['inputs.a', 'inputs.b'], ids[0]])
})

test('the commands say the same, also without a daemon', async () => {
  const home = daemon.home
  const args = ['--home', home]
  const stats = await command(['runs', 'stats', '@a/counted', '--since', '2d', ...args], { home })
  expect(stats.stderr).toBe('')
  expect(stats.stdout).toMatch(/completed +3\n/)
  const json = await command(['runs', 'stats', '@a/counted', '--since', '2d', '--json'], { home })
  expect(JSON.parse(json.stdout)).toMatchObject({ completed: 3, failed: 1, p50_ms: 200 })
  const history = await command(['runs', 'history', 'told', '--limit', '1'], { home })
  expect(history.stdout).toContain('version, inputs.b, agents')
  await daemon.stop()
  expect(await command(['runs', 'stats', '@a/counted', '--since', '2d', '--json'], { home })).toEqual(json)
  expect(await command(['runs', 'history', 'told', '--limit', '1'], { home })).toEqual(history)
})
