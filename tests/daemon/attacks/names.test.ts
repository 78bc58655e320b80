// Attacks by names that lead elsewhere: of files that a published team writes and reads, of artifacts, runs, teams, agents
// and workspaces. Hub and daemon are real, and everything beside the run's folder must stay as it is.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from '../../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

const MARK = 'written-by-an-attacker'
const SECRET = 'the content of a file that nobody may read'

let hub: TestHub
let daemon: RunningDaemon
let top: string
/** What arrives where a team sends files. */
let taken: string[] = []
const outside = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (request.method === 'POST') taken.push(await request.text())
    return new Response(MARK)
  },
})
const url = `http://localhost:${outside.port}/`

beforeAll(async () => {
  hub = await startTestHub()
  top = folder()
  const home = join(top, 'home')
  mkdirSync(home)
  writeFileSync(join(top, 'secret'), SECRET)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  writeFileSync(join(home, 'secret'), SECRET)
  await setting('network.allow', ['localhost'])
})
afterAll(async () => {
  await daemon.stop()
  await Promise.all([hub.stop(), outside.stop(true)])
})
beforeEach(() => {
  taken = []
})

const local = () => ({ authorization: `Bearer ${daemon.token}` })
const setting = (key: string, value: unknown) => daemon.call('/v1/settings/set', { key, value }, local())

interface Outcome {
  state: string
  error: { code: string; message: string } | null
}

let published = 0
/** Dispatches a published team of these phases with `names` as its input, and answers what became of each phase. */
async function outcomes(names: readonly string[], phases: object[]): Promise<Outcome[]> {
  const team = `@admin/names-${++published}`
  const text = JSON.stringify({
    name: team,
    version: '1.0.0',
    inputs: [{ name: 'names', type: 'list' }],
    phases: phases.map((phase, at) => ({ name: `p${at}`, on_failure: 'continue', ...phase })),
  })
  await hub.addTeam(text)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs: { names } })
  const arrived = async () => (await daemon.post('/v1/runs/get', { run_id })).status === 200
  await until(arrived, 'the run at the daemon', 30_000)
  await daemon.ended(run_id)
  return (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })).phases
}

/** Every path below `at`, links not followed. Databases, caches and the folders of runs change by themselves. */
const below = (at: string) =>
  [...new Bun.Glob('**').scanSync({ cwd: at, dot: true, onlyFiles: false })]
    .filter(path => !/^home\/(runs|packages|daemon|search|processes|key$|\.bun)/.test(path))
    .sort()

const up = '../'.repeat(12)
/** A file of these folders, of which others on this machine make none. */
const rare = `x-${crypto.randomUUID()}`
const NAMES = [
  ...['../x', '../../x', '../../../../x', `${'../'.repeat(6)}${rare}`, `${up}tmp/${rare}`, 'a/../../x', './../x'],
  ...['..', '.', './x', 'a/..', 'a/./x', `/${rare}`, `//${rare}`, `/tmp/${rare}`, '/dev/stdout', '~/x', '', ' '],
  ...['x/', 'a//x', '-x', '-rf', '.x', '...', '.env', '.ssh/x'],
  ...['..\\x', '\\x', 'C:\\x', 'a\\..\\..\\x', '..%2fx', '%2e%2e/x', '..%252fx', '..\u2215x', '\uff0e\uff0e/x'],
  ...['x\0.txt', 'x\n', 'x\r\ny', '\u202ex', 'x\u0007', `file:///tmp/${rare}`, 'x'.repeat(300), 'a/'.repeat(600)],
]

describe('what a team writes', () => {
  test(`under ${NAMES.length} names stays in the folder of its phase, or is refused`, async () => {
    const before = below(top)
    const plain: string[] = []
    for (const [at, name] of NAMES.entries()) {
      const team = `@admin/writes-${at}`
      const phases = [{ name: 'p', agent: 'http', sources: [{ name, url }] }]
      const text = JSON.stringify({ name: team, version: '1.0.0', phases })
      const content_base64 = Buffer.from(text).toString('base64')
      const { status } = await hub.call(hub.admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64 }] })
      const path = files({ 'team.yml': text })
      const here = await daemon.post('/v1/runs/start', { path })
      expect([name, here.status]).toEqual([name, status])
      if (status === 400) continue
      const run = await daemon.ended(here.body.data.run_id)
      if (run.state === 'failed' && run.error?.code === 'invalid_name') continue
      plain.push(name)
    }
    // Odd, but each is a plain file in the folder of its phase.
    expect(plain).toEqual(['.x', '...', '.env', '.ssh/x', '..%2fx', '..%252fx'])
    expect(below(top)).toEqual(before)
    for (const place of ['/tmp', '/', dirname(top)]) expect(readdirSync(place)).not.toContain(rare)
  }, 60_000)

  test('through links that its commands made is not followed', async () => {
    const before = below(top)
    const target = join(top, 'target')
    const run = `ln -s ${top} "$CADRE_OUT/out"; ln -s ${target} "$CADRE_OUT/file"; ln -s ${top} "$CADRE_FILES/next"`
    const found = await outcomes(
      [],
      [
        { name: 'links', agent: 'exec', commands: [{ name: 'c', run }] },
        { name: 'next', depends_on: ['links'], agent: 'http', sources: [{ name: 'x', url }] },
      ],
    )
    expect(found.map(({ state }) => state)).toEqual(['completed', 'failed'])
    expect(below(top)).toEqual(before)
  }, 60_000)
})

test('what a published team reads lies in the folders of its run', async () => {
  const link = join(top, 'link')
  symlinkSync(join(top, 'secret'), link)
  const names = [
    ...[join(top, 'secret'), join(daemon.home, 'token'), join(daemon.home, 'settings.yml'), '/etc/passwd', link],
    ...[
      '../secret',
      '../../secret',
      '../../../secret',
      '../../../../secret',
      'files/../../../secret',
      `${up}etc/passwd`,
    ],
    ...['files/p0/../../../../secret', '~/.ssh/id_rsa', '/proc/self/environ', '/dev/fd/0', 'file:///etc/passwd'],
    ...['files/links/link', 'files/links/folder/secret'],
  ]
  const run = `ln -s ${join(top, 'secret')} "$CADRE_OUT/link"; ln -s ${top} "$CADRE_OUT/folder"`
  const [links, ...found] = await outcomes(names, [
    { name: 'links', agent: 'exec', commands: [{ name: 'c', run }] },
    ...names.map((_, at) => ({
      depends_on: ['links'],
      agent: 'http',
      target_entries: [{ name: 'send', url, file: `{{ inputs.names[${at}] }}` }],
    })),
  ])
  expect(links!.state).toBe('completed')
  expect(found.flatMap(({ state }, at) => (state === 'failed' ? [] : [names[at]]))).toEqual([])
  expect(taken).toEqual([])
}, 60_000)

describe('artifacts', () => {
  let runId: string
  beforeAll(async () => {
    const run = `echo ok > "$CADRE_OUT/ok"; ln -s ${join(top, 'secret')} "$CADRE_OUT/link"; ln -s ${top} "$CADRE_OUT/dir"`
    const text = `name: "@local/out"\nversion: 1.0.0\nphases: [{ name: p, agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }] }]\n`
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }) })
    await daemon.ended(run_id)
    runId = run_id
  })
  const get = async (run: string, path: string) => {
    const query = `run_id=${run}&path=${path}`
    const reply = await fetch(`${daemon.url}/v1/artifacts/get?${query}`)
    return { status: reply.status, text: await reply.text() }
  }

  test('are given by their own path only', async () => {
    expect(await get(runId, 'files/p/ok')).toEqual({ status: 200, text: 'ok\n' })
    const token = join(daemon.home, 'token')
    const paths = [
      ...['../secret', 'files/../../../secret', 'files/p/../../../../../secret', token, `/${token}`, `//${token}`],
      ...[`files/p/${token}`, 'files/p/link', 'files/p/dir/secret', 'files/p', 'files', '', '.', '/', '~/secret'],
      ...['files/p/ok/..', 'files//p/ok', './files/p/ok', 'files/p/./ok', 'files\\p\\ok', 'files/p/ok\0', 'log.jsonl'],
      ...NAMES.map(name => `files/p/${name}`),
    ]
    for (const path of paths) {
      const { status, text } = await get(runId, encodeURIComponent(path))
      expect([path, status === 404 || status === 400]).toEqual([path, true])
      expect(text).not.toContain(SECRET)
    }
    // Not encoded, and encoded twice.
    for (const path of ['files/p/..%2f..%2f..%2fsecret', 'files%2fp%2f%2e%2e%2fp%2fok', '..%252f..%252fsecret']) {
      expect((await get(runId, path)).status).toBeGreaterThanOrEqual(400)
    }
  })

  test('belong to runs, not to folders', async () => {
    for (const run of ['..', '../..', `${runId}/..`, `../runs/${runId}`, runId.toUpperCase(), `${runId}%00`, '', '.']) {
      expect((await get(encodeURIComponent(run), 'files/p/ok')).status).toBeGreaterThanOrEqual(400)
    }
  })
})

test('runs are named by their ids, whatever is asked of them', async () => {
  const routes = ['runs/get', 'runs/tree', 'runs/logs', 'runs/why', 'runs/cancel', 'runs/resume', 'runs/delete']
  const before = below(top)
  for (const path of [...routes, 'artifacts/list']) {
    for (const run_id of [
      '..',
      '../..',
      '../packages',
      '/',
      '/tmp',
      '.',
      '*',
      '%',
      "' OR 1=1 --",
      'x\0',
      '__proto__',
    ]) {
      const { status } = await daemon.post(`/v1/${path}`, { run_id })
      expect([path, run_id, status === 404 || status === 400]).toEqual([path, run_id, true])
    }
  }
  expect(below(top)).toEqual(before)
})

test('teams are named as packages are', async () => {
  const names = [
    ...['@../x/y', '@a/../b', '@a/..', '@a/b/../../c', '@a/b@../../x', '@a/b@1.0.0/../..', '@a/b@/etc', '../x', '/etc'],
    ...['@A/b', '@a/b@1.0.0\0', '@a/%2e%2e', '@a\\b', '@', '@/', '@a', 'a/b', '@a/b c', '@-a/b', '@a/b@file:///etc'],
  ]
  for (const team of names) {
    for (const path of ['runs/start', 'teams/validate', 'teams/plan']) {
      const { status } = await daemon.post(`/v1/${path}`, { team })
      expect([team, path, status === 400 || status === 404]).toEqual([team, path, true])
    }
  }
  const packages = join(daemon.home, 'packages')
  expect((existsSync(packages) ? readdirSync(packages) : []).filter(name => name !== '@admin')).toEqual([])
})

test('agents are those of their folders', async () => {
  const evil = join(top, 'evil.ts')
  const reached = join(top, 'reached')
  writeFileSync(evil, `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(reached)}, '')\n`)
  const names = [
    ...['../evil', '../../evil', evil, evil.replace(/\.ts$/, ''), `file://${evil}`, './evil', 'exec/../../evil', '..'],
    ...[
      'exec@../../evil',
      'exec.ts',
      'EXEC',
      '__proto__',
      'constructor',
      'toString',
      'exec\0',
      'data:text/javascript,1',
    ],
  ]
  for (const agent of names) {
    const phases = [{ name: 'a', agent, commands: [{ name: 'c', run: 'true' }] }]
    const text = JSON.stringify({ name: '@local/agents', version: '1.0.0', phases })
    const { status } = await daemon.post('/v1/runs/start', { path: files({ 'team.yml': text }) })
    expect([agent, status]).toEqual([agent, 400])
    const sent = { files: [{ path: 'team.yml', content_base64: btoa(text.replace('@local', '@admin')) }] }
    expect((await hub.call(hub.admin, 'teams/publish', sent)).status).toBe(400)
  }
  expect(existsSync(reached)).toBe(false)
})

test('workspaces are added on the machine only; elsewhere they are known by id and name', async () => {
  const team = '@admin/where'
  const text = `name: "${team}"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: pwd }] }]\n`
  await hub.addTeam(text)
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'elsewhere' })
  const person = { authorization: `Bearer ${token}` }
  const registered = await daemon.call('/v1/workspaces/add', { path: files({}), name: 'known' })
  for (const workspace of [
    top,
    '/',
    '/etc',
    '..',
    '../known',
    `${registered.path}/..`,
    '~',
    'known/../..',
    'none',
    ' ',
  ]) {
    const { status } = await daemon.post('/v1/runs/start', { team, workspace }, person)
    expect([workspace, status]).toEqual([workspace, 400])
  }
  expect((await daemon.post('/v1/runs/start', { team, workspace: 'known' }, person)).status).toBe(200)
  for (const path of ['workspaces/add', 'workspaces/remove']) {
    expect((await daemon.post(`/v1/${path}`, { path: '/etc', workspace_id: 'known' }, person)).status).toBe(400)
  }
  expect((await daemon.post('/v1/workspaces/add', { path: '/etc' }, person)).status).toBe(403)
  expect((await daemon.post('/v1/workspaces/remove', { workspace_id: 'known' }, person)).status).toBe(403)
})
