// The commands about runs where there is no terminal: ids that are shortened, logs and trees of sub-runs, filters, files,
// hints that can be pasted, and faults that are told in words.

import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../lib/error.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { HELLO } from './teams.ts'

const TEAM = {
  'team.yml': `name: "@local/fleet"
version: 1.0.0
phases:
  - name: each
    type: map
    items: [one, two]
    key: "{{ item }}"
    team: ./host
    inputs: { host: "{{ item }}" }
    on_item_failure: continue
  - { name: maybe, agent: exec, on_failure: continue, commands: [{ name: c, run: "echo of maybe; exit 5" }] }
  - { name: report, agent: exec, depends_on: [each], commands: [{ name: c, run: 'echo made > "$CADRE_OUT/report.md"' }] }
`,
  'host/team.yml': `name: "@local/host"
version: 1.0.0
inputs: [{ name: host, type: string, required: true }]
phases:
  - { name: ping, agent: exec, commands: [{ name: c, env: { HOST: "{{ inputs.host }}" }, run: 'echo "ping $HOST"; [ "$HOST" = one ]' }] }
`,
}

test('a run with sub-runs is told by logs, tree, show, files, runs and why, with ids that are shortened', async () => {
  const home = folder()
  expect((await command(['run', files({ 'team.yml': HELLO })], { home })).code).toBe(0)
  const ran = await command(['run', files(TEAM), '--name', 'night'], { home })
  expect(ran.code).toBe(0)
  const { runs, total } = JSON.parse((await command(['runs', '--json', '--team', '@local/fleet'], { home })).stdout)
  expect(total).toBe(1)
  const id: string = runs[0].run_id
  const next = (line: string) => `  (bun \\S*daemon\\.ts|\\S*cadre) ${line}\n`
  const failures = [`why ${id}`, `tree ${id} --failed`, `resume ${id} --failed`].map(next).join('')
  expect(ran.stderr).toMatch(new RegExp(`\n${next(`show ${id}`)}1 of 2 items of each failed\n${failures}$`))
  const ask = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(args, { home })
    expect([args, code, stderr.includes('error')]).toEqual([args, 0, false])
    return stdout
  }

  const said = (await ask('logs', 'last'))
    .trimEnd()
    .split('\n')
    .map(line => line.slice(10))
  expect(said.map(line => line.replace(/ +\|/, ' |')).toSorted()).toEqual([
    'each/one/ping | ping one',
    'each/two/ping | failed: command c exited with code 1',
    'each/two/ping | ping two',
    'maybe | failed: command c exited with code 5',
    'maybe | of maybe',
  ])
  expect((await ask('logs', id.slice(0, 13), '--failed')).match(/of maybe|ping \w+$/gm)?.toSorted()).toEqual([
    'of maybe',
    'ping two',
  ])
  expect((await ask('logs', 'last', '--phase', 'each')).match(/ping \w+$/gm)).toHaveLength(2)
  expect(await ask('logs', 'last', '--since', '2999-01-01')).toBe('')

  const tree = await ask('tree', 'last')
  expect(tree).toMatch(/^✓ @local\/fleet night .*\n {2}✓ each .*1 failed, tolerated\n {4}✓ one .*\n {6}✓ ping/)
  expect(tree).toMatch(/\n {4}✗ two .*\n {6}✗ ping .*command c exited with code 1/)
  expect(tree).toMatch(/\n {2}✗ maybe .*tolerated/)
  expect(await ask('why', 'last')).toMatch(
    /Failed and passed over: .*maybe.*\n[\s\S]*(daemon\.ts|cadre) resume \S+ --failed\n$/,
  )
  expect(await ask('show', 'last')).toMatch(/files\n {2}files\/report\/report\.md {2}5 B/)
  expect(await ask('files', 'last')).toMatch(/^files\/report\/report\.md {2}5 B/)
  expect(await ask('files', 'last', 'get', 'report/report.md')).toBe('made\n')
  expect((await command(['files', 'last', 'get', '../../daemon.db'], { home })).code).toBe(2)

  const first = await command(['runs', '--limit', '1'], { home })
  expect(first.stdout).toContain('@local/fleet')
  expect(first.stderr).toMatch(/^1 more: .*(daemon\.ts|cadre) runs --limit 1 --offset 1\n$/)
  expect((await command(['runs', '--state', 'failed'], { home })).stderr).toBe('none\n')
  expect((await command(['runs', '--since', 'yesterday'], { home })).code).toBe(2)
  expect((await command(['tree', id.slice(0, 4)], { home })).code).toBe(2)

  expect((await command(['runs', 'delete', 'last'], { home })).stderr).toBe(
    `deleted run ${id}, all runs below it, and their files\n`,
  )
  expect(JSON.parse((await command(['runs', '--json', '--all'], { home })).stdout).total).toBe(1)
}, 120_000)

test('a hint can be pasted: it has the path of the program and the home that was given', async () => {
  const home = folder()
  const elsewhere = join(home, 'a home')
  mkdirSync(elsewhere)
  const path = files({ 'team.yml': HELLO })
  const { stderr } = await command(['run', path, '--home', elsewhere], { home })
  const hint = stderr.trimEnd().split('\n').at(-1)!.trim()
  expect(hint).toContain(` --home '${elsewhere}' show `)
  const pasted = Bun.spawn(['sh', '-c', hint.replace(/^bun /, `${process.execPath} `)], {
    cwd: home,
    env: { PATH: process.env.PATH!, HOME: home },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect(await pasted.stdout.text()).toContain('@local/hello 1.0.0')
}, 60_000)

test('with a daemon: detached runs, and a port that is taken', async () => {
  const daemon = await spawnDaemon()
  const { home } = daemon
  const refused = await command(['run', '-d', files({ 'team.yml': HELLO })], { home: folder() })
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/--detach needs .*(daemon\.ts|cadre) serve\n$/),
  ])
  const { code, stdout, stderr } = await command(['run', '-d', files({ 'team.yml': HELLO })], { home })
  expect([code, stderr]).toEqual([0, expect.stringContaining(` watch ${stdout.trim()}`)])
  expect((await daemon.ended(stdout.trim())).state).toBe('completed')
  expect(await command(['watch', 'last'], { home })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^greeting /),
  })
  const taken = await command(['serve', '--port', new URL(daemon.url).port], { home: folder() })
  expect([taken.code, taken.stderr]).toEqual([
    2,
    expect.stringMatching(/cannot listen on 127\.0\.0\.1 port \d+: it is in use/),
  ])
  await daemon.stop()
}, 60_000)

test('validate --json prints JSON for an invalid team too', async () => {
  const path = files({ 'team.yml': 'name: "@local/x"\nversion: 1.0.0\nphases: [{ name: a, agent: exce }]\n' })
  const { code, stdout } = await command(['validate', path, '--json'], { home: folder() })
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({
    valid: false,
    error: { code: 'invalid_request', details: [{ message: expect.stringContaining('exce') }] },
  })
}, 60_000)

test('the report on an empty folder has a size', async () => {
  const example = join(import.meta.dir, '../../examples/repo-report')
  const { stdout } = await command(['run', example, '-i', `folder=${folder()}`], { home: folder() })
  expect(await Bun.file(/^report +(.*)$/m.exec(stdout)![1]!).text()).toContain('0 files, 0 lines, 0 B')
}, 60_000)

test('a broken connection is told without advice to programmers', async () => {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: socket => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n') },
  })
  try {
    const thrown = await fetch(`http://127.0.0.1:${server.port}`)
      .then(reply => reply.text())
      .catch((error: unknown) => error)
    expect(String(thrown)).toContain('verbose')
    expect(messageOf(thrown)).not.toContain('verbose')
  } finally {
    server.stop(true)
  }
})

test('the warning about a secret input that is too short names the input', async () => {
  const path = files({
    'team.yml': `name: "@local/short"
version: 1.0.0
inputs: [{ name: pin, type: string, secret: true, required: true }]
phases: [{ name: a, agent: exec, commands: [{ name: c, env: { PIN: "{{ inputs.pin }}" }, run: "true" }] }]
`,
  })
  const { stderr } = await command(['run', path, '-i', 'pin=12'], { home: folder() })
  expect(stderr).toContain('the secret input pin has fewer than')
}, 60_000)
