// Enrolling is remembered: what a start by the environment or `enrol` gave, later starts need not be given again.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const mint = async () => (await hub.realmToken(hub.admin, hub.realm)).token
const online = async (name: string) => {
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm, limit: 100 })
  return daemons.filter(
    (daemon: { name: string; status: string }) => daemon.name === name && daemon.status === 'online',
  )
}
const stored = (home: string) => {
  const file = join(home, 'settings.yml')
  return existsSync(file) ? { text: readFileSync(file, 'utf8'), mode: statSync(file).mode & 0o777 } : null
}

test('a start that the hub accepts stores address and token, and the next needs no environment', async () => {
  const home = folder()
  const token = await mint()
  const env = { CADRE_DAEMON_NAME: 'kept' }
  const first = await spawnDaemon({ home, env: { ...env, CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  await first.stop()
  expect(stored(home)).toEqual({ text: `hub:\n  url: ${hub.url}\n  realm_token: ${token}\n`, mode: 0o600 })
  const [{ daemon_id }] = await online('kept')
  await hub.skew(60_000)
  expect(await online('kept')).toEqual([])

  await command(['login', 'admin', '--hub', hub.url], { home, stdin: `${ADMIN_PASSWORD}\n` })
  expect((await command(['logout'], { home })).code).toBe(0)
  const second = await spawnDaemon({ home, env })
  expect(await online('kept')).toMatchObject([{ daemon_id }])
  const shown = await command(['settings', 'get', 'hub.realm_token'], { home })
  expect([shown.code, shown.stdout]).toEqual([0, '***\n'])
  expect(second.output.stderr).not.toContain(token)
  await second.stop()
  await hub.skew(0)

  // The environment wins, and is what is remembered from then on.
  const another = await mint()
  const third = await spawnDaemon({ home, env: { ...env, CADRE_REALM_TOKEN: another } })
  await until(() => stored(home)!.text.includes(another), 'the token of the environment is stored')
  await third.stop()
  expect(stored(home)!.text).not.toContain(token)
}, 60_000)

test('a token that the hub refuses is not stored; one that was stored and is refused now is told by its name', async () => {
  const home = folder()
  const { id, token } = await hub.realmToken(hub.admin, hub.realm)
  const serve = (env: Record<string, string>) => command(['serve', '--port', '0'], { home, env })
  const dead = await hub.realmToken(hub.admin, hub.realm)
  await hub.ok(hub.admin, 'auth/revoke_token', { id: dead.id })
  expect((await serve({ CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: dead.token })).code).not.toBe(0)
  expect(stored(home)).toBeNull()
  expect((await command(['enrol', '--hub', hub.url], { home, stdin: `${token}\n` })).code).toBe(0)
  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  const { code, stderr } = await serve({})
  expect([code === 0, stderr]).toEqual([false, expect.stringContaining('hub.realm_token')])
}, 30_000)

test('`enrol` stores what the hub accepts, with a daemon running and without', async () => {
  const home = folder()
  const enrol = (stdin: string, ...more: string[]) => command(['enrol', ...more], { home, stdin })
  const at = ['--hub', hub.url]
  for (const [given, args] of [
    [await mint(), []],
    ['cadre_tok_x', at],
    [hub.admin, at],
    [`${await mint()}-`, at],
    ['', at],
  ] as const) {
    const { code, stderr } = await enrol(`${given}\n`, ...args)
    expect([code, stored(home)]).toEqual([2, null])
    if (given !== '') expect(stderr).not.toContain(given)
  }
  const first = await mint()
  const told = await enrol(`${first}\n`, ...at)
  expect([told.code, told.stdout]).toEqual([0, expect.stringContaining(hub.url)])
  expect(told.stdout + told.stderr).not.toContain(first)
  expect(stored(home)).toEqual({ text: `hub:\n  url: ${hub.url}\n  realm_token: ${first}\n`, mode: 0o600 })

  const daemon = await spawnDaemon({ home, env: { CADRE_DAEMON_NAME: 'by-command' } })
  expect(await online('by-command')).toHaveLength(1)
  const second = await mint()
  expect((await enrol(second)).code).toBe(0)
  await daemon.stop()
  expect(stored(home)!.text).toContain(second)
}, 60_000)

test('`status` after `enrol` says that the daemon has yet to connect', async () => {
  const home = folder()
  const realm = async () => /^realm +(.*)$/m.exec((await command(['status'], { home })).stdout)?.[1]
  const { id, token } = await hub.realmToken(hub.admin, hub.realm)
  expect((await command(['enrol', '--hub', hub.url], { home, stdin: `${token}\n` })).code).toBe(0)
  expect(await realm()).toBe('enrolled, not connected yet')
  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  expect(await realm()).toBe('not connected yet')
}, 30_000)

test('`status` of somebody who is signed in, and whose daemon is not enrolled, says so and how to enrol', async () => {
  const home = folder()
  await command(['login', 'admin', '--hub', hub.url], { home, stdin: `${ADMIN_PASSWORD}\n` })
  const status = async () => JSON.parse((await command(['status', '--json'], { home })).stdout)
  expect(await status()).toMatchObject({ hub: { enrolled: null }, problems: [] })
  const daemon = await spawnDaemon({ home })
  const [problem, ...others] = (await status()).problems
  expect(others).toEqual([])
  const alone = /^the daemon is not enrolled, so it takes no jobs of the hub and reports no runs: /
  expect(problem).toMatch(alone)
  expect(problem).toMatch(/ realm-token REALM \| (bun )?\S+ enrol --hub http\S+, and start it again$/)

  // Enrolled since, but not by the process that runs.
  const enrolled = await command(['enrol'], { home, stdin: await mint() })
  expect(enrolled.stdout).toContain(`process ${daemon.pid} was started before it was enrolled, so it has no link`)
  expect((await status()).problems).toEqual([expect.stringContaining('was started before it was enrolled')])
  await daemon.stop()
  const again = await spawnDaemon({ home })
  expect((await status()).problems).toEqual([])
  await again.stop()
}, 60_000)

test('a daemon whose token was replaced is told to be started again, and `status` says of the hub only what is so', async () => {
  const home = folder()
  const own = await startTestHub()
  const first = await own.realmToken(own.admin, own.realm)
  const enrol = (token: string, at = own.url) => command(['enrol', '--hub', at], { home, stdin: token })
  const status = async () => {
    const { stdout } = await command(['status', '--hub', own.url], { home })
    return { hub: /^hub +(.*)$/m.exec(stdout)![1], problems: stdout.match(/(?<=^! ).*$/gm) ?? [] }
  }
  expect((await enrol(first.token)).stdout).toContain('the next `serve` takes jobs from there')
  const daemon = await spawnDaemon({ home })
  while ((await status()).hub !== `${own.url}, linked`) await Bun.sleep(100)
  expect((await enrol(first.token)).stdout).not.toContain('restart')

  await own.ok(own.admin, 'auth/revoke_token', { id: first.id })
  expect(await status()).toEqual({
    hub: `${own.url}, it refuses the realm token`,
    problems: [expect.stringMatching(/^the hub refuses the realm token: .* enrol --hub \S+, and restart the daemon$/)],
  })
  const { token } = await own.realmToken(own.admin, own.realm)
  const restart = `process ${daemon.pid} still uses the realm token with which it was started: restart it`
  expect((await enrol(token)).stdout).toBe(`enrolled at ${own.url}; ${restart}\n`)
  const told = await status()
  expect(told.problems).toEqual([expect.stringContaining('the realm token with which it was started: restart it')])
  expect(told.hub).toBe(`${own.url}, it answers`)
  await daemon.stop()

  const again = await spawnDaemon({ home })
  while ((await status()).hub !== `${own.url}, linked`) await Bun.sleep(100)
  expect((await status()).problems).toEqual([])
  await own.stop()
  expect(await status()).toEqual({
    hub: `${own.url}, it does not answer`,
    problems: [expect.stringContaining('does not answer')],
  })
  await again.stop()
}, 60_000)

test('a stored token is shown to the hub that it was stored with, and to no other', async () => {
  const home = folder()
  const token = await mint()
  expect((await command(['enrol', '--hub', hub.url], { home, stdin: token })).code).toBe(0)
  const seen: (string | null)[] = []
  using other = Bun.serve({
    port: 0,
    fetch({ headers }) {
      seen.push(headers.get('authorization'))
      return Response.json({ ok: false, error: { code: 'unauthorized', message: 'no' } }, { status: 401 })
    },
  })
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: other.url.origin } })
  await daemon.stop()
  expect(seen).toEqual([])
  expect(daemon.output.stderr).toContain('hub.realm_token')
}, 30_000)
