// A real daemon that a plain member of the realm enrolled: it says that it takes no jobs, and takes them once approved.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub } from '../support/hub.ts'

test('it waits, says so in its log and to doctor, and takes its job once an operator has approved it', async () => {
  const hub = await startTestHub()
  const realm_id = hub.realm
  const { token: member } = await hub.account('member')
  await hub.ok(hub.admin, 'realms/add_member', { realm_id, username: 'member', role: 'member' })
  const text =
    'name: "@admin/say"\nversion: 1.0.0\nphases:\n  - { name: say, agent: exec, commands: [{ name: a, run: echo hi }] }\n'
  await hub.addTeam(text)
  const home = folder()
  const { token } = await hub.realmToken(member, realm_id)
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id })
  const { daemon_id } = daemons[0]
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id, team: '@admin/say' })
  const doctor = () => command(['doctor', '--json'], { home })
  const told = (stdout: string) => JSON.parse(stdout).find((finding: { agent: string }) => finding.agent === 'hub')

  const { code, stdout } = await doctor()
  expect([code, told(stdout)]).toMatchObject([1, { state: 'wrong', text: expect.stringContaining('daemons/approve') }])
  const set = (...value: string[]) => command(['settings', 'set', 'hub.realm_token', ...value], { home })
  await set()
  expect(told((await doctor()).stdout)).toBeUndefined()
  await set(token)
  expect(daemon.output.stderr.match(/takes no jobs until an operator/g)).toHaveLength(1)
  expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ state: 'queued' })

  await hub.ok(hub.admin, 'daemons/approve', { daemon_id })
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the run')
  expect(told((await doctor()).stdout)).toBeUndefined()
  expect(daemon.output.stderr).toContain('has approved this daemon')
  await daemon.stop()
  await hub.stop()
}, 30_000)
