// A start that nobody waits for: what cannot begin is a run that has failed, and one that somebody waits for is none.

import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, files, killProcesses, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ASKS = `
import { agent, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Needs a setting.',
  settings: Type.Object({ token: secret() }),
  source: { effect: 'read', entry: Type.Object({ name: Type.String() }), run: async () => ({ text: 'asked' }) },
})
`
const TEAM = `
name: "@local/asks"
version: 1.0.0
phases: [{ name: ask, agent: asks, sources: [{ name: x }] }]
`

afterAll(killProcesses)

test('a missing setting is an error to whoever waits, and else a run that can be resumed once it is set', async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'asks.ts'), ASKS)
  const path = files({ 'team.yml': TEAM })
  const daemon = await spawnDaemon({ home })
  const runs = async () => (await daemon.call('/v1/runs/list', {})).runs
  const refused = await daemon.post('/v1/runs/start', { path })
  expect([refused.status, await runs()]).toEqual([400, []])

  const begun = await daemon.call('/v1/runs/start', { path, unattended: true })
  expect(begun).toMatchObject({ state: 'failed', reason: 'not_started' })
  const record = await daemon.ended(begun.run_id)
  expect(record).toMatchObject({ state: 'failed', reason: 'not_started', started_at: null })
  expect(record.error?.message).toContain('token')

  const detached = await command(['run', path, '--detach'], { home })
  expect(detached.code).toBe(2)
  expect(detached.stderr).toContain('could not begin')
  expect(await runs()).toHaveLength(2)
  const why = await command(['why', detached.stdout.trim()], { home })
  expect(why.stdout).toContain('token')

  await command(['settings', 'set', 'agents.asks.token', '"t"'], { home })
  const resumed = await command(['resume', begun.run_id], { home })
  expect([resumed.code, (await daemon.ended(begun.run_id)).state]).toEqual([0, 'completed'])
}, 60_000)

test('a team that cannot be read makes no run', async () => {
  const daemon = await spawnDaemon()
  const refused = await daemon.post('/v1/runs/start', { path: '/nowhere/team', unattended: true })
  expect([refused.status, (await daemon.call('/v1/runs/list', {})).runs]).toEqual([400, []])
}, 60_000)
