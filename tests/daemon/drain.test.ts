// `cadre drain` and the drain of a daemon that gets SIGTERM: nothing new begins, what is executed may end, what waits does
// not hold it up, and the next start goes on.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunRecord } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon, startCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

/** A team whose first command waits for the file `go`, and whose others leave a mark. */
function team(more = '') {
  const place = folder()
  const at = join(place, 'team')
  mkdirSync(at)
  const wait = `touch ${place}/began; while [ ! -e ${place}/go ]; do sleep 0.05; done`
  writeFileSync(
    join(at, 'team.yml'),
    `name: "@local/slow"
version: 1.0.0
phases:
  - { name: first, agent: exec, commands: [{ name: c, run: "${wait}", effect: idempotent }] }
  - { name: second, agent: exec, depends_on: [first], commands: [{ name: c, run: "touch ${place}/second" }] }
${more}`,
  )
  return {
    path: at,
    has: (name: string) => existsSync(join(place, name)),
    go: () => writeFileSync(join(place, 'go'), ''),
  }
}

const GATE = {
  'team.yml': `name: "@local/asks"
version: 1.0.0
phases:
  - { name: ask, type: gate, review: { prompt: "May it?" } }
`,
}

async function start(daemon: RunningDaemon, path: string): Promise<string> {
  return (await daemon.call<RunRecord>('/v1/runs/start', { path })).run_id
}

const statesOf = async (daemon: RunningDaemon, runId: string) => {
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: runId })
  return phases.map(({ name, state }: { name: string; state: string }) => `${name} ${state}`)
}

const isReady = async ({ url }: RunningDaemon) => (await fetch(`${url}/ready`)).status === 200

test('what is executed may end, and nothing new begins', async () => {
  const slow = team('  - { name: asks, type: gate, depends_on: [first], review: { prompt: "May it?" } }\n')
  const daemon = await spawnDaemon()
  const asking = join(folder(), 'asks')
  mkdirSync(asking)
  writeFileSync(join(asking, 'team.yml'), GATE['team.yml'])
  const waiting = await start(daemon, asking)
  await until(async () => (await statesOf(daemon, waiting)).includes('ask awaiting_input'), 'the gate asks')
  const run = await start(daemon, slow.path)
  await until(() => slow.has('began'), 'it has begun')

  const draining = startCommand(['drain'], { home: daemon.home })
  await until(async () => !(await isReady(daemon)), 'it refuses')
  const health = (await (await fetch(`${daemon.url}/health`)).json()) as { data: object }
  expect(health.data).toMatchObject({ status: 'ok', slots: 1, free: 0, stalled: 'the daemon drains' })
  const refused = await daemon.post('/v1/runs/start', { path: slow.path })
  expect([refused.status, refused.body.error.code]).toEqual([503, 'unavailable'])
  expect(await statesOf(daemon, run)).toEqual(['first running', 'second pending', 'asks pending'])
  slow.go()
  const [stderr, code] = await Promise.all([draining.stderr.text(), draining.exited])
  expect(stderr).toContain(`process ${daemon.pid} at ${daemon.url} drains: nothing new begins`)
  expect(stderr).toContain(`waiting for phase first of @local/slow (${run})\n`)
  expect(stderr).toEndWith(`process ${daemon.pid} has ended; 1 run goes on at the next start\n`)
  expect([code, await daemon.exited]).toEqual([0, 0])
  expect(slow.has('second')).toBe(false)

  const next = await spawnDaemon({ home: daemon.home })
  await until(() => slow.has('second'), 'the second phase')
  const ended = 'first completed, second completed, asks awaiting_input'
  await until(async () => (await statesOf(next, run)).join(', ') === ended, 'the phases end')
  await next.stop()
})

test('a run that waits for its key, and the next item of a map, begin with the next start', async () => {
  const place = folder()
  const teamAt = (name: string, phases: string) => {
    const at = join(place, name)
    mkdirSync(at)
    writeFileSync(join(at, 'team.yml'), `name: "@local/${name}"\nversion: 1.0.0\n${phases}`)
    return at
  }
  const wait = `touch ${place}/began-$AT; while [ ! -e ${place}/go ]; do sleep 0.05; done`
  const commands = `commands: [{ name: c, run: "${wait}", effect: idempotent }]`
  const keyed = teamAt(
    'keyed',
    `concurrency: { key: deploys }
phases: [{ name: ship, agent: exec, env: { AT: ship }, ${commands} }]
`,
  )
  const mapped = teamAt(
    'mapped',
    `phases:
  - name: each
    type: map
    items: '{{ ["a", "b"] }}'
    key: "{{ item }}"
    concurrency: 1
    agent: exec
    env: { AT: "{{ item }}" }
    ${commands}
`,
  )
  const daemon = await spawnDaemon()
  const holder = await start(daemon, keyed)
  const waits = await start(daemon, keyed)
  const items = await start(daemon, mapped)
  await until(() => existsSync(join(place, 'began-ship')) && existsSync(join(place, 'began-a')), 'both have begun')
  const draining = startCommand(['drain'], { home: daemon.home })
  await until(async () => !(await isReady(daemon)), 'it refuses')
  writeFileSync(join(place, 'go'), '')
  expect([await draining.exited, await daemon.exited]).toEqual([0, 0])
  const listed = async (...options: string[]) => {
    const { stdout } = await command(['runs', '--json', ...options], { home: daemon.home })
    return (JSON.parse(stdout).runs as RunRecord[]).map(({ run_id, run_name }) => run_name ?? run_id)
  }
  expect(await listed('--state', 'queued')).toEqual([waits])
  expect(await listed('--state', 'completed', '--all')).toEqual(['a', holder])
  expect(await listed('--state', 'interrupted', '--all')).toEqual([items])

  const next = await spawnDaemon({ home: daemon.home })
  for (const run of [waits, items]) expect((await next.ended(run)).state).toBe('completed')
  expect(existsSync(join(place, 'began-b'))).toBe(true)
  await next.stop()
})

test('what takes too long is interrupted, and continued by the next start', async () => {
  const slow = team()
  const daemon = await spawnDaemon()
  const run = await start(daemon, slow.path)
  await until(() => slow.has('began'), 'it has begun')
  const drained = await command(['drain', '--most', '300ms'], { home: daemon.home })
  expect(drained).toMatchObject({ code: 0, stderr: expect.stringContaining('; 1 run goes on at the next start\n') })
  expect(await daemon.exited).toBe(0)
  slow.go()
  const next = await spawnDaemon({ home: daemon.home })
  const { state } = await next.ended(run)
  expect(state).toBe('completed')
  const { phases } = await next.envelope('/v1/runs/phases', 'run_phases', { run_id: run })
  expect(phases.map(({ attempt }: { attempt: number }) => attempt)).toEqual([2, 1])
  await next.stop()
})

test('another drain may shorten the first, and SIGTERM ends it', async () => {
  for (const end of [
    (daemon: RunningDaemon) => command(['drain', '--most', '0s'], { home: daemon.home }),
    (daemon: RunningDaemon) => daemon.kill('SIGTERM'),
  ]) {
    const slow = team()
    const daemon = await spawnDaemon()
    await start(daemon, slow.path)
    await until(() => slow.has('began'), 'it has begun')
    const first = startCommand(['drain', '--most', '1h'], { home: daemon.home })
    await until(async () => !(await isReady(daemon)), 'it refuses')
    await end(daemon)
    expect([await first.exited, await daemon.exited]).toEqual([0, 0])
  }
})

test('SIGTERM interrupts at once, or drains for CADRE_DRAIN_SECONDS', async () => {
  const interrupted = team()
  const plain = await spawnDaemon()
  await start(plain, interrupted.path)
  await until(() => interrupted.has('began'), 'it has begun')
  expect((await plain.stop()).code).toBe(0)

  const slow = team()
  const daemon = await spawnDaemon({ env: { CADRE_DRAIN_SECONDS: '300' } })
  const run = await start(daemon, slow.path)
  await until(() => slow.has('began'), 'it has begun')
  process.kill(daemon.pid, 'SIGTERM')
  await until(async () => !(await isReady(daemon)), 'it refuses')
  expect(await statesOf(daemon, run)).toEqual(['first running', 'second pending'])
  slow.go()
  expect(await daemon.exited).toBe(0)
  expect(slow.has('second')).toBe(false)
  const next = await spawnDaemon({ home: daemon.home })
  await next.ended(run)
  const { phases } = await next.envelope('/v1/runs/phases', 'run_phases', { run_id: run })
  expect(phases.map(({ attempt }: { attempt: number }) => attempt)).toEqual([1, 1])
  await next.stop()
})

test('without a daemon, with a wrong time and without the token there is no drain', async () => {
  const home = folder()
  expect(await command(['drain'], { home })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`no daemon serves ${home}: there is nothing to drain`),
  })
  expect(await command(['drain', '--most', '10'], { home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--most: expected a duration such as'),
  })
  const slow = team()
  const running = startCommand(['run', slow.path], { home })
  await until(() => slow.has('began'), 'it has begun')
  await until(async () => !(await command(['drain'], { home })).stderr.includes('try again later'), 'it listens')
  expect(await command(['drain'], { home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('this process ends with its last run'),
  })
  slow.go()
  expect(await running.exited).toBe(0)
  const daemon = await spawnDaemon()
  expect((await daemon.post('/v1/daemon/drain')).status).toBe(401)
  expect(await isReady(daemon)).toBe(true)
  await daemon.stop()
})
