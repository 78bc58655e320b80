// A dispatched run that its daemon has taken and cannot begin: nobody hears the answer, so that it is a run like any other.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon
const told: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method === 'POST') told.push(await request.text())
    return new Response('ok')
  },
})

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  const chat = `agents: { chat: { channels: { ops: "${server.url.href}" } } }\n`
  writeFileSync(join(home, 'settings.yml'), `network: { allow: [127.0.0.1] }\n${chat}`, { mode: 0o600 })
  daemon = await spawnDaemon({
    home,
    env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' },
  })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
  await server.stop(true)
})

const endedOnHub = (run_id: string, attempt: number) =>
  until(async () => {
    const run = await hub.ok(hub.admin, 'runs/get', { run_id })
    return run.completed_at !== null && run.attempt === attempt && run
  }, `the end of attempt ${attempt} of run ${run_id} on the hub`)

test('it has failed on both sides, its listeners are told, and it is resumed from the hub', async () => {
  await hub.addTeam(`
name: "@admin/keyed"
version: 1.0.0
phases:
  - { name: ask, agent: http, sources: [{ name: a, url: "${server.url.href}", headers: { key: "{{ secrets.door }}" } }] }
  - { name: tell, agent: chat, notify: [on_fail] }
`)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/keyed' })
  const failed = await endedOnHub(run_id, 1)
  expect(failed).toMatchObject({ state: 'failed', reason: 'not_started', started_at: null })
  expect(failed.error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('secrets.door') })
  expect(await daemon.call('/v1/runs/get', { run_id })).toMatchObject({ state: 'failed', reason: 'not_started' })
  await until(() => told.length > 0, 'the message')
  expect(told).toHaveLength(1)
  expect(told[0]).toContain(run_id)
  expect(told[0]).toContain('secrets.door')
  const { text, next } = await hub.ok(hub.admin, 'runs/why', { run_id })
  expect(text).toContain('secrets.door')
  expect(next).toContainEqual(['resume', run_id])

  await command(['settings', 'set', 'secrets.door', '{"value": "an open one", "teams": ["@admin/*"]}'], daemon)
  await hub.ok(hub.admin, 'dispatch/resume', { run_id })
  expect(await endedOnHub(run_id, 2)).toMatchObject({ state: 'completed', reason: null })
  expect(told).toHaveLength(1)
}, 60_000)
