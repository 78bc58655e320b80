// A daemon with a real hub: enrolment, packages, dispatched runs, and callers from elsewhere with the hub's credentials.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { HELLO } from './teams.ts'

let hub: TestHub
let daemon: RunningDaemon
let daemonId: string
/** Of a person at another machine: signed in, and with a durable token. */
const person = folder()
let durable: string
let dispatched: string

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  durable = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'durable' })).token
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'desk' } })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  daemonId = daemons[0].id ?? daemons[0].daemon_id
})
afterAll(() => hub.stop())

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const mint = async (action: string, more: object = {}) =>
  (await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id: daemonId, action, ...more })).token as string

test('a team is published, dispatched, run here and reported to the hub', async () => {
  const signedIn = await command(['login', 'admin', '--hub', hub.url], { home: person, stdin: `${ADMIN_PASSWORD}\n` })
  expect(signedIn.code).toBe(0)
  const path = files({ 'team.yml': HELLO })
  const published = await command(['publish', path, '--scope', 'admin', '--json'], { home: person })
  expect(published).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(published.stdout)).toMatchObject({ name: '@admin/hello', version: '1.0.0' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/hello' })

  const args = ['dispatch', '@admin/hello', '--realm', hub.realm, '-i', 'who=ada', '-i', 'times=2', '--json']
  const sent = await command(args, { home: person })
  expect(sent).toMatchObject({ code: 0, stderr: '' })
  const { run_id } = JSON.parse(sent.stdout)
  dispatched = run_id
  const record = await until(
    () => hub.call(hub.admin, 'runs/get', { run_id }),
    ({ data }) => data?.state === 'completed',
  )
  expect(record.data).toMatchObject({ team: '@admin/hello', inputs: { who: 'ada', times: 2 }, outputs: { times: 2 } })
  expect(await daemon.call('/v1/runs/get', { run_id })).toMatchObject({ state: 'completed', workspace: null })

  expect((await command(['logout'], { home: person })).code).toBe(0)
  expect((await command(['publish', path, '--hub', hub.url], { home: person })).code).toBe(2)
})

test('a dispatch waits for a daemon that has its environment, and the run has its secrets there', async () => {
  const text =
    'name: "@admin/placed"\nversion: 1.0.0\nenvironments: { allow: [staging] }\nphases:\n' +
    '  - { name: show, agent: exec, env: { DB: "{{ secrets.db }}" }, commands: [{ name: c, run: \'printf %s "$DB" | wc -c > "$CADRE_RESULT"\' }] }\n'
  await hub.addTeam(text)
  const order = { realm_id: hub.realm, team: '@admin/placed', environment: 'staging' }
  const { run_id, waiting_for } = await hub.ok(hub.admin, 'dispatch/run', order)
  expect(waiting_for).toContain('environment staging')
  const value = JSON.stringify({ value: 'canary-of-staging', teams: ['@admin/*'] })
  const set = ['settings', 'set', 'environments.staging.secrets.db', value]
  expect((await command(set, { home: daemon.home })).code).toBe(0)
  const { data } = await until(
    () => hub.call(hub.admin, 'runs/get', { run_id }),
    ({ data }) => data?.completed_at !== null,
  )
  expect(data).toMatchObject({ state: 'completed', environment: 'staging' })
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id })
  expect(phases[0].data).toBe('canary-of-staging'.length)
}, 60_000)

test('without a daemon, an enrolled home gets packages from its hub, as a daemon does', async () => {
  const home = folder()
  const { token, id } = await hub.realmToken(hub.admin, hub.realm)
  expect((await command(['enrol', '--hub', hub.url], { home, stdin: token })).code).toBe(0)
  const here = (...args: string[]) => command(args, { home })
  const trust = (value: string) => here('settings', 'set', 'packages.trust', value)
  expect((await trust('["@other"]')).code).toBe(0)
  for (const [of, ...more] of [['validate'], ['plan', '-i', 'who=ada'], ['run', '-i', 'who=ada']] as const) {
    expect(await here(of, '@admin/hello', ...more)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('packages.trust'),
    })
  }
  expect(existsSync(join(home, 'packages/@admin/hello/1.0.0'))).toBe(false)
  expect((await here('settings', 'set', 'packages.trust')).code).toBe(0)
  expect(await here('validate', '@admin/hello')).toMatchObject({ code: 0, stderr: '' })
  expect(existsSync(join(home, 'packages/@admin/hello/1.0.0'))).toBe(true)
  rmSync(join(home, 'packages'), { recursive: true })
  expect((await here('plan', '@admin/hello', '-i', 'who=ada')).code).toBe(0)
  rmSync(join(home, 'packages'), { recursive: true })
  const ran = await here('run', '@admin/hello', '-i', 'who=ada', '--json')
  expect(JSON.parse(ran.stdout)).toMatchObject({ team: '@admin/hello', state: 'completed' })
  expect(await here('run', '@admin/none')).toMatchObject({ code: 2, stderr: expect.stringContaining('no team') })

  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  const refused = await here('validate', '@admin/none')
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the hub refuses the credential')])
  expect((await here('settings', 'set', 'hub.url', 'http://127.0.0.1:1')).code).toBe(0)
  expect((await here('run', '@admin/hello', '-i', 'who=ada')).code).toBe(0)
  for (const of of ['run', 'validate', 'plan']) {
    const { code, stderr } = await here(of, '@admin/none')
    expect([of, code]).toEqual([of, 1])
    expect(stderr).toMatch(
      /^error {2}@admin\/none is not installed here, and the hub at http:\/\/127\.0\.0\.1:1 does not answer: [^\n]+\n$/,
    )
  }
}, 60_000)

describe('callers from elsewhere', () => {
  const elsewhere = { host: 'desk.example' }

  test('a user of the realm reads and starts teams, never paths', async () => {
    const as = { ...elsewhere, ...bearer(durable) }
    expect((await daemon.post('/v1/runs/list', {}, as)).status).toBe(200)
    expect((await daemon.post('/v1/runs/start', { path: '/etc' }, as)).status).toBe(403)
    expect((await daemon.post('/v1/settings/list', {}, as)).status).toBe(403)
    expect((await daemon.post('/v1/workspaces/add', { path: '/tmp' }, as)).status).toBe(403)
    const { run_id } = await daemon.call('/v1/runs/start', { team: '@admin/hello' }, as)
    expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', workspace: null })
  })

  test('a user outside the realm is nobody here', async () => {
    const { token } = await hub.account('stranger')
    expect((await daemon.post('/v1/runs/list', {}, { ...elsewhere, ...bearer(token) })).status).toBe(401)
    const forged = `${durable.slice(0, -1)}${durable.endsWith('x') ? 'y' : 'x'}`
    expect((await daemon.post('/v1/runs/list', {}, { ...elsewhere, ...bearer(forged) })).status).toBe(401)
  })

  test('a dispatch token does its one action, for its one run', async () => {
    const { runs } = await daemon.call('/v1/runs/list')
    const other = runs.find((run: { run_id: string }) => run.run_id !== dispatched)
    const access = { ...elsewhere, ...bearer(await mint('access')) }
    expect((await daemon.post('/v1/runs/get', { run_id: dispatched }, access)).status).toBe(200)
    expect((await daemon.post('/v1/runs/start', { team: '@admin/hello' }, access)).status).toBe(403)
    const one = { ...elsewhere, ...bearer(await mint('access', { run_id: dispatched })) }
    expect((await daemon.post('/v1/runs/tree', { run_id: dispatched }, one)).status).toBe(200)
    expect((await daemon.post('/v1/runs/tree', { run_id: other.run_id }, one)).status).toBe(403)
    expect((await daemon.post('/v1/runs/list', {}, one)).status).toBe(403)
    const execute = { ...elsewhere, ...bearer(await mint('execute')) }
    expect((await daemon.post('/v1/runs/start', { team: '@admin/hello' }, execute)).status).toBe(200)
    expect((await daemon.post('/v1/runs/start', { team: '@admin/hello' }, execute)).status).toBe(401)
  })
})

test('a session token is no api key', async () => {
  const started = await command(['serve', '--port', '0'], {
    home: folder(),
    env: { CADRE_HUB_URL: hub.url, CADRE_API_KEY: hub.admin },
  })
  expect(started).toMatchObject({ code: 2, stdout: '' })
  expect(started.stderr).toContain('session')
  const set = (value: string) => daemon.post('/v1/settings/set', { key: 'hub.api_key', value }, bearer(daemon.token))
  expect((await set(hub.admin)).body.error).toMatchObject({ code: 'invalid_request' })
  expect((await set(`\${cmd:echo ${hub.admin}}`)).body.error).toMatchObject({ code: 'invalid_request' })
  expect((await set(`\${cmd:echo ${durable}}`)).status).toBe(200)
  expect((await set(durable)).status).toBe(200)
})

async function until<T>(ask: () => Promise<T>, enough: (reply: T) => boolean): Promise<T> {
  for (const end = Date.now() + 10_000; ; await Bun.sleep(50)) {
    const reply = await ask()
    if (enough(reply) || Date.now() > end) return reply
  }
}
