// What the hub knows of the logs of runs: all lines, also those that listeners add after the end, which lines are
// missing, and which are still to come; and what a run in a command's own process tells it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type Front, startFront } from '../support/front.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let front: Front
let daemon: RunningDaemon
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
  for (const [team, text] of Object.entries(TEAMS)) {
    const files = [{ path: 'team.yml', content_base64: Buffer.from(text).toString('base64') }]
    await hub.ok(hub.admin, 'teams/publish', { files })
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team })
  }
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  const home = folder()
  const settings = `agents: { chat: { channels: { ops: "${channel.url}" } } }\n`
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: front.url, CADRE_REALM_TOKEN: token } })
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

test('the hub says which lines are still to come, and which never come', async () => {
  // States get through, lines do not.
  front.loses = ({ path, body }) =>
    path === '/v1/runs/sync' && body.changes.some(({ kind }: { kind: string }) => kind === 'log') ? 'request' : null
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@admin/says', inputs: { lines: 700 } })
  await daemon.ended(run_id)
  front.loses = () => null
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
