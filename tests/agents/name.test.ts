// The name under which an agent was found, or the account that a team names: what fails says so, and which of its own
// settings to look at.

import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../lib/program/install-root.ts'
import { spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { fakeWiki } from '../vendors/wiki.ts'

/** The error of a phase that reads a page with a wrong token; also of a copy of the agent that is named `pages`. */
async function refusal(reference: string) {
  using wiki = fakeWiki()
  const home = folder()
  mkdirSync(join(home, 'agents'))
  cpSync(join(ROOT, 'agents/wiki.ts'), join(home, 'agents/pages.ts'))
  const settings = { base_url: wiki.url, email: 'someone@acme.test', api_token: 'canary-that-is-wrong' }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { [reference]: settings } }), { mode: 0o600 })
  const path = folder()
  const phase = { name: 'page', agent: reference, action: 'get_page', sources: [{ name: 'p.md', ref: '131073' }] }
  const team = { name: '@local/name', version: '1.0.0', phases: [phase] }
  writeFileSync(join(path, 'team.yml'), JSON.stringify(team))
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  await daemon.stop()
  return phases[0].error
}

test.each(['wiki', 'wiki@eu', 'pages', 'pages@eu'])('%s is what its errors speak of', async reference => {
  const error = await refusal(reference)
  expect(error).toMatchObject({ code: 'unauthorized' })
  expect(error.message).toStartWith(`[${reference}.get_page] get page 131073: HTTP 401`)
  expect(error.hint).toContain(`set agents.${reference}.api_token again`)
  const others = ['wiki', 'wiki@eu', 'pages', 'pages@eu'].filter(name => name !== reference)
  for (const other of others)
    expect(JSON.stringify(error)).not.toMatch(new RegExp(`agents\\.${other}\\.|\\[${other}[.\\]]`))
})
