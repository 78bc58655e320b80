// A hub behind a proxy that takes requests of at most 1 MiB, as nginx does where nobody has told it otherwise.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

const MOST_BYTES = 1024 * 1024
const TEAM = `
name: "@admin/says"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: say, run: "seq -f 'a line of the log of a run that says much, %.0f' 1 40000" }] }
`

let hub: TestHub
let daemon: RunningDaemon
let refused = 0
/** Whether changes of runs get no answer, as while the hub is away. */
let away = false
const proxy = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const body = await request.arrayBuffer()
    if (body.byteLength > MOST_BYTES) {
      refused++
      const page = '<html><head><title>413 Request Entity Too Large</title></head></html>'
      return new Response(page, { status: 413, headers: { 'content-type': 'text/html' } })
    }
    const { pathname, search } = new URL(request.url)
    if (away && pathname === '/v1/runs/sync') return new Response('', { status: 502 })
    const { method, headers, signal } = request
    return fetch(hub.url + pathname + search, { method, headers, signal, ...(method === 'POST' && { body }) })
  },
})

beforeAll(async () => {
  hub = await startTestHub()
  await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), '', { mode: 0o600 })
  daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: proxy.url.origin, CADRE_REALM_TOKEN: token } })
})
afterAll(async () => {
  await daemon.stop()
  await proxy.stop(true)
  await hub.stop()
})

test('what has waited for the hub reaches it in requests that the proxy takes', async () => {
  away = true
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/says' })
  await until(async () => (await daemon.post('/v1/runs/get', { run_id })).status === 200, 'the run is here')
  expect((await daemon.ended(run_id)).state).toBe('completed')
  away = false
  const complete = async () => (await hub.ok(hub.admin, 'runs/logs', { run_id, limit: 1 })).complete === true
  await until(complete, 'the whole log on the hub', 60_000).catch(error => {
    throw new Error(`${error.message}; the proxy refused ${refused} requests`)
  })
}, 120_000)
