// The token of a session is no API key, wherever it is given: with a hub, without one, and for every command.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

let hub: TestHub
let durable: string

beforeAll(async () => {
  hub = await startTestHub()
  durable = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'durable' })).token
})
afterAll(() => hub.stop())

test('settings/set of a daemon without a hub', async () => {
  const daemon = await spawnDaemon()
  const set = (value: string) =>
    daemon.post('/v1/settings/set', { key: 'hub.api_key', value }, { authorization: `Bearer ${daemon.token}` })
  for (const value of [hub.admin, `\${cmd:echo ${hub.admin}}`]) {
    const { status, body } = await set(value)
    expect([status, body.error?.code]).toEqual([400, 'invalid_request'])
  }
  expect((await set(durable)).status).toBe(200)
  await daemon.stop()
})

test('settings set without a daemon', async () => {
  const home = folder()
  for (const value of [hub.admin, `\${cmd:echo ${hub.admin}}`]) {
    const { code, stderr } = await command(['settings', 'set', 'hub.api_key', '-'], { home, stdin: `${value}\n` })
    expect([code, stderr]).toEqual([2, expect.stringContaining('session')])
    expect(stderr).not.toContain(hub.admin)
  }
  expect((await command(['settings', 'set', 'hub.api_key', '-'], { home, stdin: durable })).code).toBe(0)
})

test('CADRE_API_KEY at a start and for every command, with and without a hub', async () => {
  for (const args of [['serve', '--port', '0'], ['runs'], ['settings', 'list'], ['agents'], ['publish', '.']]) {
    for (const more of [{}, { CADRE_HUB_URL: hub.url }]) {
      const { code, stderr, stdout } = await command(args, {
        home: folder(),
        env: { CADRE_API_KEY: hub.admin, ...more },
      })
      expect([args, code, stdout, stderr]).toEqual([args, 2, '', expect.stringContaining('session')])
    }
  }
  expect((await command(['agents'], { home: folder(), env: { CADRE_API_KEY: durable } })).code).toBe(0)
})

test('hub.api_key that somebody wrote into settings.yml: no start, with and without a hub', async () => {
  for (const value of [hub.admin, `\${cmd:echo ${hub.admin}}`]) {
    for (const more of ['', `, url: '${hub.url}'`]) {
      const home = folder()
      writeFileSync(join(home, 'settings.yml'), `hub: {api_key: '${value}'${more}}\n`, { mode: 0o600 })
      const { code, stderr, stdout } = await command(['serve', '--port', '0'], { home })
      expect([more, code, stdout, stderr]).toEqual([more, 2, '', expect.stringContaining('session')])
      expect(stderr).not.toContain(hub.admin)
    }
  }
})

test('a session stays one when its secret is renewed', async () => {
  const { token, id } = await hub.account('renee')
  const { tokens } = await hub.ok(token, 'auth/get_tokens')
  const session = tokens.find((each: { kind: string }) => each.kind === 'session')
  expect(id).toBeNumber()
  const renewed = await hub.ok(token, 'auth/rotate_token', { id: session.id })
  const { code } = await command(['runs'], { home: folder(), env: { CADRE_API_KEY: renewed.token } })
  expect(code).toBe(2)
  expect((await hub.ok(renewed.token, 'auth/whoami')).kind).toBe('session')
})
