// `notify.on_fail` of a realm: a real daemon tells its account what the hub asks for, once, whatever is killed.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { webhook } from '../support/webhook.ts'

const hook = webhook()
let hub: TestHub
let daemon: RunningDaemon
let env: Record<string, string>

beforeAll(async () => {
  hub = await startTestHub()
  await hub.addTeam(
    'name: "@admin/fails"\nversion: 1.0.0\nphases: [{ name: work, agent: exec, commands: [{ name: c, run: exit 3 }] }]\n',
  )
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  const chat = `agents: { chat: { channels: { ops: "${hook.url}" } } }\n`
  writeFileSync(join(home, 'settings.yml'), `packages: { sandbox: none }\n${chat}`, { mode: 0o600 })
  env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  daemon = await spawnDaemon({ home, env })
  await notify({ on_fail: ['chat:ops'] })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
  await hook.stop()
})

const notify = (given: object | null) => hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, notify: given })
const fail = async (): Promise<string> =>
  (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/fails' })).run_id
const tells = () => hub.store.db.select().from(hub.store.tells)

test('the daemon that has the account tells it of a run that failed', async () => {
  const run_id = await fail()
  await until(() => hook.told.length === 1, 'the message')
  for (const part of ['admin/fails', run_id, 'failed', 'phase work']) expect(hook.told[0]).toContain(part)
  await until(async () => (await tells())[0]?.state === 'done', 'the answer of the daemon')
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  expect(daemons).toMatchObject([{ name: 'one', accounts: ['chat:ops'] }])
})

test('what the home tells its own account is not told twice', async () => {
  await command(['settings', 'set', 'notify.on_fail', 'chat:ops'], daemon)
  const run_id = await fail()
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).completed_at !== null, 'the end of the run')
  await until(() => hook.told.length === 2, 'the message')
  await command(['settings', 'set', 'notify.on_fail'], daemon)
  expect((await tells()).filter(({ subject }) => subject === run_id)).toEqual([])
})

test('a daemon that is killed while it tells says that nobody knows, and nobody tells it again', async () => {
  const before = hook.told.length
  hook.held = true
  const run_id = await fail()
  await until(() => hook.told.length === before + 1, 'the message')
  const { home } = daemon
  await daemon.kill('SIGKILL')
  hook.held = false
  daemon = await spawnDaemon({ home, env })
  const mine = async () => (await tells()).find(({ subject }) => subject === run_id)
  await until(async () => (await mine())?.state === 'failed', 'the answer of the daemon')
  expect((await mine())!.error).toContain('chat:ops may not have been told')
  expect(hook.told).toHaveLength(before + 1)
}, 60_000)

test('status says which account of the realm no daemon has', async () => {
  await notify({ on_fail: ['chat:ops', 'email:admins'] })
  const key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'asker' })).token
  const { stdout } = await command(['status'], {
    home: daemon.home,
    env: { CADRE_HUB_URL: hub.url, CADRE_API_KEY: key },
  })
  expect(stdout).toContain('is to tell email:admins of what fails, and no daemon that is online has that account')
  expect(stdout).not.toContain('is to tell chat:ops')
}, 60_000)
