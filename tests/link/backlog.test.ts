// What the hub knows of the logs of runs: all lines, also those that listeners add after the end, which lines are
// missing, and which are still to come; and what a run in a command's own process tells it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type Front, startFront } from '../support/front.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'

let hub: TestHub
let front: Front
let daemon: ServedDaemon
let token: string
let answer: () => Promise<Response>
const channel = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() })

const TEAMS = {
  '@admin/tells': `
name: "@admin/tells"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: say, run: "echo said" }] }
  - { name: tell, agent: chat, notify: [on_complete] }
`,
  '@admin/says': `
name: "@admin/says"
version: 1.0.0
inputs: [{ name: lines, type: number, default: 3 }]
phases:
  - { name: say, agent: exec, commands: [{ name: say, env: { N: "{{ inputs.lines }}" }, run: "seq 1 $N" }] }
`,
}

beforeAll(async () => {
  hub = await startTestHub()
  front = startFront(hub.url)
  for (const text of Object.values(TEAMS)) await hub.addTeam(text)
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  const home = folder()
  const settings = `agents: { chat: { channels: { ops: "${channel.url}" } } }\n`
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  daemon = await serveDaemon({ home, env: { CADRE_HUB_URL: front.url, CADRE_REALM_TOKEN: token } })
})
afterAll(async () => {
  await daemon.stop()
  await front[Symbol.asyncDispose]()
  await hub.stop()
  await channel.stop(true)
})

const logOf = (run_id: string) => hub.ok(hub.admin, 'runs/logs', { run_id, limit: 10_000 })

const completeLog = (run_id: string) =>
  until(async () => {
    const { status, data } = await hub.call(hub.admin, 'runs/logs', { run_id, limit: 10_000 })
    return status === 200 && data.complete === true && data
  }, 'the whole log on the hub')

/** Everything that a stream tells, up to its end. */
async function streamOf(url: string, run_id: string, credential: string): Promise<string> {
  const headers = { authorization: `Bearer ${credential}` }
  return (await fetch(`${url}/v1/runs/stream?run_id=${run_id}`, { headers })).text()
}

test('what a listener writes to the log after the end reaches whoever follows, here and at the hub', async () => {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  answer = async () => {
    asked.resolve()
    await released.promise
    return new Response('no such channel', { status: 404 })
  }
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@admin/tells' })
  await until(async () => (await hub.call(hub.admin, 'runs/get', { run_id })).status === 200, 'the run on the hub')
  const streams = [streamOf(daemon.url, run_id, daemon.token), streamOf(hub.url, run_id, hub.admin)]
  await asked.promise
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the end on the hub')
  expect(await logOf(run_id)).toMatchObject({ complete: false, missing: [], to_come: { to: null } })
  released.resolve()
  for (const text of await Promise.all(streams)) {
    expect(text).toContain('on_complete was not delivered')
    expect(text).toContain('event: end')
  }
  const { lines, missing, to_come } = await completeLog(run_id)
  expect({ missing, to_come }).toEqual({ missing: [], to_come: null })
  expect(lines.map(({ text }: { text: string }) => text)).toEqual([
    'said',
    expect.stringContaining('on_complete was not delivered'),
  ])
})

test('the hub and the command line say which lines never come, and when there are all', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@admin/says', inputs: { lines: 700 } })
  await completeLog(run_id)
  front.loses = ({ path }) => (path === '/v1/runs/sync' ? 'request' : null)
  const lost = (await daemon.call('/v1/runs/start', { team: '@admin/says' })).run_id
  await daemon.ended(lost)
  rmSync(join(daemon.home, 'runs', lost, 'log.jsonl'))
  front.loses = () => null
  const log = await until(async () => {
    const { status, data } = await hub.call(hub.admin, 'runs/logs', { run_id: lost })
    return status === 200 && data.missing.length > 0 && data
  }, 'the missing lines')
  expect(log).toMatchObject({ complete: false, missing: [{ from: 1, to: 3 }], to_come: null, lines: [] })
  const { token: key } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'reads' })
  const print = (id: string) => command(['logs', id, '--hub', hub.url], { home: folder(), env: { CADRE_API_KEY: key } })
  expect(await print(lost)).toMatchObject({ code: 0, stderr: 'the log: lines 1 to 3 are missing for good\n' })
  const whole = await print(run_id)
  expect(whole).toMatchObject({ code: 0, stderr: 'the hub has the whole log\n' })
  expect(whole.stdout.trim().split('\n')).toHaveLength(700)
})

test('a run that is deleted before its log was sent leaves a log with missing lines', async () => {
  front.loses = ({ path }) => (path === '/v1/runs/sync' ? 'request' : null)
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@admin/says' })
  await daemon.ended(run_id)
  await daemon.call('/v1/runs/delete', { run_id })
  front.loses = () => null
  const log = await until(async () => {
    const { status, data } = await hub.call(hub.admin, 'runs/logs', { run_id })
    return status === 200 && data.to_come === null && data
  }, 'the end of the log')
  expect(log).toMatchObject({ complete: false, missing: [{ from: 1, to: 3 }] })
})

/** A home that is enrolled and whose daemon does not run, with the team `says` in a folder. */
async function enrolled(url: string) {
  const home = folder()
  const env = { CADRE_HUB_URL: url, CADRE_REALM_TOKEN: token }
  const first = await serveDaemon({ home, env })
  await first.stop()
  const team = files({ 'team.yml': TEAMS['@admin/says'] })
  const run = async () => {
    const { code, stdout, stderr } = await command(['run', team, '--json'], { home, env: { CADRE_HUB_URL: url } })
    expect({ code, stderr }).toMatchObject({ code: 0 })
    return { ...(JSON.parse(stdout) as { run_id: string }), stderr }
  }
  return { home, env, run }
}

test('a run in the process of a command is on the hub when the command has ended', async () => {
  const { run } = await enrolled(hub.url)
  const { run_id, stderr } = await run()
  expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ state: 'completed' })
  expect((await logOf(run_id)).lines).toHaveLength(3)
  expect((await logOf(run_id)).complete).toBe(true)
  expect(stderr).not.toContain('hub')
})

test('the first command of an enrolled home reports its run, although no daemon ever ran there', async () => {
  const home = folder()
  const team = files({ 'team.yml': TEAMS['@admin/says'] })
  await command(['enrol', '--hub', hub.url], { home, stdin: token })
  const { stdout } = await command(['run', team, '--json'], { home })
  const { run_id } = JSON.parse(stdout)
  expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ state: 'completed' })
})

test('where the hub does not answer, the command says what is left, and the next contact sends it', async () => {
  await using blocked = startFront(hub.url)
  const { home, env, run } = await enrolled(blocked.url)
  blocked.loses = () => 'request'
  const first = await run()
  expect(first.stderr).toContain('the hub has not received everything yet')
  expect((await hub.call(hub.admin, 'runs/get', { run_id: first.run_id })).status).toBe(404)
  blocked.loses = () => null
  const second = await run()
  for (const { run_id } of [first, second]) expect((await logOf(run_id)).complete).toBe(true)
  // The next daemon does the same.
  blocked.loses = () => 'request'
  const third = await run()
  blocked.loses = () => null
  const again = await serveDaemon({ home, env })
  expect((await completeLog(third.run_id)).lines).toHaveLength(3)
  await again.stop()
})

test('a hub that accepts calls and never answers does not hold up a command', async () => {
  const hole = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    fetch: () => new Promise<Response>(() => {}),
  })
  const { home } = await enrolled(hub.url)
  const team = files({ 'team.yml': TEAMS['@admin/says'] })
  const env = { CADRE_HUB_URL: hole.url.origin, CADRE_REALM_TOKEN: token }
  const started = performance.now()
  const { code, stderr } = await command(['run', team], { home, env })
  expect(code).toBe(0)
  expect(stderr).toContain('the hub has not received everything yet')
  // Two seconds of patience, and a busy machine.
  expect(performance.now() - started).toBeLessThan(15_000)
  await hole.stop(true)
})
