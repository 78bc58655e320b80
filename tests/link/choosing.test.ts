// A real daemon tells the hub what it offers, at the start and when that changes.

import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { smallDisk } from '../support/disk.ts'
import { folder } from '../support/folder.ts'
import { startTestHub } from '../support/hub.ts'

test('labels, agents and what their doctors found reach the hub, and a new label brings the run that waits for it', async () => {
  const hub = await startTestHub()
  const realm_id = hub.realm
  const text =
    'name: "@admin/say"\nversion: 1.0.0\nrequires: { labels: { gpu: "yes" }, agents: [exec] }\n' +
    'phases:\n  - { name: say, agent: exec, commands: [{ name: a, run: echo hi }] }\n'
  await hub.addTeam(text)
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const home = folder()
  const settings = join(home, 'settings.yml')
  const write = (labels: string) => writeFileSync(settings, `labels: ${labels}\n`, { mode: 0o600 })
  write('[region=eu, os=other]')
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  const daemon = await spawnDaemon({ home, env })
  expect(daemon.output.stderr).toContain('os is a label that every daemon has by itself')
  const seen = async () => (await hub.ok(hub.admin, 'daemons/list', { realm_id })).daemons[0]
  const own = { os: process.platform, arch: process.arch, cadre: expect.any(String) }
  expect((await seen()).labels).toEqual(own)
  const { run_id, waiting_for } = await hub.ok(hub.admin, 'dispatch/run', { realm_id, team: '@admin/say' })
  expect(waiting_for).toBe('a daemon with label gpu=yes and agent exec; online is one')
  const finding = async (name: string) =>
    (await seen()).agents.find((agent: { name: string }) => agent.name === name)?.doctor
  await until(async () => (await finding('exec')) === 'settings', 'the finding of exec')
  expect(await finding('helpdesk')).toBe('unset')
  write('{ gpu: true, region: eu }')
  process.kill(daemon.pid, 'SIGHUP')
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the run')
  expect((await seen()).labels).toEqual({ gpu: 'yes', region: 'eu', ...own })
  await daemon.stop()
  await hub.stop()
}, 60_000)

test('a permission that a credential lacks makes the agent wrong at the hub once a team needs it', async () => {
  const hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  mkdirSync(join(home, 'agents'))
  const handler = "entry: Type.Object({ name: Type.String() }), run: async () => ({ text: '', data: null })"
  writeFileSync(
    join(home, 'agents/shop.ts'),
    `import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Sells.', settings: Type.Object({ shelf: Type.Integer() }),
  doctor: async () => ({ who: null, missing: ['shop:write'], text: 'asked' }),
  actions: {
    look: { direction: 'source', effect: 'read', permissions: [], ${handler} },
    sell: { direction: 'target', effect: 'once', permissions: ['shop:write'], ${handler} },
  },
})
`,
  )
  const write = (shelf: number) =>
    writeFileSync(join(home, 'settings.yml'), `agents: { shop: { shelf: ${shelf} } }\n`, { mode: 0o600 })
  write(1)
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const finding = async () => {
    const [seen] = (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons
    return seen.agents.find((agent: { name: string }) => agent.name === 'shop')?.doctor
  }
  const look = '  - { name: look, agent: shop, action: look, sources: [{ name: out }] }\n'
  const sell = '  - { name: sell, agent: shop, action: sell, target_entries: [{ name: out }] }\n'
  const team = (phases: string) => `name: "@local/shop"\nversion: 1.0.0\nphases:\n${phases}`
  const workspace = files({ 'team.yml': team(look) })
  expect((await command(['workspaces', 'add', workspace], { home })).code).toBe(0)
  await until(async () => (await finding()) === 'fine', 'the finding without a team that sells')
  writeFileSync(join(workspace, 'team.yml'), team(look + sell))
  // The doctors are asked again at once when the settings of agents have changed.
  write(2)
  process.kill(daemon.pid, 'SIGHUP')
  await until(async () => (await finding()) === 'wrong', 'the finding with a team that sells')
  await daemon.stop()
  await hub.stop()
}, 60_000)

const disk = smallDisk('200m')
if (!disk) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
afterAll(() => disk?.[Symbol.dispose]())

test.skipIf(!disk)(
  'a run waits for the daemon whose disk is full, says so, and goes on when there is space',
  async () => {
    const { path: home, fill, free } = disk!
    const hub = await startTestHub()
    await hub.addTeam(
      'name: "@admin/hi"\nversion: 1.0.0\nphases:\n  - { name: say, agent: exec, commands: [{ name: a, run: echo hi }] }\n',
    )
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    // Less than a part of the disk below which nothing begins, and enough to open the database.
    fill(9 * 1_048_576)
    const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'full' }
    const daemon = await spawnDaemon({ home, env })
    await until(() => daemon.output.stderr.includes('the disk is nearly full'), 'the full disk is noticed')
    const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/hi' })
    const waits = async () => {
      const { jobs } = await hub.ok(hub.admin, 'dispatch/queue', { realm_id: hub.realm })
      return jobs[0]?.waiting_for as string | null
    }
    await until(async () => (await waits()) === 'daemon full, whose disk is full', 'the reason')
    free()
    await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the run')
    await daemon.stop()
    await hub.stop()
  },
  60_000,
)

test('a daemon stops while a vendor that its doctor asks does not answer', async () => {
  const hub = await startTestHub()
  const asked = Promise.withResolvers<void>()
  using vendor = Bun.serve({
    port: 0,
    fetch() {
      asked.resolve()
      return new Promise<Response>(() => {})
    },
  })
  const home = folder()
  const account = `{ subdomain: acme, base_url: "${vendor.url.origin}", email: a@example.com, api_token: t0 }`
  writeFileSync(join(home, 'settings.yml'), `agents: { helpdesk: ${account} }\n`, { mode: 0o600 })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  await asked.promise
  expect((await daemon.stop()).code).toBe(0)
  await vendor.stop(true)
  await hub.stop()
}, 40_000)
