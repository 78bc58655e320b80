// Every route of the daemon, asked from another machine with every kind of credential. The other machine is a network
// namespace, which needs the rights to make one (on Linux, as root).

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOOKS_PATH } from '../../../lib/wire/calls/triggers.ts'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { guardedRoutes } from '../../support/daemon-routes.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'
import { environmentAt } from '../../support/program.ts'

const space = `cadre-${crypto.randomUUID().slice(0, 8)}`
const [here, there] = ['10.213.77.1', '10.213.77.2']
const ip = (...args: string[]) => Bun.spawnSync(['ip', ...args], { stderr: 'ignore' }).success
const link = space.slice(0, 13)
const possible = process.platform === 'linux' && Bun.which('ip') !== null && ip('netns', 'add', space)

interface Question {
  name: string
  method: string
  path: string
  credential: string | null
  body?: object
}

const run_id = crypto.randomUUID()
const team = '@admin/none'
const message = (type: string, payload: object) => ({
  ...{ type, version: 1, id: 't', timestamp: 1, run_id: null, instance_id: null },
  payload,
})
/** Bodies that the routes take. Routes about one run take its id. */
const BODIES: Record<string, object> = {
  '/v1/agents/doctor': {},
  '/v1/agents/list': {},
  '/v1/audit/export': {},
  '/v1/audit/list': {},
  '/v1/reviews/decide': { review_id: run_id, decision: 'approve' },
  '/v1/reviews/list': {},
  '/v1/runs/list': {},
  '/v1/runs/phases': message('run_phases', { run_id }),
  '/v1/runs/start': { team },
  '/v1/runs/stats': { team: '@local/t', since: 1 },
  '/v1/teams/history': { team: '@local/t' },
  '/v1/runs/teams': {},
  '/v1/settings/get': { key: 'agents.http.x' },
  '/v1/settings/list': {},
  '/v1/settings/set': { key: 'agents.http.x', value: 1 },
  '/v1/teams/files': { path: '/tmp' },
  '/v1/teams/plan': { team },
  '/v1/teams/save': { path: '/tmp', files: { 'team.yml': '' }, base_sha256: { 'team.yml': null } },
  '/v1/teams/validate': { team },
  '/v1/triggers/add': { name: 'none', kind: 'schedule', team, cron: '@daily' },
  '/v1/triggers/backfill': { name: 'none', from: 0, to: 1 },
  '/v1/triggers/disable': { name: 'none' },
  '/v1/triggers/enable': { name: 'none' },
  '/v1/triggers/firings': { name: 'none' },
  '/v1/triggers/get': { name: 'none' },
  '/v1/triggers/list': {},
  '/v1/triggers/pause': { name: 'none' },
  '/v1/triggers/preview': { cron: '@daily' },
  '/v1/triggers/refire': { firing_id: run_id },
  '/v1/triggers/remove': { name: 'none' },
  '/v1/triggers/resume': { name: 'none' },
  '/v1/triggers/run_now': { name: 'none' },
  '/v1/triggers/update': { trigger_id: run_id },
  '/v1/daemon/drain': {},
  '/v1/daemon/hub': {},
  '/v1/workspaces/add': { path: '/nowhere' },
  '/v1/workspaces/get': message('workspace_list', {}),
  '/v1/workspaces/remove': { workspace_id: 'none' },
}
const QUERIES: Record<string, string> = {
  '/v1/artifacts/get': `?run_id=${run_id}&path=files/a/b`,
  '/v1/runs/log': `?run_id=${run_id}`,
  '/v1/runs/stream': `?run_id=${run_id}`,
}

/** Asks from the other machine, all in one process there. Prints the status of each question. */
const ASKS = `
const [base, file] = process.argv.slice(2)
const statuses = []
for (const { method, path, credential, body } of await Bun.file(file).json()) {
  const headers = { ...(credential !== null && { authorization: 'Bearer ' + credential }), ...(body && { 'content-type': 'application/json' }) }
  const reply = await fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  await reply.body?.cancel()
  statuses.push(reply.status)
}
console.log(JSON.stringify(statuses))
`

let hub: TestHub
let daemon: RunningDaemon
let daemonId: string

beforeAll(async () => {
  if (!possible) return
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'away', 'netns', space)
  ip('addr', 'add', `${here}/30`, 'dev', link)
  ip('link', 'set', link, 'up')
  ip('-n', space, 'addr', 'add', `${there}/30`, 'dev', 'away')
  ip('-n', space, 'link', 'set', 'away', 'up')
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_HOST: here }
  daemon = await spawnDaemon({ home: folder(), env })
  daemonId = (await hub.ok(hub.admin, 'daemons/list')).daemons[0].id
})
afterAll(async () => {
  await daemon?.stop()
  await hub?.stop()
  if (possible) ip('netns', 'del', space)
})

test.skipIf(!possible)(
  'from another machine each route gives what it declares, with every credential (needs network namespaces)',
  async () => {
    const mint = async (action: string): Promise<string> =>
      (await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id: daemonId, action })).token
    const member = await hub.account('member')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'member', role: 'member' })
    const outsider = await hub.account('outsider')
    /** The credential for one call, and what it allows; null when it is none here. */
    const credentials: [name: string, allows: string[] | null, make: () => Promise<string | null>][] = [
      ['nothing', null, async () => null],
      ['a word', null, async () => 'word'],
      ['the local token of this machine', null, async () => daemon.token],
      ['the token of somebody else', null, async () => outsider.token],
      ['a member', ['access'], async () => member.token],
      ['an admin', ['access', 'execute', 'cancel'], async () => hub.admin],
      ...['access', 'execute', 'cancel'].map((action): [string, string[], () => Promise<string>] => [
        `a token to ${action}`,
        [action],
        () => mint(action),
      ]),
    ]
    const questions: Question[] = []
    const expected: ((status: number) => boolean)[] = []
    for (const { method, path, rule } of await guardedRoutes()) {
      const needs = /remote (\w+)/.exec(rule)?.[1] ?? null
      for (const [who, allows, make] of credentials) {
        const body = method === 'POST' ? { body: BODIES[path] ?? { run_id } } : {}
        const query = QUERIES[path] ?? ''
        questions.push({ name: `${path} with ${who}`, method, path: path + query, credential: await make(), ...body })
        // A sender of a hook has to be on this machine, whatever it brings.
        if (path.startsWith(HOOKS_PATH)) expected.push(status => status === 403)
        else if (allows === null) expected.push(status => status === 401)
        else if (needs === null || !allows.includes(needs)) expected.push(status => status === 403)
        else expected.push(status => status === 200 || status === 404)
      }
    }
    const file = join(folder(), 'questions.json')
    writeFileSync(file, JSON.stringify(questions))
    const program = join(folder(), 'asks.ts')
    writeFileSync(program, ASKS)
    const command = ['ip', 'netns', 'exec', space, process.execPath, program, daemon.url, file]
    const child = Bun.spawn(command, { env: environmentAt(folder()), stdout: 'pipe', stderr: 'pipe' })
    const [said, told] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect([await child.exited, told]).toEqual([0, ''])
    const statuses: number[] = JSON.parse(said)
    const wrong = questions.flatMap(({ name }, at) =>
      expected[at]!(statuses[at]!) ? [] : [`${name}: ${statuses[at]}`],
    )
    expect(questions.length).toBeGreaterThan(200)
    expect(wrong).toEqual([])
  },
  60_000,
)
