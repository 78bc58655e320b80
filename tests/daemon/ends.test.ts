// After the end of a run: why, resume, delete; and before its start: plan. Metrics meanwhile.

import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { forgetAges } from '../support/aged-home.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { HELLO, NESTED, SLEEPS } from './teams.ts'

const PICKY = {
  'team.yml': `name: "@local/picky"
version: 1.0.0
phases:
  - { name: before, agent: exec, commands: [{ name: c, run: "echo x >> before" }] }
  - { name: below, type: team, depends_on: [before], team: ./below }
  - { name: after, agent: exec, depends_on: [below], commands: [{ name: c, run: "true" }] }
`,
  'below/team.yml': `name: "@local/below"
version: 1.0.0
phases: [{ name: needs, agent: exec, commands: [{ name: c, run: "cat needed" }] }]
`,
}

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

async function run(path: string): Promise<string> {
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  return run_id
}

test('a failed run explains itself, and resume repeats only what did not complete', async () => {
  const path = files(PICKY)
  const runId = await run(path)
  const { text, chain, cancelled } = await daemon.call('/v1/runs/why', { run_id: runId })
  expect(text).toContain('needed')
  expect(chain.map((step: { phase: string }) => step.phase)).toEqual(['below', 'needs'])
  expect(cancelled).toEqual([{ run_id: runId, phase: 'after', state: 'skipped' }])

  writeFileSync(join(path, 'needed'), '')
  const resumed = await daemon.call('/v1/runs/resume', { run_id: runId })
  expect(resumed).toMatchObject({ run_id: runId, attempt: 2, repeats: ['below', 'after'] })
  expect(await daemon.ended(runId)).toMatchObject({ state: 'completed', attempt: 2 })
  expect(await Bun.file(join(path, 'before')).text()).toBe('x\n')
  expect((await daemon.post('/v1/runs/resume', { run_id: runId })).body.error.code).toBe('invalid_state')
  const unknown = await daemon.post('/v1/runs/resume', { run_id: runId, from_phase: 'none' })
  expect([unknown.status, unknown.body.error.details[0].path]).toEqual([400, '/from_phase'])
})

test('delete takes an ended tree, whole, with its files', async () => {
  const runId = await run(files({ 'team.yml': HELLO }))
  const state = join(daemon.home, 'runs', runId)
  expect(existsSync(state)).toBe(true)
  expect((await daemon.call('/v1/runs/delete', { run_id: runId })).run_id).toBe(runId)
  expect(existsSync(state)).toBe(false)
  expect((await daemon.post('/v1/runs/get', { run_id: runId })).status).toBe(404)

  const top = await run(files(NESTED))
  const { runs } = await daemon.call('/v1/runs/tree', { run_id: top })
  expect((await daemon.post('/v1/runs/delete', { run_id: runs[1].run_id })).body.error.code).toBe('invalid_state')
  await daemon.call('/v1/runs/delete', { run_id: top })
  for (const { run_id } of runs) expect((await daemon.post('/v1/runs/get', { run_id })).status).toBe(404)

  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': SLEEPS }) })
  expect((await daemon.post('/v1/runs/delete', { run_id })).body.error.code).toBe('invalid_state')
  await daemon.call('/v1/runs/cancel', { run_id })
})

test('runs older than is kept are deleted at the next start', async () => {
  const home = folder()
  const path = files({ 'team.yml': HELLO })
  for (let times = 0; times < 2; times++) await command(['run', path], { home })
  const db = openDatabase(join(home, 'daemon.db'))
  const [old, young] = db.query<{ id: string }, []>('SELECT id FROM runs ORDER BY id').all()
  db.query('UPDATE runs SET completed_at = ? WHERE id = ?').run(Date.now() - 2 * 86_400_000, old!.id)
  db.close()
  forgetAges(home)
  const keeper = await spawnDaemon({ home, env: { CADRE_KEEP_RUNS_DAYS: '1' } })
  // Files go first, rows last.
  while ((await keeper.call('/v1/runs/list')).total > 1) await Bun.sleep(10)
  expect(existsSync(join(home, 'runs', old!.id))).toBe(false)
  const { runs } = await keeper.call('/v1/runs/list')
  expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual([young!.id])
})

test('ended runs beyond the limit of space go, the oldest first, and the disk has it back', async () => {
  const big = `name: "@local/big"
version: 1.0.0
inputs: [{ name: sleep, type: number, default: 0 }]
phases:
  - name: much
    agent: exec
    commands:
      - name: c
        env: { SLEEP: "{{ inputs.sleep }}" }
        run: |
          head -c 6000000 /dev/zero > "$CADRE_OUT/big"
          { printf '"'; head -c 900000 /dev/zero | tr '\\0' x; printf '"'; } > "$CADRE_RESULT"
          touch "$SLEEP"
          sleep "$SLEEP"
`
  const path = files({ 'team.yml': big })
  const keeper = await spawnDaemon({ env: { CADRE_KEEP_RUNS_GB: '0.016' } })
  const start = (inputs = {}) => keeper.call<{ run_id: string }>('/v1/runs/start', { path, inputs })
  const held = async () => {
    const { runs } = await keeper.call('/v1/runs/list')
    return runs.map((run: { run_id: string }) => run.run_id).sort()
  }
  const alive = await start({ sleep: 300 })
  while (!existsSync(join(path, '300'))) await Bun.sleep(20)
  const ids: string[] = []
  for (let n = 0; n < 4; n++) {
    const { run_id } = await start()
    await keeper.ended(run_id)
    ids.push(run_id)
  }
  const left = [alive.run_id, ...ids.slice(2)].sort()
  while ((await held()).length > left.length) await Bun.sleep(50)
  expect(await held()).toEqual(left)
  expect(readdirSync(join(keeper.home, 'runs')).sort()).toEqual(left)
  const database = () =>
    ['', '-wal'].reduce((bytes, end) => bytes + statSync(join(keeper.home, `daemon.db${end}`)).size, 0)
  while (database() > 2_500_000) await Bun.sleep(50)
  await keeper.call('/v1/runs/cancel', { run_id: alive.run_id })
  await keeper.stop()

  // What was there before the start is measured, too.
  const again = await spawnDaemon({ home: keeper.home, env: { CADRE_KEEP_RUNS_GB: '0.003' } })
  while ((await again.call('/v1/runs/list')).total > 0) await Bun.sleep(50)
  await again.stop()
  expect(readdirSync(join(keeper.home, 'runs'))).toEqual([])
  const wrong = await command(['serve'], { home: folder(), env: { CADRE_KEEP_RUNS_GB: 'much' } })
  expect([wrong.code, wrong.stderr.includes('CADRE_KEEP_RUNS_GB: expected a number')]).toEqual([2, true])
})

describe('plan', () => {
  const PUSH = {
    'team.yml': `name: "@local/push"
version: 1.0.0
inputs: [{ name: to, type: string, required: true }]
phases:
  - { name: below, type: team, team: ./below, inputs: { to: "{{ inputs.to }}" } }
`,
    'below/team.yml': `name: "@local/below"
version: 1.0.0
inputs: [{ name: to, type: string, required: true }]
phases:
  - { name: fetch, agent: http, sources: [{ name: page, url: "https://pages.example/a" }] }
  - name: send
    agent: http
    depends_on: [fetch]
    when: phases.fetch.data.bytes > 0
    target_entries: [{ name: post, url: "https://sink.example/b", file: files/fetch/page }]
`,
  }

  test('shows every depth, what is missing and what would be written, and starts nothing', async () => {
    const path = files(PUSH)
    const before = (await daemon.call('/v1/runs/list')).total
    const plan = await daemon.call('/v1/teams/plan', { path })
    expect(plan.missing).toMatchObject([{ path: '/inputs/to' }])
    expect(plan.team.phases[0].below.phases).toMatchObject([
      { name: 'fetch', agent: 'http' },
      { name: 'send', depends_on: ['fetch'], when: 'phases.fetch.data.bytes > 0' },
    ])
    expect(plan.writes).toEqual([
      {
        phase: ['below', 'send'],
        agent: 'http',
        action: null,
        effect: 'once',
        to: 'https://sink.example/b',
        credentials: [],
      },
    ])
    expect((await daemon.call('/v1/runs/list')).total).toBe(before)
    const missing = await command(['plan', path], { home: daemon.home })
    expect(missing.code).toBe(2)
    const shown = await command(['plan', path, '-i', 'to=x'], { home: daemon.home })
    expect([shown.code, shown.stdout.includes('below/send')]).toEqual([0, true])
  })

  test('shows what is asked of which address, and what listeners tell, without known secrets', async () => {
    const home = folder()
    const literal = 'canary-of-the-plan'
    writeFileSync(join(home, 'settings.yml'), `secrets: { page: ${literal} }\n`, { mode: 0o600 })
    const path = files({
      'team.yml': `name: "@local/asks"
version: 1.0.0
inputs: [{ name: id, type: string, default: a }]
phases:
  - name: fetch
    agent: http
    sources:
      - { name: page, url: "https://pages.example/{{ inputs.id }}?key={{ secrets.page }}" }
      - { name: count, url: "https://pages.example/count/${literal}", method: HEAD }
  - { name: send, agent: http, depends_on: [fetch], target_entries: [{ name: post, url: "https://sink.example/b", body: x }] }
  - { name: tell, agent: chat, notify: { on_fail: {}, on_complete: { message: done } } }
`,
    })
    const shown = await command(['plan', path, '--json'], { home })
    const { team } = JSON.parse(shown.stdout)
    expect(team.phases.map(({ requests }: { requests: object }) => requests)).toEqual([
      [
        { name: 'page', method: 'GET', url: 'https://pages.example/{{ inputs.id }}?key={{ secrets.page }}' },
        { name: 'count', method: 'HEAD', url: 'https://pages.example/count/***' },
      ],
      [{ name: 'post', method: 'POST', url: 'https://sink.example/b' }],
    ])
    expect(team.listeners).toEqual([{ name: 'tell', agent: 'chat', events: ['on_fail', 'on_complete'] }])
    const { stdout } = await command(['plan', path], { home })
    expect(stdout).toMatch(
      /\n {2}fetch +http +GET https:\/\/pages\.example\/\{\{ inputs\.id \}\}\?key=\{\{ secrets\.page \}\}; HEAD /,
    )
    expect(stdout).toMatch(/\n {2}send +http +after fetch; POST https:\/\/sink\.example\/b\n/)
    expect(stdout).toMatch(/\n {2}tell +chat +reports on_fail, on_complete\n/)
    expect(shown.stdout + stdout).not.toContain(literal)
  }, 30_000)

  test('a team that calls itself ends', async () => {
    const path = files({
      'team.yml': `name: "@local/self"
version: 1.0.0
phases: [{ name: again, type: team, team: ./ }]
`,
    })
    const { team } = await daemon.call('/v1/teams/plan', { path })
    expect(team.phases[0].below).toEqual({ name: '@local/self', version: '1.0.0', recursive: true, phases: [] })
    rmSync(path, { recursive: true })
  })
})

test('metrics count runs by state', async () => {
  const reply = await fetch(`${daemon.url}/metrics`)
  expect(reply.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  const { total } = await daemon.call('/v1/runs/list', { state: 'completed' })
  const text = await reply.text()
  expect(text).toContain(`\ncadre_runs{state="completed"} ${total}\n`)
  // It counts requests as the hub does.
  expect(text).toMatch(/^http_server_request_duration_seconds_count\{.*http_route="\/v1\/runs\/start".*\} \d+$/m)
  expect(text).toContain('\nnodejs_eventloop_delay_p99_seconds ')
})
