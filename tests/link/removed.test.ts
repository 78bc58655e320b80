// A daemon that was removed at the hub and enrols again, while files of its runs wait to be sent.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { type Front, startFront } from '../support/front.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'

const TEAM = `
name: "@admin/writes"
version: 1.0.0
phases: [{ name: make, agent: exec, commands: [{ name: make, run: 'echo hello > "$CADRE_OUT/a.txt"' }] }]
`

const store = join(folder(), 'files')
let hub: TestHub
let front: Front
let daemon: ServedDaemon
const home = folder()
let env: Record<string, string>

beforeAll(async () => {
  mkdirSync(store)
  hub = await startTestHub({ env: { CADRE_ARTIFACTS: Bun.pathToFileURL(store).href } })
  front = startFront(hub.url)
  await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  env = { CADRE_HUB_URL: front.url, CADRE_REALM_TOKEN: token }
  daemon = await serveDaemon({ home, env })
})
afterAll(async () => {
  await daemon.stop()
  await front[Symbol.asyncDispose]()
  await hub.stop()
})

const stored = () => readdirSync(store, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()).length

test('the files reach the hub after it has enrolled again', async () => {
  const offers = () => front.seen.filter(({ path }) => path === '/v1/artifacts/offer').length
  front.loses = ({ path }) => (path === '/v1/artifacts/offer' ? 'request' : null)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/writes' })
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the end of the run')
  await until(() => offers() > 0, 'the file is offered')
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id: daemons[0].id })
  front.loses = () => null
  const before = offers()
  await until(() => offers() > before, 'the file is offered to a hub that does not know the daemon')
  await Bun.sleep(500)
  await daemon.stop()
  daemon = await serveDaemon({ home, env })
  await until(() => stored() === 1, 'the file is stored', 20_000)
  expect((await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons[0].id).toBe(daemons[0].id)
}, 120_000)
