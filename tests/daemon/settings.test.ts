// Settings as the daemon and its command line use them: what is unknown is named, commands are asked at the right time,
// named secrets are set and listed.

import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ASKS = `
import { agent, replyError, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Asks a server.',
  settings: Type.Object({ base_url: Type.String(), token: secret() }),
  source: {
    effect: 'read', entry: Type.Object({ name: Type.String() }),
    async run(entry, { settings, fetch, log }) {
      log('goes with ' + settings.token)
      const reply = await fetch(settings.base_url, { headers: { authorization: settings.token } })
      if (!reply.ok) throw await replyError(reply, 'ask')
      return { text: await reply.text(), data: { token: settings.token } }
    },
  },
})
`
const TEAM = `
name: "@local/asks"
version: 1.0.0
phases: [{ name: ask, agent: asks, sources: [{ name: x }] }]
`

/** A home with the agent `asks`, whose token is what a command prints: the content of a file. */
function homeWith(baseUrl: string, token: string) {
  const home = folder()
  const file = join(folder(), 'token')
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'asks.ts'), ASKS)
  const own = { base_url: baseUrl, token: `\${cmd:cat ${file}}` }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { asks: own } }), { mode: 0o600 })
  writeFileSync(file, token)
  return { home, file, path: files({ 'team.yml': TEAM }) }
}

test('a command is asked again after a 401 and on SIGHUP, and all that it gave is masked', async () => {
  let valid = 'canary-first'
  const asked: (string | null)[] = []
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const token = request.headers.get('authorization')
      asked.push(token)
      return token === valid ? new Response(`hello ${token}`) : new Response('who?', { status: 401 })
    },
  })
  const { home, file, path } = homeWith(server.url.href, 'canary-first')
  const daemon = await spawnDaemon({ home })
  const outcome = async () => {
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    return (await daemon.ended(run_id)).state
  }
  expect(await outcome()).toBe('completed')
  valid = 'canary-second'
  writeFileSync(file, valid)
  expect([await outcome(), await outcome()]).toEqual(['failed', 'completed'])
  valid = 'canary-third'
  writeFileSync(file, valid)
  process.kill(daemon.pid, 'SIGHUP')
  while (!daemon.output.stderr.includes('settings were read again')) await Bun.sleep(10)
  expect(await outcome()).toBe('completed')
  expect(asked).toEqual(['canary-first', 'canary-first', 'canary-second', 'canary-third'])
  const { runs } = await daemon.call('/v1/runs/list')
  const heard = await Promise.all(
    runs.flatMap(({ run_id }: { run_id: string }) => [
      daemon.call('/v1/runs/logs', { run_id }),
      daemon.envelope('/v1/runs/phases', 'run_phases', { run_id }),
    ]),
  )
  await daemon.stop()
  const bytes = readFileSync(join(home, 'daemon.db'), 'latin1')
  expect(JSON.stringify(heard)).toContain('goes with ***')
  for (const text of [JSON.stringify(heard), daemon.output.stderr, bytes]) expect(text).not.toContain('canary')
}, 30_000)

test('a command that fails is told before the run starts', async () => {
  const { home, file, path } = homeWith('http://127.0.0.1:9', 'canary')
  rmSync(file)
  const daemon = await spawnDaemon({ home })
  const { status, body } = await daemon.post('/v1/runs/start', { path })
  expect(status).toBe(400)
  expect(body.error.details[0].path).toBe('agents.asks.token')
  expect(body.error.message).toContain('agents.asks.token: the command exited with code 1: cat: ')
  expect((await daemon.call('/v1/runs/list')).total).toBe(0)
  const checked = await command(['doctor', 'asks'], { home })
  expect(checked.stdout).toContain('agents.asks.token: the command exited with code 1')
  expect(checked.code).toBe(1)
  await daemon.stop()
}, 30_000)

test('what nothing reads is named at start and by doctor', async () => {
  const home = folder()
  const yaml = 'agents: {wicki: {email: a@b.test}, wiki: {api_tokn: canary-token}}\nsecrets: {db: "${env:NOWHERE}"}\n'
  writeFileSync(join(home, 'settings.yml'), yaml, { mode: 0o600 })
  const daemon = await spawnDaemon({ home })
  await daemon.stop()
  const checked = await command(['doctor', '--json'], { home })
  for (const said of [daemon.output.stderr, checked.stdout]) {
    expect(said).toContain('there is no agent wicki (did you mean `wiki`?)')
    expect(said).toContain('(did you mean `api_token`?)')
    expect(said).not.toContain('canary-token')
  }
  expect(checked.stdout).toContain('secrets.db: the environment variable NOWHERE is not set')
  expect(checked.code).toBe(1)
}, 30_000)

test.each(['with a daemon', 'without one'])(
  'named secrets are set from stdin and listed by name, %s',
  async how => {
    const home = folder()
    const daemon = how === 'with a daemon' ? await spawnDaemon({ home }) : null
    const set = (key: string, stdin: string) => command(['settings', 'set', key, '-'], { home, stdin })
    const account = '{"type": "service_account", "private_key": "canary"}'
    expect((await set('secrets.db', 'canary-value\n')).code).toBe(0)
    expect((await set('secrets.account', account)).code).toBe(0)
    expect((await set('secrets.shared', '{"value": "canary", "teams": ["@acme/*"]}')).code).toBe(0)
    expect((await set('secrets.db.teams', '["@acme/*"]')).code).toBe(0)
    const { stdout } = await command(['settings', 'list'], { home })
    expect(stdout.split('\n').map(line => line.split(/\s+/).filter(Boolean))).toEqual([
      ['secrets.db.value', '***'],
      ['secrets.db.teams', '["@acme/*"]'],
      ['secrets.account', '***'],
      ['secrets.shared.value', '***'],
      ['secrets.shared.teams', '["@acme/*"]'],
      [],
    ])
    const { secrets } = Bun.YAML.parse(readFileSync(join(home, 'settings.yml'), 'utf8')) as { secrets: unknown }
    expect(secrets).toEqual({
      db: { value: 'canary-value', teams: ['@acme/*'] },
      account,
      shared: { value: 'canary', teams: ['@acme/*'] },
    })
    const refused = await set('secrets.1st', 'x')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('the name of a secret')
    await daemon?.stop()
  },
  30_000,
)

test('labels are set as words or one by one, and one that every daemon has by itself is refused', async () => {
  const home = folder()
  const settings = (...words: string[]) => command(['settings', ...words], { home })
  expect((await settings('set', 'labels', 'gpu, region=eu')).code).toBe(0)
  expect((await settings('get', 'labels')).stdout).toContain('region=eu')
  const own = await settings('set', 'labels.os', 'other')
  expect([own.code, own.stderr]).toEqual([2, expect.stringContaining('os is a label that every daemon has by itself')])
  expect((await settings('set', 'labels', 'a=b=c')).code).toBe(2)
  expect((await settings('set', 'labels.rack', 'r7')).code).toBe(0)
  expect((await settings('list')).stdout).toMatch(/labels\.rack +r7/)
})
