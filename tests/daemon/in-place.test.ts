// A map in place from a file to a realm: what people see of it before a run, and that it is nothing without its team.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'desk' } })
})
afterAll(() => hub.stop())

const TEAM = (name: string) => `name: "${name}"
version: 1.0.0
inputs: [{ name: names, type: list, default: [a, b] }]
phases:
  - name: each
    type: map
    items: "{{ inputs.names }}"
    key: "{{ item }}"
    outputs: [{ name: said, value: "{{ phases.say.data.said }}" }]
    phases:
      - name: say
        agent: exec
        env: { TOKEN: "{{ secrets.token }}", NAME: "{{ item }}" }
        commands: [{ name: say, run: 'echo "{\\"said\\": \\"$NAME \${#TOKEN}\\"}" > "$CADRE_RESULT"' }]
      - name: post
        type: map
        depends_on: [say]
        items: "{{ inputs.names.filter(n, n == 'none') }}"
        agent: http
        target_entries: [{ name: post, url: "https://post.example/{{ item }}", method: POST, body: x }]
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.said) }}" }]
`
const here = (...args: string[]) => command(args, { home: daemon.home })

test('a plan shows what it does, to any depth', async () => {
  const path = files({ 'team.yml': TEAM('@local/digest') })
  const plan = await daemon.call('/v1/teams/plan', { path })
  expect(plan.secrets).toEqual(['token'])
  expect(plan.missing).toMatchObject([{ path: expect.stringContaining('token') }])
  expect(plan.writes).toMatchObject([{ phase: ['each', 'post', 'post'], agent: 'http', effect: 'once' }])
  expect(plan.team.phases[0]).toMatchObject({
    name: 'each',
    type: 'map',
    below: {
      name: '@local/digest/each',
      phases: [{ name: 'say' }, { name: 'post', below: { name: '@local/digest/each/post' } }],
    },
  })
})

test('a package with one is published, dispatched and reported, with the right of the package to its secret', async () => {
  expect((await here('settings', 'set', 'secrets.token', '{"value":"s3cr3t","teams":["@other/*"]}')).code).toBe(0)
  await hub.addTeam(TEAM('@admin/digest'))
  const reach = await hub.ok(hub.admin, 'teams/reach', { team: '@admin/digest@1.0.0' })
  expect(reach).toMatchObject({
    writes: [{ phase: ['each', 'post', 'post'], agent: 'http', to: 'https://post.example/{{ item }}' }],
    commands: ['each › say: echo "{\\"said\\": \\"$NAME ${#TOKEN}\\"}" > "$CADRE_RESULT"'],
    secrets: ['token'],
    agents: [{ name: 'exec' }, { name: 'http' }],
  })
  const refused = await here('run', '@admin/digest')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('token') })
  expect((await here('settings', 'set', 'secrets.token', '{"value":"s3cr3t","teams":["@admin/*"]}')).code).toBe(0)

  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/digest' })
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).completed_at !== null, 'the run')
  expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({
    state: 'completed',
    outputs: { all: ['a 6', 'b 6'] },
  })
  const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id })
  expect(runs.map((run: { call_path: string[] }) => run.call_path)).toEqual([
    ['@admin/digest'],
    ['@admin/digest', '@admin/digest/each'],
    ['@admin/digest', '@admin/digest/each'],
  ])
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: runs[1].run_id })
  expect(phases.map((phase: { name: string; state: string }) => [phase.name, phase.state])).toEqual([
    ['say', 'completed'],
    ['post', 'completed'],
  ])
  const listed = async (body: object) => (await hub.ok(hub.admin, 'runs/list', body)).total
  expect(await listed({ team: 'digest' })).toBe(1)
  expect(await listed({ team: 'each' })).toBe(0)

  const path = files({ 'team.yml': TEAM('@local/digest') })
  const { run_id: own } = await daemon.call('/v1/runs/start', { path })
  expect(await daemon.ended(own)).toMatchObject({ state: 'completed', outputs: { all: ['a 6', 'b 6'] } })
  const { workspaces } = await daemon.envelope('/v1/workspaces/get', 'workspace_list')
  expect(workspaces.find((each: { path: string }) => each.path === path).teams).toEqual(['@local/digest'])
  expect((await daemon.call('/v1/runs/list', { team: 'each' })).total).toBe(0)
})

const NAME = '@admin/digest/each'
const SAYS = `${NAME} is the map \`each\` of @admin/digest, which runs only as a part of it: name @admin/digest`

test.each([
  ['/v1/runs/start', { team: NAME }],
  ['/v1/runs/list', { team: NAME }],
  ['/v1/runs/stats', { team: NAME }],
  ['/v1/teams/history', { team: NAME }],
  ['/v1/teams/validate', { team: NAME }],
  ['/v1/teams/plan', { team: NAME }],
])('it is refused by its name: %s of the daemon', async (route, body) => {
  const reply = await daemon.post(route, body)
  expect(reply.status).toBe(400)
  expect(reply.body.error.message).toBe(SAYS)
})

test.each([
  ['dispatch/run', { team: NAME }],
  ['realms/add_team', { team: NAME }],
  ['runs/list', { team: NAME }],
  ['runs/stats', { team: NAME }],
  ['teams/history', { team: NAME }],
  ['teams/get', { team: NAME }],
  ['teams/reach', { team: NAME }],
])('it is refused by its name: %s of the hub', async (route, body) => {
  const needsRealm = route === 'dispatch/run' || route === 'realms/add_team'
  const reply = await hub.call(hub.admin, route, { ...body, ...(needsRealm && { realm_id: hub.realm }) })
  expect(reply.status).toBe(400)
  expect(JSON.stringify(reply)).toMatch(/runs only as a part of it/)
})

test.each(['run', 'validate', 'plan', 'lint', 'runs --team', 'schedules add --cron @daily'])(
  'it is refused by its name: %s at a terminal',
  async words => {
    expect(await here(...words.split(' '), NAME)).toMatchObject({ code: 2, stderr: `error  ${SAYS}\n` })
  },
)

test('a team that names it is told so at its place', async () => {
  const text = `name: "@local/x"\nversion: 1.0.0\nphases:\n  - { name: a, type: team, team: "${NAME}" }\n`
  const { code, stderr } = await here('validate', files({ 'team.yml': text }))
  expect(code).toBe(2)
  expect(stderr).toContain(`team.yml:4:34: ${SAYS}`)
})
