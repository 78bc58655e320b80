// Requests of http in the name of another agent: who may send them, where the credential goes, and that nobody gets to see
// it. The credential of the agent is for its own system alone; a package may use it only with leave.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeVendor, fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'
import { variantsOf } from '../support/variants.ts'

const TOKENS = { plain: 'canary-crm-plain-1', eu: 'canary-crm-eu-22', staging: 'canary-crm-staging-333' }

let hub: HostileHub
let daemon: RunningDaemon
/** The system of the agent, and a server that should never see its credential. */
let vendor: FakeVendor
let other: FakeVendor
const home = folder()

beforeAll(async () => {
  hub = startHostileHub()
  vendor = fakeVendor(({ path, headers }) => {
    if (path.endsWith('/away')) return Response.redirect(`${other.url}/taken`, 302)
    if (path.endsWith('/up')) return Response.redirect(`${vendor.url}/elsewhere`, 302)
    if (path.endsWith('/told')) return new Response(headers.get('authorization'), { status: 400 })
    return { path }
  })
  other = fakeVendor(({ path }) => ({ path }))
  const crm = { access_token: TOKENS.plain, base_url: `${vendor.url}/crm`, lend: ['@acme/may', '@lent/*'] }
  const settings = {
    agents: {
      crm,
      'crm@eu': { access_token: TOKENS.eu, base_url: `${vendor.url}/eu` },
      'crm@text': { access_token: TOKENS.eu, base_url: `${vendor.url}/eu`, lend: '@acme/*' },
      'crm@variable': { access_token: TOKENS.eu, base_url: `${vendor.url}/eu`, lend: '${env:LEND}' },
      'crm@everything': { access_token: TOKENS.eu, base_url: `${vendor.url}/eu`, lend: ['*'] },
    },
    environments: {
      staging: { agents: { crm: { access_token: TOKENS.staging, base_url: `${vendor.url}/staging` } } },
      heir: { inherit: true },
      heir_without: { inherit: true, agents: { crm: { lend: null } } },
    },
  }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  daemon = await spawnDaemon({ home, env: { ...hub.env, LEND: '@acme/*', CADRE_LOG_LEVEL: 'debug' } })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
  vendor[Symbol.dispose]()
  other[Symbol.dispose]()
})
beforeEach(() => {
  vendor.seen.length = 0
  other.seen.length = 0
})

const team = (name: string, phases: object[], more: object = {}) =>
  JSON.stringify({ name, version: '1.0.0', ...more, phases })
const ask = (entry: object, more: object = {}) => ({
  ...{ name: 'ask', agent: 'http', sources: [{ name: 'reply.json', account: 'crm', url: '/items', ...entry }] },
  ...more,
})
const use = (name: string, inputs: object = {}) => ({ name: 'use', type: 'team', team: name, inputs })
const local = (...phases: object[]) => files({ 'team.yml': team('@local/a', phases) })
/** What the system saw, in order: the path, and with which authorization. A daemon of a hub looks at its agents besides. */
const seen = (server = vendor) =>
  server.seen
    .filter(({ path }) => !path.endsWith('/access-token-info'))
    .map(({ path, headers }) => [path, headers.get('authorization')])
const asOwner = (path: string, body: object = {}) =>
  daemon.call(path, body, { authorization: `Bearer ${daemon.token}` })

async function run(request: object) {
  const { run_id } = await daemon.call('/v1/runs/start', request)
  const record = await daemon.ended(run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  return { ...record, run_id, phases }
}
const refusal = async (request: object) => {
  const { status, body } = await daemon.post('/v1/runs/start', request)
  return [status, body.error?.message ?? '']
}
const NEEDS_LEAVE = (name: string, account = 'crm') =>
  expect.stringContaining(
    `the package ${name} may not send requests in the name of the agent ${account} (\`account: ${account}\`)`,
  )

test('a team of a path uses the address and the authorization of the agent, of the account that it names', async () => {
  const path = local(
    ask({}),
    ask({ account: 'crm@eu', url: '/a/../items?x={{ inputs.x }}' }, { name: 'eu', depends_on: ['ask'] }),
    ask({ url: `${vendor.url}/crm/whole` }, { name: 'whole', depends_on: ['eu'] }),
  ).concat('/team.yml')
  writeFileSync(path, readFileSync(path, 'utf8').replace('"phases"', '"inputs":[{"name":"x"}],"phases"'))
  const { state } = await run({ path, inputs: { x: 'y' } })
  expect(state).toBe('completed')
  expect(seen()).toEqual([
    ['/crm/items', `Bearer ${TOKENS.plain}`],
    ['/eu/items', `Bearer ${TOKENS.eu}`],
    ['/crm/whole', `Bearer ${TOKENS.plain}`],
  ])
})

test('the address is confined, whatever a value makes of it, and in each item of a map', async () => {
  const urls = [
    `${other.url}/x`,
    `${vendor.url}/eu/items`,
    `${vendor.url.replace('http://', 'http://me@')}/crm/items`,
    `${vendor.url}@127.0.0.1:1/crm`,
    '/../eu/items',
    '/%2e%2e/eu/items',
    '/..%2feu/items',
  ]
  const each = { name: 'each', type: 'map', items: '{{ inputs.urls }}', team: './one', inputs: { url: '{{ item }}' } }
  const path = files({
    'team.yml': team('@local/a', [{ ...each, on_item_failure: 'continue' }], {
      inputs: [{ name: 'urls', type: 'list' }],
    }),
    'one/team.yml': team('@local/one', [ask({ url: '{{ inputs.url }}' })], { inputs: [{ name: 'url' }] }),
  })
  const { phases } = await run({ path, inputs: { urls: [...urls, '/items'] } })
  const states = phases[0].data.items.map(({ state }: { state: string }) => state)
  expect(states).toEqual([...urls.map(() => 'failed'), 'completed'])
  expect([seen(), seen(other)]).toEqual([[['/crm/items', `Bearer ${TOKENS.plain}`]], []])
})

test('an account that a value names is refused, before the run or at the latest in it', async () => {
  const inputs = [{ name: 'a' }, { name: 'e', type: 'object' }]
  const named = files({ 'team.yml': team('@local/a', [ask({ account: '{{ inputs.a }}' })], { inputs }) })
  const { status, body } = await daemon.post('/v1/runs/start', { path: named, inputs: { a: 'crm', e: {} } })
  expect([status, body.error.details]).toEqual([
    400,
    [
      expect.objectContaining({
        message: expect.stringContaining('whose credential is used stands in the file itself'),
      }),
    ],
  ])
  const whole = { name: 'ask', agent: 'http', sources: ['{{ inputs.e }}'] }
  const path = files({ 'team.yml': team('@local/a', [whole], { inputs }) })
  const entry = { name: 'x', url: `${vendor.url}/crm/items`, account: 'crm' }
  const { state, error } = await run({ path, inputs: { a: '', e: entry } })
  expect([state, error?.message, seen()]).toEqual([
    'failed',
    expect.stringContaining('`account` must stand in the file itself'),
    [],
  ])
})

test('a redirect takes the credential along neither to another host nor out of the path', async () => {
  const { state } = await run({ path: local(ask({ url: '/away' }), ask({ url: '/up' }, { name: 'up' })) })
  expect([state, seen(other)]).toEqual(['failed', []])
  const path = local(
    ask({ url: '/up' }),
    { name: 'open', agent: 'http', depends_on: ['ask'], sources: [{ name: 'x', url: `${other.url}/open` }] },
    ask({ url: '/away' }, { name: 'away', depends_on: ['open'] }),
  )
  expect((await run({ path })).state).toBe('completed')
  expect(seen(other)).toEqual([
    ['/open', null],
    ['/taken', null],
  ])
  expect(seen().filter(([path]) => path === '/elsewhere')).toEqual([
    ['/elsewhere', null],
    ['/elsewhere', null],
  ])
})

test('a team cannot put an authorization of its own into the request', async () => {
  const { state, error } = await run({ path: local(ask({ headers: { AUTHORIZATION: 'Bearer mine' } })) })
  expect([state, error?.message, seen()]).toEqual([
    'failed',
    expect.stringContaining('the account crm authorizes the request, and `headers` has authorization, too'),
    [],
  ])
})

test('a package needs leave, which is asked for before the run begins', async () => {
  hub.publish('@acme/may', team('@acme/may', [ask({})]))
  hub.publish('@acme/not', team('@acme/not', [ask({})]))
  hub.publish('@lent/any', {
    'team.yml': team('@lent/any', [use('./sub')]),
    'sub/team.yml': team('@lent/x', [ask({})]),
  })
  expect(await refusal({ team: '@acme/not@1.0.0' })).toEqual([400, NEEDS_LEAVE('@acme/not')])
  const [, said] = await refusal({ team: '@acme/not@1.0.0' })
  expect(said).toContain(`settings set agents.crm.lend '["@acme/may","@lent/*","@acme/not"]'`)
  for (const name of ['@acme/may', '@lent/any']) expect((await run({ team: `${name}@1.0.0` })).state).toBe('completed')
  expect(seen()).toEqual([
    ['/crm/items', `Bearer ${TOKENS.plain}`],
    ['/crm/items', `Bearer ${TOKENS.plain}`],
  ])
})

test('the package whose file has the entry needs it, and not the team that calls it', async () => {
  hub.publish('@acme/not', team('@acme/not', [ask({})]))
  hub.publish('@acme/calls', team('@acme/calls', [use('@acme/not')]))
  hub.publish('@lent/calls', team('@lent/calls', [use('@acme/not')]))
  hub.publish('@acme/may', team('@acme/may', [ask({})]))
  hub.publish('@acme/through', team('@acme/through', [use('@acme/may')]))
  for (const name of ['@acme/not', '@acme/calls', '@lent/calls']) {
    expect(await refusal({ path: local(use(name)) })).toEqual([400, NEEDS_LEAVE('@acme/not')])
    expect(await refusal({ team: `${name}@1.0.0` })).toEqual([400, NEEDS_LEAVE('@acme/not')])
  }
  expect((await run({ path: local(use('@acme/through')) })).state).toBe('completed')
  expect(seen().length).toBe(1)
})

test('a list of another form lends to nobody', async () => {
  for (const account of ['crm@eu', 'crm@text', 'crm@variable', 'crm@everything']) {
    const name = `@acme/${account.replace('@', '-')}`
    hub.publish(name, team(name, [ask({ account })]))
    const [status, message] = await refusal({ team: `${name}@1.0.0` })
    expect([status, message]).toEqual([400, NEEDS_LEAVE(name, account)])
  }
  expect(seen()).toEqual([])
})

test('a dispatched run needs it as well', async () => {
  const order = async (name: string) => {
    const job = jobOf('run', runOrder(hub.publish(name, team(name, [ask({})]))))
    hub.deliver(job)
    return { ...(await hub.outcome(job.job_id)), run_id: job.run_id }
  }
  const refused = await order('@acme/sent')
  const { reason, error } = await daemon.call('/v1/runs/get', { run_id: refused.run_id })
  expect([reason, error.message, seen()]).toEqual(['not_started', NEEDS_LEAVE('@acme/sent'), []])
  const { run_id } = await order('@acme/may')
  expect([(await daemon.ended(run_id)).state, seen().length]).toEqual(['completed', 1])
})

test('an environment has its own credential, and lends by its own list', async () => {
  hub.publish('@acme/may', team('@acme/may', [ask({})]))
  expect((await run({ path: local(ask({})), environment: 'staging' })).state).toBe('completed')
  expect(seen()).toEqual([['/staging/items', `Bearer ${TOKENS.staging}`]])
  for (const environment of ['staging', 'heir_without']) {
    expect(await refusal({ team: '@acme/may@1.0.0', environment })).toEqual([400, NEEDS_LEAVE('@acme/may')])
  }
  expect((await run({ team: '@acme/may@1.0.0', environment: 'heir' })).state).toBe('completed')
  const [, said] = await refusal({ team: '@acme/may@1.0.0', environment: 'staging' })
  expect(said).toContain('settings set environments.staging.agents.crm.lend')
})

test('leave that is withdrawn while the run waits is gone', async () => {
  const door = join(folder(), 'open')
  const wait = {
    name: 'wait',
    agent: 'exec',
    commands: [{ name: 'w', run: `until [ -e ${door} ]; do sleep 0.05; done` }],
  }
  hub.publish('@lent/waits', team('@lent/waits', [wait, ask({}, { depends_on: ['wait'] })]))
  await asOwner('/v1/settings/set', { key: 'exec.sandbox', value: 'none' })
  await asOwner('/v1/settings/set', { key: 'packages.sandbox', value: 'none' })
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@lent/waits@1.0.0' })
  await asOwner('/v1/settings/set', { key: 'agents.crm.lend', value: ['@acme/may'] })
  writeFileSync(door, '')
  const { state, error } = await daemon.ended(run_id)
  expect([state, error?.message, seen()]).toEqual(['failed', NEEDS_LEAVE('@lent/waits'), []])
  await asOwner('/v1/settings/set', { key: 'agents.crm.lend', value: ['@acme/may', '@lent/*'] })
})

test('plan and doctor show it before anything runs', async () => {
  const post = ask({ method: 'POST', body: 'x' })
  hub.publish('@acme/plans', team('@acme/plans', [post]))
  const planned = await daemon.call('/v1/teams/plan', { path: local(post, use('@acme/plans')) })
  expect(planned.team.phases[0].requests).toEqual([
    { name: 'reply.json', method: 'POST', url: '/items', account: 'crm' },
  ])
  expect(planned.writes).toMatchObject([
    { agent: 'http', to: 'crm /items', credentials: ['agents.crm.access_token'] },
    { agent: 'http', to: 'crm /items', credentials: ['agents.crm.access_token'] },
  ])
  expect(planned.missing).toEqual([{ path: 'agents.crm.lend', message: NEEDS_LEAVE('@acme/plans') }])
  const { findings } = await asOwner('/v1/agents/doctor', { agent: 'crm' })
  expect(findings[0].text).toEndWith('; @acme/may and @lent/* may send any request in its name (lend)')
  const shown = await command(['plan', local(post)], { home })
  expect(shown.stdout).toContain('POST /items in the name of crm')
})

test('the list is a setting of agents that have an account, and of packages by name', async () => {
  const set = async (key: string, value: unknown) =>
    (await daemon.post('/v1/settings/set', { key, value }, { authorization: `Bearer ${daemon.token}` })).status
  expect(await set('agents.helpdesk.lend', '@acme/sync @acme/report-*')).toBe(200)
  const { settings } = await asOwner('/v1/settings/list')
  expect(settings).toContainEqual({ key: 'agents.helpdesk.lend', value: ['@acme/sync', '@acme/report-*'] })
  for (const value of [['*'], ['acme/sync'], '@acme', [], '${env:LEND}', true, ['@acme/*/x']]) {
    expect([value, await set('agents.helpdesk.lend', value)]).toEqual([
      value,
      Array.isArray(value) && value.length === 0 ? 200 : 400,
    ])
  }
  expect(await set('agents.chat.lend', ['@acme/*'])).toBe(400)
  expect(await set('agents.helpdesk.lend', null)).toBe(200)
  const { findings } = await asOwner('/v1/agents/doctor', { agent: 'crm@text' })
  expect(findings[0]).toMatchObject({
    state: 'wrong',
    text: expect.stringContaining('agents.crm@text.lend must be a list of names of packages'),
  })
})

test('nobody gets to see the credential', async () => {
  const { phases } = await run({ path: local(ask({ url: '/told' })) })
  expect(phases[0].error.message).toContain('***')
  const below = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const texts = below
    .filter(({ name }) => name !== 'settings.yml')
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
  const all = [...texts, daemon.output.stdout, daemon.output.stderr, JSON.stringify(hub.changes)]
  for (const token of Object.values(TOKENS)) {
    for (const variant of variantsOf(token)) expect(all.filter(text => text.includes(variant)).length).toBe(0)
  }
})
