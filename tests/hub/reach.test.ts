// What people look at before they let a version run, and how they find runs and daemons: `teams/reach`, the search of
// `runs/list`, and the clock of a daemon.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const file = (path: string, text: string) => ({ path, content_base64: Buffer.from(text).toString('base64') })
const publish = (text: string, ...more: ReturnType<typeof file>[]) =>
  hub.ok(hub.admin, 'teams/publish', { scope: 'admin', files: [file('team.yml', text), ...more] })

const SUB = `name: "@local/sub"
version: 1.0.0
phases:
  - { name: push, agent: http, target_entries: [{ name: t, url: "https://sub.example/{{ run.id }}", body: x, method: POST }] }
`

test('a version says what it writes, runs and reaches, and with which credentials', async () => {
  await publish(
    `name: "@local/wide"
version: 1.0.0
phases:
  - { name: read, agent: http, sources: [{ name: s, url: "https://read.example/x" }, { name: o, account: crm, url: /owners }] }
  - { name: note, agent: issues, action: add_comment, target_entries: [{ name: c, ref: A-1, file: x.md }] }
  - { name: shell, agent: exec, env: { KEY: "{{ secrets.deploy }}" }, commands: [{ name: c, run: "make deploy" }] }
  - { name: below, type: team, team: ./sub }
  - { name: tell, agent: chat, notify: { on_complete: {} } }
`,
    file('sub/team.yml', SUB),
  )
  const reach = await hub.ok(hub.admin, 'teams/reach', { team: '@admin/wide@1.0.0' })
  expect(reach.writes).toMatchObject([
    { phase: ['tell'], agent: 'chat', action: null, to: null },
    {
      phase: ['note'],
      agent: 'issues',
      action: 'add_comment',
      effect: 'once',
      credentials: ['agents.issues.api_token'],
    },
    { phase: ['below', 'push'], agent: 'http', to: 'https://sub.example/{{ run.id }}' },
  ])
  expect(reach.commands).toEqual(['shell: make deploy'])
  expect(reach.hosts).toEqual(['https://read.example', 'https://sub.example'])
  expect(reach.secrets).toEqual(['deploy'])
  expect(reach.accounts).toEqual(['crm'])
  expect(reach.agents.map(({ name }: { name: string }) => name)).toEqual(['chat', 'crm', 'exec', 'http', 'issues'])
  expect(reach.agents[1].credentials).toEqual(['agents.crm.access_token'])
  const missing = await hub.call(hub.admin, 'teams/reach', { team: '@admin/wide@9.0.0' })
  expect(missing.status).toBe(404)
})

test('runs are found by a part of the name, the team or the id, and by nothing else', async () => {
  await publish(`name: "@local/found"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
`)
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/found' })
  const order = { realm_id: hub.realm, team: '@admin/found' }
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { ...order, run_name: 'Nightly 100%' })
  const other = await hub.ok(hub.admin, 'dispatch/run', { ...order, run_name: 'Weekly' })
  const search = async (search: string) =>
    (await hub.ok(hub.admin, 'runs/list', { search })).runs.map((run: { run_id: string }) => run.run_id)
  expect(await search('nightly')).toEqual([run_id])
  expect(await search('0%')).toEqual([run_id])
  expect((await search('/FOUND')).sort()).toEqual([run_id, other.run_id].sort())
  expect(await search(run_id.slice(3, 30))).toEqual([run_id])
  for (const nothing of ['%', '_', '\\', 'no such']) {
    expect([nothing, await search(nothing)]).toEqual([nothing, nothing === '%' ? [run_id] : []])
  }
})

test('the hub says by how much the clock of a daemon is off, once it has heard it', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'late' })
  const offset = async () => (await hub.ok(hub.admin, 'daemons/get', { daemon_id })).clock_offset
  expect(await offset()).toBeNull()
  // Each hub knows what it has heard itself, and there may be two here.
  for (let hubs = 0; hubs < 2; hubs++) {
    await hub.ok(token, 'daemons/heartbeat', { daemon_id, clock: Date.now() - 60_000 })
  }
  expect(Math.abs((await offset()) + 60_000)).toBeLessThan(5_000)
})
