// The command line: exit codes, what goes to stdout, the lock, and homes that change hands.

import { describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DrainDaemon } from '../../lib/wire/calls/process.ts'
import { HOOKS_PATH } from '../../lib/wire/calls/triggers.ts'
import { command, files, spawnDaemon, startCommand } from '../support/daemon.ts'
import { guardedRoutes } from '../support/daemon-routes.ts'
import { folder } from '../support/folder.ts'
import { FAILS, FIVE_MISTAKES, GATE, HELLO, NESTED, SLEEPS } from './teams.ts'

const EXAMPLE = join(import.meta.dir, '../../examples/repo-report')

describe('run without a daemon', () => {
  test('prints outputs, files by their absolute path', async () => {
    const home = folder()
    const path = files({ 'team.yml': HELLO })
    const { code, stdout } = await command(['run', path, '-i', 'who=ada', '-i', 'times=3'], { home })
    expect(code).toBe(0)
    const [greeting, times, end] = stdout.split('\n').map(line => line.split(/ {2,}/))
    expect(readFileSync(greeting![1]!, 'utf8')).toBe('hello ada\n')
    expect([greeting![0], times, end]).toEqual(['greeting', ['times', '3'], ['']])
    expect(existsSync(join(home, 'daemon.lock'))).toBe(false)
  })

  test('--json prints the record; inputs from a file give way to -i', async () => {
    const home = folder()
    const path = files({ 'team.yml': HELLO, 'inputs.json': '{"who":"file","times":2}' })
    const args = ['run', '.', '--inputs', 'inputs.json', '-i', 'who=arg', '--name', 'n', '--json']
    const { stdout } = await command(args, { home, cwd: path })
    expect(JSON.parse(stdout)).toMatchObject({
      run_name: 'n',
      state: 'completed',
      inputs: { who: 'arg', times: 2 },
      workspace: path,
    })
  })

  test('a failed run exits 1, says why and what can be done', async () => {
    const { code, stdout, stderr } = await command(['run', files({ 'team.yml': FAILS })], { home: folder() })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('command c exited with code 4: no such thing')
    expect(stderr).toMatch(
      /(?:bun \S*daemon\.ts|\S*cadre) logs \S+\n +(?:bun \S*daemon\.ts|\S*cadre) resume \S+ +# keeps the old team\.yml.*\n$/,
    )
  })

  test('paths are those of the caller, whatever the workspace', async () => {
    const home = folder()
    const here = files({
      'work/note.txt': 'of the workspace\n',
      'note.txt': 'of the caller\n',
      'team.yml': `name: "@local/reads"
version: 1.0.0
inputs: [{ name: note, type: file, required: true }]
outputs: [{ name: said, value: "{{ phases.read.data.commands[0].stdout }}" }]
phases:
  - { name: read, agent: exec, commands: [{ name: c, env: { NOTE: "{{ inputs.note }}" }, run: 'cat "$NOTE"; pwd' }] }
`,
    })
    const said = async (...more: string[]) => {
      const { stdout } = await command(['run', '.', '-i', 'note=note.txt', '--json', ...more], { home, cwd: here })
      return JSON.parse(stdout).outputs.said
    }
    expect(await said()).toBe(`of the caller\n${here}\n`)
    expect(await said('--workspace', './work')).toBe(`of the caller\n${here}/work\n`)
    expect(await said('--workspace', 'work')).toBe(`of the caller\n${here}/work\n`)
    // `files/` names a folder of the run, unless it is a folder of the caller.
    mkdirSync(join(here, 'files'))
    copyFileSync(join(here, 'note.txt'), join(here, 'files/note.txt'))
    const { stdout } = await command(['run', '.', '-i', 'note=files/note.txt', '--json'], { home, cwd: here })
    expect(JSON.parse(stdout).outputs.said).toBe(`of the caller\n${here}\n`)
    const missing = await command(['run', '.', '-i', 'note=notes.txt'], { home, cwd: here })
    expect(missing).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `error  input note: there is no file ${here}/notes.txt\n`,
    })
  })

  test('what is invalid exits 2, every mistake with its place', async () => {
    const home = folder()
    const wrong = await command(['run', files({ 'team.yml': FIVE_MISTAKES })], { home })
    expect(wrong.code).toBe(2)
    for (const line of [3, 5, 7, 10, 11]) expect(wrong.stderr).toContain(`team.yml:${line}:`)
    expect((await command(['run', files({ 'team.yml': HELLO }), '-i', 'times=many'], { home })).code).toBe(2)
    expect((await command(['run', join(home, 'none')], { home })).code).toBe(2)
    expect((await command(['run'], { home })).code).toBe(2)
    expect((await command(['walk'], { home })).code).toBe(2)
  })

  test.each([
    [['run', '.', '--name', ''], 'Expected a name of 1 to 200 characters'],
    [['run', '.', '--name', 'x'.repeat(201)], 'Expected a name of 1 to 200 characters'],
    [['why', '01a20'], '01a20 is too short: give at least six characters of the id'],
    [['decide', '01a20', 'approve'], '01a20 is too short'],
    [['help', 'nope'], "unknown command 'nope'"],
    [['help', 'agent', 'nope'], "unknown command 'nope' of agent"],
    [['login', 'ada', '--hub', 'ftp://hub.example.com'], 'expected the address of a hub'],
  ])('%j exits 2 and says what is expected', async (args, told) => {
    const { code, stdout, stderr } = await command(args, { home: folder() })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(told)
  })

  test('`last-failed` is the newest run that has failed, whatever has run since', async () => {
    const home = folder()
    const hello = files({ 'team.yml': HELLO })
    const run = async (path: string) => JSON.parse((await command(['run', path, '--json'], { home })).stdout).run_id
    await run(hello)
    const none = await command(['why', 'last-failed'], { home })
    expect([none.code, none.stderr]).toEqual([2, `error  no run has failed in ${home}\n`])
    const fails = files({ 'team.yml': HELLO.replace(/run: '.*'/, 'run: exit 4') })
    await run(fails)
    const failed = await run(fails)
    expect(await run(hello)).not.toBe(failed)
    const shown = async (typed: string) => JSON.parse((await command(['show', typed, '--json'], { home })).stdout)
    expect(await shown('last-failed')).toMatchObject({ run_id: failed, state: 'failed' })
    expect(await shown('last')).toMatchObject({ state: 'completed' })
    expect((await command(['why', 'last-failed'], { home })).stdout).toContain('code 4')
  })

  test('a path that cannot be used exits 2 and is named', async () => {
    const home = folder()
    const inFile = join(files({ 'team.yml': HELLO }), 'team.yml', 'x')
    const wrong = await command(['examples', 'changelog', inFile], { home })
    const told = expect.stringContaining(`${inFile} cannot be used: a part of the path is not a folder`)
    expect([wrong.code, wrong.stderr]).toEqual([2, told])
    const daemon = await spawnDaemon({ home })
    const served = await command(['validate', inFile], { home })
    expect([served.code, served.stderr]).toEqual([2, told])
    await daemon.stop()
    const empty = await command(['runs', '--home', ''], { home })
    expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('--home needs a folder')])
  })

  test('what a run lacks is told line by line', async () => {
    const path = files({
      'team.yml': `name: "@local/lacks"
version: 1.0.0
inputs: [{ name: a, required: true }, { name: b, type: number, required: true }]
phases: [{ name: p, agent: wiki, action: get_page, sources: [{ name: x, ref: 1 }] }]
`,
    })
    const { code, stderr } = await command(['run', path], { home: folder() })
    expect(code).toBe(2)
    const [first, ...rest] = stderr.trimEnd().split('\n')
    expect(first).toBe('error  the run cannot start:')
    const subjects = ['input a', 'input b', 'agents.wiki.base_url', 'agents.wiki.email', 'agents.wiki.api_token']
    expect(rest.map(line => subjects.findIndex(subject => line.startsWith(`  ${subject} is`)))).toEqual([0, 1, 2, 3, 4])
  })

  test('a question to a person exits 3; the answer lets it go on', async () => {
    const home = folder()
    const waiting = await command(['run', files({ 'team.yml': GATE })], { home })
    expect(waiting.code).toBe(3)
    const { reviews } = JSON.parse((await command(['reviews', '--json'], { home })).stdout)
    const args = ['decide', reviews[0].id, 'approve', '--values', '{"answer":"yes"}']
    expect(await command(args, { home })).toMatchObject({ code: 0, stdout: 'said  yes\n' })
  })

  test('Ctrl-C cancels: exit 130', async () => {
    const home = folder()
    const child = startCommand(['run', files({ 'team.yml': SLEEPS })], { home })
    await lineWith(child.stderr, 'running')
    child.kill('SIGINT')
    expect(await child.exited).toBe(130)
    expect(JSON.parse((await command(['runs', '--json'], { home })).stdout).runs).toMatchObject([
      { state: 'cancelled' },
    ])
  })

  test('killed, it is continued by the next start', async () => {
    const home = folder()
    const path = files({
      'team.yml': `name: "@local/waits"
version: 1.0.0
phases: [{ name: nap, agent: exec, commands: [{ name: c, run: "[ -e done ] || sleep 30" }] }]
`,
    })
    const child = startCommand(['run', path], { home, cwd: path })
    await lineWith(child.stderr, 'nap')
    child.kill('SIGKILL')
    await child.exited
    writeFileSync(join(path, 'done'), '')
    const daemon = await spawnDaemon({ home })
    const { runs } = await daemon.call('/v1/runs/list')
    expect(runs).toHaveLength(1)
    expect(await daemon.ended(runs[0].run_id)).toMatchObject({ state: 'completed', attempt: 1 })
  })

  test('validate and plan leave what was interrupted alone', async () => {
    const home = folder()
    const path = files({
      'team.yml': `name: "@local/counts"
version: 1.0.0
phases: [{ name: count, agent: exec, commands: [{ name: c, run: "echo started >> starts; sleep 30" }] }]
`,
    })
    const child = startCommand(['run', path], { home, cwd: path })
    await lineWith(child.stderr, 'count')
    while (!existsSync(join(path, 'starts'))) await Bun.sleep(10)
    child.kill('SIGKILL')
    await child.exited
    for (const word of ['validate', 'plan']) expect((await command([word, path], { home })).code).toBe(0)
    const elsewhere = folder()
    const planned = await command(['plan', path, '--workspace', elsewhere, '--json'], { home })
    expect(JSON.parse(planned.stdout).workspace).toBe(realpathSync(elsewhere))
    const unknown = await command(['plan', path, '--workspace', 'nowhere'], { home })
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('there is no workspace nowhere (known are '),
    ])
    expect(readFileSync(join(path, 'starts'), 'utf8')).toBe('started\n')
    const { runs } = JSON.parse((await command(['runs', '--json'], { home })).stdout)
    expect((await command(['cancel', runs[0].run_id], { home })).code).toBe(0)
  })

  test('`--workspace` takes a folder here by its name, unless a workspace has that name', async () => {
    const home = folder()
    const above = files({
      'where/team.yml': `name: "@local/where"
version: 1.0.0
outputs: [{ name: folder, value: "{{ phases.here.data.commands[0].stdout }}" }]
phases: [{ name: here, agent: exec, commands: [{ name: c, run: pwd }] }]
`,
      'one/file': '',
      'two/file': '',
      'named/file': '',
    })
    const works = async (word: string, folder: string) => {
      const planned = await command(['plan', 'where', '--workspace', word, '--json'], { home, cwd: above })
      expect(JSON.parse(planned.stdout).workspace).toBe(realpathSync(join(above, folder)))
      const done = await command(['run', 'where', '--workspace', word], { home, cwd: above })
      expect(done.stdout).toBe(`folder  ${realpathSync(join(above, folder))}\n`)
    }
    await works('one', 'one')
    await command(['workspaces', 'add', join(above, 'two'), '--name', 'named'], { home })
    await works('named', 'two')
    await works('./named', 'named')
    const unknown = await command(['run', 'where', '--workspace', 'three'], { home, cwd: above })
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toMatch(/there is no workspace three \(known are .*named.*\), and no folder three in /)
  })

  test('a misspelt command is told with the one that was meant', async () => {
    const { code, stderr } = await command(['vlidate', '.'], { home: folder() })
    expect(code).toBe(2)
    expect(stderr).toContain("unknown command 'vlidate' (did you mean `validate`?)")
    expect((await command(['runs', '--limit', 'many'], { home: folder() })).code).toBe(2)
  })

  test('a reader that has read enough is no failure', async () => {
    const home = folder()
    await command(['run', files({ 'team.yml': HELLO }), '-i', 'who=ada'], { home })
    const script = `"${process.execPath}" "${join(import.meta.dir, '../../daemon.ts')}" runs | true`
    const child = Bun.spawn(['sh', '-c', script], { env: { ...process.env, CADRE_HOME: home }, stderr: 'pipe' })
    expect(await child.stderr.text()).toBe('')
  })

  test('the example reports on a folder with odd names', async () => {
    const home = folder()
    const path = files({
      'a b/one.ts': '1\n2\n',
      'new\nline/x.md': '1\n',
      'it\'s/$(q)|"z".py': '1\n2\n3\n',
      'top.txt': '1\n',
    })
    const { code, stdout } = await command(['run', EXAMPLE, '-i', `folder=${path}`], { home })
    expect(code).toBe(0)
    const outputs = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(/ {2,}/)),
    )
    expect(outputs).toMatchObject({ files: '4', lines: '7', bytes: '14' })
    const report = readFileSync(outputs.report, 'utf8')
    expect(report).toContain('| a b | 1 | 2 | 4 B | .ts |')
    expect(report).toContain("| it's | 1 | 3 | 6 B | .py |")
    expect(report).toContain('| (top) | 1 | 1 | 2 B | .txt |')
    const { runs } = JSON.parse((await command(['runs', '--json'], { home })).stdout)
    const tree = JSON.parse((await command(['tree', runs[0].run_id, '--json'], { home })).stdout)
    expect(Math.max(...tree.runs.map((entry: { call_depth: number }) => entry.call_depth))).toBe(2)
  })
})

describe('with a daemon', () => {
  test('commands talk to the one that holds the home; a second serve exits 2 and names it', async () => {
    const daemon = await spawnDaemon()
    const { home } = daemon
    const second = await command(['serve', '--port', '0'], { home })
    expect(second.code).toBe(2)
    expect(second.stderr).toContain(`process ${daemon.pid}`)
    expect(second.stderr).toContain(daemon.url)

    const ran = await command(['run', files(NESTED)], { home })
    expect(ran.code).toBe(0)
    const { runs } = JSON.parse((await command(['runs', '--json'], { home })).stdout)
    expect(runs).toMatchObject([{ team: '@local/top', state: 'completed' }])
    const runId = runs[0].run_id
    expect((await command(['tree', runId], { home })).stdout.match(/ {2}[0-9a-f-]{36}$/gm)).toHaveLength(5)
    expect((await command(['phases', runId], { home })).stdout).toContain('first')
    expect((await command(['cancel', runId], { home })).code).toBe(2)
    expect((await command(['settings', 'set', 'hub.api_key', '-'], { home, stdin: 'a secret value\n' })).code).toBe(0)
    expect((await command(['settings', 'list'], { home })).stdout).toBe('hub.api_key  ***\n')
    expect((await command(['run', files({ 'team.yml': FAILS })], { home })).code).toBe(1)
  })

  test('SIGTERM ends it within ten seconds, and what ran goes on at the next start', async () => {
    const home = folder()
    const path = files({ 'team.yml': SLEEPS })
    const first = await spawnDaemon({ home })
    const { run_id } = await first.call('/v1/runs/start', { path })
    const { code, ms } = await first.stop()
    expect(code).toBe(0)
    expect(ms).toBeLessThan(10_000)
    expect(existsSync(join(home, 'daemon.lock'))).toBe(false)
    const next = await spawnDaemon({ home })
    expect(await next.call('/v1/runs/get', { run_id })).toMatchObject({ state: 'running' })
    await next.call('/v1/runs/cancel', { run_id })
    expect(await next.ended(run_id)).toMatchObject({ state: 'cancelled' })
  })

  test('the lock of a process that is gone is taken over', async () => {
    const home = folder()
    const first = await spawnDaemon({ home })
    await first.kill('SIGKILL')
    expect(existsSync(join(home, 'daemon.lock'))).toBe(true)
    const next = await spawnDaemon({ home })
    expect(next.pid).not.toBe(first.pid)
    expect(JSON.parse(readFileSync(join(home, 'daemon.lock'), 'utf8'))).toMatchObject({
      pid: next.pid,
      address: next.url,
    })
  })

  test('strict: the local token is asked for everything', async () => {
    const daemon = await spawnDaemon({ env: { CADRE_LOCAL_AUTH: 'strict' } })
    // Senders of hooks sign instead.
    const routes = (await guardedRoutes()).filter(({ path }) => !path.startsWith(HOOKS_PATH))
    expect(routes.length).toBeGreaterThan(20)
    const authorization = `Bearer ${daemon.token}`
    expect((await daemon.post('/v1/runs/list', {}, { authorization })).status).toBe(200)
    expect((await command(['runs'], { home: daemon.home })).code).toBe(0)
    // What a drain lets end is the daemon, so it is the last one.
    const drain = ({ path }: { path: string }) => Number(path === DrainDaemon.path)
    for (const { method, path } of routes.sort((a, b) => drain(a) - drain(b))) {
      const statusWith = async (headers: Record<string, string>) => {
        const post = method === 'POST' && { headers: { 'content-type': 'application/json', ...headers }, body: '{}' }
        const reply = await fetch(daemon.url + path, { method, headers, ...post })
        await reply.body?.cancel()
        return reply.status
      }
      expect([path, await statusWith({})]).toEqual([path, 401])
      expect([path, await statusWith({ authorization: 'Bearer wrong' })]).toEqual([path, 401])
      expect([path, [401, 403].includes(await statusWith({ authorization }))]).toEqual([path, false])
    }
    expect(await daemon.exited).toBe(0)
  })
})

/** Waits until a stream has said `text`. */
async function lineWith(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  for (let said = ''; !said.includes(text); ) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`it ended without saying ${text}: ${said}`)
    said += decoder.decode(value, { stream: true })
  }
  reader.releaseLock()
}
