// `notify.on_fail` of a home: what the setting accepts, what `doctor` and `status` say of it, and that failures are told
// once, whatever is killed.

import { afterEach, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type Webhook, webhook } from '../support/webhook.ts'

const FAILS = `
name: "@local/fails"
version: 1.0.0
phases: [{ name: work, agent: exec, commands: [{ name: c, run: exit 3 }] }]
`

const hooks: Webhook[] = []
afterEach(async () => {
  for (const hook of hooks.splice(0)) await hook.stop()
})

function webhookToEnd(): Webhook {
  const hook = webhook()
  hooks.push(hook)
  return hook
}

const set = (home: string, key: string, value: string) => command(['settings', 'set', key, value], { home })

test('the setting takes accounts that exist, and says what is wrong with others', async () => {
  const home = folder()
  const { url } = webhookToEnd()
  expect((await set(home, 'notify.on_fail', 'chat:ops')).stderr).toContain('agents.chat.channels is not set')
  await set(home, 'agents.chat.channels.ops', url)
  const refused = async (value: string) => {
    const { code, stderr } = await set(home, 'notify.on_fail', value)
    expect([value, code]).toEqual([value, 2])
    return stderr
  }
  expect(await refused('["chat"]')).toContain('must be an account "agent:channel"')
  expect(await refused('["chat:ops", "chat:ops"]')).toContain('chat:ops is listed twice')
  expect(await refused('{"chat": "ops"}')).toContain('must be a list')
  expect(await refused('["chta:ops"]')).toContain('there is no agent chta (did you mean `chat`?)')
  expect(await refused('["wiki:ops"]')).toContain('the agent wiki tells nobody of events')
  expect(await refused('["issues:ops"]')).toContain('the agent issues has no channels to tell')
  expect(await refused('["chat:opps"]')).toContain('chat has no channel opps: it has ops (did you mean `ops`?)')
  expect(await refused('["chat@eu:ops"]')).toContain('agents.chat@eu.channels is not set')
  expect((await set(home, 'notify.on_fial', 'chat:ops')).stderr).toContain('did you mean `notify.on_fail`?')
  expect((await set(home, 'notify.on_fail', '["chat:ops"]')).code).toBe(0)
  expect((await command(['settings', 'get', 'notify.on_fail'], { home })).stdout).toContain('["chat:ops"]')
  const gone = await command(['settings', 'set', 'agents.chat.channels'], { home })
  expect([gone.code, gone.stderr]).toEqual([0, expect.stringMatching(/^warning .*chat:ops/)])
}, 120_000)

test('doctor and status name an account that is gone', async () => {
  const home = folder()
  await set(home, 'agents.chat.channels.ops', webhookToEnd().url)
  await set(home, 'agents.chat.channels.own', webhookToEnd().url)
  await set(home, 'notify.on_fail', 'chat:ops chat:own')
  const said = async () => [(await command(['doctor'], { home })).stdout, (await command(['status'], { home })).stdout]
  for (const text of await said()) expect(text).not.toContain('cannot be used')
  await command(['settings', 'set', 'agents.chat.channels.ops'], { home })
  for (const text of await said())
    expect(text).toContain('chat:ops cannot be used: chat has no channel ops: it has own')
}, 120_000)

test('a failed run of `run`, of a daemon and of nobody is told, and one that is not delivered is shown', async () => {
  const home = folder()
  const hook = webhookToEnd()
  await set(home, 'agents.chat.channels.ops', hook.url)
  await set(home, 'notify.on_fail', 'chat:ops')
  const path = files({ 'team.yml': FAILS })
  expect((await command(['run', path], { home })).code).toBe(1)
  expect(hook.told).toHaveLength(1)
  for (const part of ['@local/fails', 'failed', 'work']) expect(hook.told[0]).toContain(part)

  const daemon = await spawnDaemon({ home })
  const needs = files({
    'team.yml': FAILS.replace('phases:', 'inputs: [{ name: x, type: string, required: true }]\nphases:'),
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path: needs, unattended: true })
  await until(() => hook.told.length === 2, 'the second message')
  expect(hook.told[1]).toContain(run_id)

  await command(['settings', 'set', 'agents.chat.channels.ops', 'http://127.0.0.1:1/gone'], { home })
  const lost = await command(['run', path], { home })
  expect(lost.code).toBe(1)
  expect(lost.stderr).toContain('notify.on_fail chat:ops could not deliver on_fail')
  for (const args of [
    ['why', 'last'],
    ['tree', 'last'],
  ]) {
    expect((await command(args, { home })).stdout).toContain('notify.on_fail chat:ops')
  }
  const last = async () =>
    JSON.parse((await command(['runs', '--limit', '1', '--json'], { home })).stdout).runs[0].run_id
  const status = async () => (await command(['status'], { home })).stdout
  const named = (count: string, id: string) =>
    `! notify.on_fail chat:ops did not deliver ${count} about @local/fails, or may not have, the last about run ${id}: `
  expect(await status()).toContain(named('a message', await last()))
  await command(['run', path], { home })
  expect(await status()).toContain(named('2 messages', await last()))
}, 120_000)

test('a daemon that is killed while it tells does not tell twice, and says that nobody knows', async () => {
  const home = folder()
  const hook = webhookToEnd()
  hook.held = true
  await set(home, 'agents.chat.channels.ops', hook.url)
  await set(home, 'notify.on_fail', 'chat:ops')
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': FAILS }) })
  await until(() => hook.told.length === 1, 'the message')
  await daemon.kill('SIGKILL')
  hook.held = false
  const again = await spawnDaemon({ home })
  const { deliveries } = await again.call('/v1/runs/get', { run_id })
  expect(deliveries).toMatchObject([{ phase: 'notify.on_fail chat:ops', event: 'on_fail', state: 'unknown' }])
  await again.ended(run_id)
  expect(hook.told).toHaveLength(1)
}, 120_000)
