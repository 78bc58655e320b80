// Another account of an agent: what fails says which of its own settings to look at.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { accountOf } from '../../lib/agent/account.ts'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { failureOf } from '../vendors/bad-days.ts'
import { fakeWiki } from '../vendors/wiki.ts'

test('of a phase names the settings of its account', async () => {
  using wiki = fakeWiki()
  const home = folder()
  const refused = { base_url: wiki.url, email: 'someone@acme.test', api_token: 'canary-that-is-wrong' }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { 'wiki@eu': refused } }), { mode: 0o600 })
  const path = folder()
  const phase = { name: 'page', agent: 'wiki@eu', action: 'get_page', sources: [{ name: 'p.md', ref: '131073' }] }
  const team = { name: '@local/account', version: '1.0.0', phases: [phase] }
  writeFileSync(join(path, 'team.yml'), JSON.stringify(team))
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  expect(phases[0].error).toMatchObject({ code: 'unauthorized' })
  expect(phases[0].error.hint).toContain('agents.wiki@eu.api_token')
  expect(JSON.stringify(phases)).not.toContain('agents.wiki.')
  await daemon.stop()
})

test('keeps all that an error says beside', async () => {
  const cause = new Error('below')
  const failing = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Fails.',
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({ name: Type.String() }),
      run() {
        const hint = 'check agents.stock.token and agents.stock, not agents.stocks.token or agents.stock@us.token'
        throw new AgentError('[stock] no', { code: 'rejected', hint, retryable: true, sent: 'no', cause })
      },
    },
  })
  const account = accountOf(failing, 'stock', 'stock@eu$&')
  const error = await failureOf(account.source!.run({ name: 'x' }, {} as never))
  expect(error).toMatchObject({ message: '[stock] no', code: 'rejected', retryable: true, sent: 'no', cause })
  expect(error.hint).toBe(
    'check agents.stock@eu$&.token and agents.stock@eu$&, not agents.stocks.token or agents.stock@us.token',
  )
})
