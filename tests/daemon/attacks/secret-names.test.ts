// Attacks on named secrets by what a package calls its teams: the right to a secret is that of the package.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

const SECRET = 'canary-of-the-payments'

let hub: TestHub
let daemon: RunningDaemon
beforeAll(async () => {
  hub = await startTestHub()
  for (const slug of ['acme', 'mallory']) await hub.ok(hub.admin, 'scopes/create', { org_id: 1, slug })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const setting = { key: 'secrets.pay', value: { value: SECRET, teams: ['@acme/*'] } }
  await daemon.call('/v1/settings/set', setting, { authorization: `Bearer ${daemon.token}` })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const head = (name: string) => `name: "${name}"\nversion: 1.0.0\n`
const reads = `phases: [{ name: a, agent: exec, commands: [{ name: c, env: { PAY: "{{ secrets.pay }}" }, run: 'test -n "$PAY"' }] }]\n`
const calls = (ref: string) => `phases: [{ name: a, type: team, team: "${ref}" }]\n`

/** Publishes the files and starts the team of their root; answers the status, and the state in which the run ended. */
async function start(team: string, files: Record<string, string>) {
  const sent = Object.entries(files).map(([path, text]) => ({ path, content_base64: btoa(text) }))
  const published = await hub.call(hub.admin, 'teams/publish', { files: sent })
  if (published.status !== 200) return [published.status, published.error.message]
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team })
  const { status, body } = await daemon.post('/v1/runs/start', { team })
  if (status !== 200) return [status, body.error.message]
  return [status, (await daemon.ended(body.data.run_id)).state]
}

test('a package that is named reads it, in the teams of its folders too, whatever they are called', async () => {
  const team = '@acme/pays'
  const files = { 'team.yml': head(team) + calls('./below'), 'below/team.yml': head('@other/below') + reads }
  expect(await start(team, files)).toEqual([200, 'completed'])
})

test('a team that is called like another package reads nothing of it', async () => {
  const team = '@mallory/poses'
  const files = { 'team.yml': head(team) + calls('./below'), 'below/team.yml': head('@acme/pays') + reads }
  expect(await start(team, files)).toEqual([400, expect.stringContaining(`package ${team} may not read`)])
})

test('nor does one in a folder that is called like another package', async () => {
  const team = '@mallory/folders'
  const folder = '@acme/pays@1.0.0'
  const files = { 'team.yml': head(team) + calls(`./${folder}`), [`${folder}/team.yml`]: head('@acme/pays') + reads }
  expect(await start(team, files)).toEqual([400, expect.any(String)])
})

test('nor one that another package calls', async () => {
  const team = '@mallory/inner'
  expect(await start(team, { 'team.yml': head(team) + reads })).toEqual([400, expect.any(String)])
  const outer = '@acme/outer'
  const files = { 'team.yml': head(outer) + calls(team) }
  expect(await start(outer, files)).toEqual([400, expect.stringContaining(`package ${team} may not read`)])
})
