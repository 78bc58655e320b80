import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ssh from '../../agents/ssh.ts'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import { discover } from '../../lib/agent/catalogue.ts'
import type { JsonObject } from '../../lib/json.ts'
import { problems } from '../../lib/schema/schema.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { truthful } from '../support/truthful.ts'
import { hasSshd, type Sshd, startSshd } from '../vendors/sshd.ts'

const actions = truthful(ssh).actions!
type Options = NonNullable<Parameters<typeof testContext>[0]>

test.each(['-oProxyCommand=x', 'a b', 'a;b', '$(x)', ''])('%p is no host', host => {
  expect(problems(ssh.settings, { host }).map(({ path }) => path)).toEqual(['/host'])
  expect(problems(ssh.settings, { host: 'a.test', jump: host }).map(({ path }) => path)).toEqual(['/jump'])
  expect(problems(ssh.settings, { host: 'a.test', user: host }).map(({ path }) => path)).toEqual(['/user'])
})

test.each(['host', 'web-1.acme.test', '10.0.0.1', '2001:db8::1', 'my_host'])('%p is a host', host => {
  expect(problems(ssh.settings, { host, jump: 'ada@bastion.acme.test:2222' })).toEqual([])
})

test('a team with a template in `run` is refused, and so is a retry of what runs once', async () => {
  const catalogue = await discover({ home: folder() })
  const agents = { get: (name: string) => catalogue.get(name), names: () => catalogue.names() }
  const found = async (phase: object) => {
    const team = { name: '@local/x', version: '1.0.0', phases: [{ name: 'p', agent: 'ssh', ...phase }] }
    const files = new Map([['team.yml', JSON.stringify(team)]])
    const problems = await loadBundle(files, { agents }).then(() => [], problemsOf)
    return problems.map(({ message }) => message).join('\n')
  }
  const sources = [{ name: 'x', run: 'cat {{ run.id }}' }]
  expect(await found({ action: 'capture', sources })).toContain('put the value in `env`')
  const commands = [{ name: 'c', run: 'echo {{ run.id }}' }]
  expect(await found({ action: 'run', commands })).toContain('put the value in `env`')
  const once = [{ name: 'c', run: 'true', effect: 'once' }]
  expect(await found({ action: 'run', commands: once, retry: { attempts: 2 } })).toContain('which is `once`')
  expect(await found({ action: 'run', commands: once })).toBe('')
})

const isThere = hasSshd()
const server = isThere ? await startSshd() : null
afterAll(() => server?.stop())

/** The one server, with a key and a list of known hosts for each check. */
function account({ settings, strange }: Sshd) {
  const room = folder()
  const [key_file, known_hosts, file] = [join(room, 'key'), join(room, 'known'), join(room, 'in.txt')]
  copyFileSync(settings.key_file, key_file)
  copyFileSync(settings.known_hosts, known_hosts)
  writeFileSync(file, 'first')
  const forget = () => copyFileSync(strange, key_file)
  return { settings: { ...settings, key_file, known_hosts }, known_hosts, file, forget, [Symbol.dispose]() {} }
}

if (server) {
  const commands = [{ name: 'greet', run: 'echo "$WORD"' }]
  await testAgent({
    file: join(import.meta.dir, '../../agents/ssh.ts'),
    vendor: () => account(server),
    settings: ({ settings }) => settings,
    examples: {
      run: { entry: { commands, env: { WORD: 'hello' } } },
      capture: { entry: { name: 'out', run: 'cat /etc/hostname', env: { A: 'b' } } },
      get: ({ file }) => ({ entry: { name: 'out', ref: file } }),
      put: ({ file }) => ({ entry: { name: 'p', ref: `${file}.copy`, file: 'a.txt' }, files: { 'a.txt': 'second' } }),
    },
    badDays: {
      host_key: ({ known_hosts }) => writeFileSync(known_hosts, ''),
      unauthorized: ({ forget }) => forget(),
    },
  })
}

describe.skipIf(!isThere)(`a host${isThere ? '' : ' (skipped: no sshd)'}`, () => {
  let sshd: Sshd
  beforeAll(() => {
    sshd = server!
  })

  const begin = (settings: object = {}, options: Options = {}): TestContext =>
    testContext({
      agent: 'ssh',
      action: 'run',
      settings: { ...sshd.settings, ...settings },
      network: { allow: [], literalOrigins: [] },
      ...options,
    })
  const call = (action: string, entry: JsonObject, t = begin()): Promise<AgentResult> => {
    expect(problems(actions[action]!.entry, entry)).toEqual([])
    return actions[action]!.run(entry, t.context as AgentContext<never>)
  }
  const run = (command: string, more: JsonObject = {}, t = begin()) =>
    call('run', { commands: [{ name: 'c', run: command, ...more }] }, t)
  const capture = (command: string, t = begin(), env: JsonObject = {}) =>
    call('capture', { name: 'out', run: command, env }, t)
  const fileOf = (t: TestContext, name = 'out') => readFileSync(join(phaseFolder(t), name), 'utf8')

  test('commands run one after the other, and are logged line by line', async () => {
    const t = begin()
    const commands = [
      { name: 'one', run: 'echo hello; echo careful >&2' },
      { name: 'two', run: 'echo "$WORD"; cat', env: { WORD: 'second' } },
    ]
    const { data, text } = await call('run', { commands }, t)
    const report = { exit_code: 0, duration_ms: expect.any(Number) }
    const [one, two] = [
      { name: 'one', ...report, stdout: 'hello\n' },
      { name: 'two', ...report, stdout: 'second\n' },
    ]
    expect(data).toEqual({ commands: [one, two] })
    expect(text).toBe('2 commands passed')
    expect(t.lines).toEqual(expect.arrayContaining(['hello', 'careful', 'second']))
  })

  test('values reach the command as they are, and no list of processes shows them', async () => {
    // Other processes of this machine may say the same words, so the value has one that nobody else says.
    const nonce = crypto.randomUUID()
    const value = `it's "$HOME" \`id\` \\ ; rm -rf x\nline 2 🎉 * ${nonce}`
    const list = `ps -ef | grep -c "${nonce.slice(0, -1)}[${nonce.at(-1)}]"; true`
    const { data } = await run(`printf %s "$VALUE"; ${list}`, { env: { VALUE: value } })
    expect((data as { commands: { stdout: string }[] }).commands[0]!.stdout).toBe(`${value}0\n`)
  })

  test('a command that fails ends the phase with its code and its last lines', async () => {
    const t = begin()
    const error = await failureOf(run('echo why >&2; exit 3', {}, t))
    expect(error).toMatchObject({ code: 'exit', retryable: true, sent: 'no' })
    expect(error.message).toBe('command c exited with code 3: why')
    expect(await failureOf(run('exit 255', { effect: 'once' }))).toMatchObject({
      code: 'exit',
      retryable: false,
      sent: 'unknown',
    })
  })

  test('a time-out and a cancel end ssh', async () => {
    expect(await failureOf(run('sleep 60', { timeout: '1s' }))).toMatchObject({ code: 'timeout' })
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 700)
    const stopped = begin({}, { signal: controller.signal })
    expect(await failureOf(run('sleep 60', {}, stopped))).toMatchObject({ code: 'aborted' })
    const captured = begin({}, { signal: AbortSignal.timeout(700) })
    await failureOf(capture('sleep 60', captured))
    expect(existsSync(join(phaseFolder(captured), 'out'))).toBe(false)
  })

  test('the stdout of a command becomes the file, unless the command fails', async () => {
    const t = begin()
    const { data } = await capture('printf "%s\\n" "$A"; head -c 3000000 /dev/zero', t, { A: 'ö' })
    expect(data).toEqual({ bytes: 3_000_003 })
    expect(fileOf(t).slice(0, 2)).toBe('ö\n')
    const failing = begin()
    const error = await failureOf(capture('echo half; echo broken >&2; exit 2', failing))
    expect(error.message).toContain('broken')
    expect(existsSync(phaseFolder(failing)) ? readdirSync(phaseFolder(failing)) : []).toEqual([])
    expect(failing.lines).toContain('half')
  })

  test('of a long stdout of a command that fails, the log has the last lines', async () => {
    const t = begin()
    await failureOf(capture('seq 1 100000; printf end; exit 2', t))
    const numbers = t.lines.filter(line => /^\d+$/.test(line)).map(Number)
    expect(numbers.length).toBeWithin(200, 500)
    expect(numbers).toEqual(numbers.map((_, at) => 100_001 - numbers.length + at))
    expect([t.lines[0]![0], t.lines.at(-1)]).toEqual(['…', 'end'])
    // The last 2,000 bytes begin inside a secret.
    const [secret, cut] = [crypto.randomUUID(), begin()]
    cut.context.conceal(secret)
    const prints = 'printf %s "$SECRET"; head -c 1980 /dev/zero | tr "\\0" x; exit 2'
    await failureOf(capture(prints, cut, { SECRET: secret }))
    expect(cut.lines.join()).toContain('*xxx')
    expect(cut.lines.join()).not.toContain(secret.slice(-10))
  })

  const NAMES = ['plain.txt', 'with space "quoted" and \\ back.txt', '*?[a].txt', "it's.txt", 'grüße 🎉.txt', '-rf']

  test.each(NAMES)('a file named %p is copied there and back', async name => {
    const room = folder()
    const t = begin()
    writeFileSync(join(t.workspace, 'in.txt'), `of ${name}`)
    const { data, external } = await call('put', { name: 'p', ref: join(room, name), file: 'in.txt' }, t)
    expect(data).toEqual({ bytes: Buffer.byteLength(`of ${name}`), path: join(room, name) })
    expect(external?.url).toStartWith('sftp://127.0.0.1/')
    expect(readdirSync(room)).toEqual([name])
    expect(readFileSync(join(room, name), 'utf8')).toBe(`of ${name}`)
    const back = await call('get', { name: 'out', ref: join(room, name) }, t)
    expect(back.data).toMatchObject({ path: join(room, name) })
    expect(fileOf(t)).toBe(`of ${name}`)
  })

  test('put replaces a file at once, takes its name for a folder, and leaves nothing after a failure', async () => {
    const room = folder()
    const t = begin()
    writeFileSync(join(t.workspace, 'in.txt'), 'new')
    writeFileSync(join(room, 'in.txt'), 'old')
    await call('put', { name: 'p', ref: `${room}/`, file: 'in.txt' }, t)
    expect(readFileSync(join(room, 'in.txt'), 'utf8')).toBe('new')
    expect(await failureOf(call('put', { name: 'p', ref: join(room, 'gone', 'x'), file: 'in.txt' }, t))).toMatchObject({
      code: 'not_found',
    })
    // A file cannot take the place of a folder.
    const full = join(room, 'full')
    await Bun.write(join(full, 'x'), '')
    await failureOf(call('put', { name: 'p', ref: full, file: 'in.txt' }, t))
    expect(readdirSync(room).sort()).toEqual(['full', 'in.txt'])
  })

  test('a file that is not there', async () => {
    const t = begin()
    const error = await failureOf(call('get', { name: 'out', ref: '/nowhere/x' }, t))
    expect(error.code).toBe('not_found')
    expect(error.message).toContain('/nowhere/x')
    expect(readdirSync(t.stateDir).filter(name => name.startsWith('.'))).toEqual([])
  })

  describe('who may connect', () => {
    test('a host with an unknown key is refused, with how to add it', async () => {
      const known_hosts = join(folder(), 'none')
      const error = await failureOf(run('true', { effect: 'once' }, begin({ known_hosts })))
      expect(error).toMatchObject({ code: 'host_key', sent: 'no', retryable: false })
      expect(error.hint).toContain(`ssh-keyscan -p ${sshd.port} 127.0.0.1 >> ${known_hosts}`)
      expect(existsSync(known_hosts)).toBe(false)
    })

    test('a host with another key is refused, with a warning', async () => {
      const known_hosts = join(folder(), 'other')
      const [type, key] = readFileSync(`${sshd.strange}.pub`, 'utf8').split(' ')
      writeFileSync(known_hosts, `[127.0.0.1]:${sshd.port} ${type} ${key}\n`)
      for (const action of [run, capture] as const) {
        const t = begin({ known_hosts })
        const error = await failureOf(action === run ? run('true', {}, t) : capture('true', t))
        expect(error.code).toBe('host_key')
        expect(error.hint).toContain('has another key')
      }
      const get = await failureOf(call('get', { name: 'out', ref: '/etc/hostname' }, begin({ known_hosts })))
      expect(get.code).toBe('host_key')
    })

    test('a key that the host does not know: which one was offered', async () => {
      const error = await failureOf(run('true', { effect: 'once' }, begin({ key_file: sshd.strange })))
      expect(error).toMatchObject({ code: 'unauthorized', sent: 'no' })
      expect(error.hint).toContain(sshd.strange)
    })

    test('a key that others can read, and one that is not there', async () => {
      const open = join(folder(), 'open')
      writeFileSync(open, readFileSync(sshd.settings.key_file))
      chmodSync(open, 0o644)
      for (const key_file of [open, join(folder(), 'gone')]) {
        expect((await failureOf(run('true', {}, begin({ key_file })))).code).toBe('unauthorized')
      }
    })

    test('nobody listens', async () => {
      const error = await failureOf(run('true', { effect: 'once' }, begin({ port: 1 })))
      expect(error).toMatchObject({ code: 'network', sent: 'no', retryable: true })
      expect(error.hint).toContain('agents.ssh.port')
    })

    test('through a jump host, with the same rules', async () => {
      const { user, known_hosts } = sshd.settings
      const jump = `${user}@127.0.0.1:${sshd.port}`
      expect((await run('echo there', {}, begin({ jump }))).data).toMatchObject({ commands: [{ stdout: 'there\n' }] })
      const t = begin({ jump })
      await call('get', { name: 'out', ref: '/etc/hostname' }, t)
      expect(fileOf(t)).toBe(readFileSync('/etc/hostname', 'utf8'))
      // The key of the jump host is checked as well.
      const [entry] = readFileSync(known_hosts, 'utf8').split('\n')
      const other = join(folder(), 'known')
      writeFileSync(other, entry!.replace('127.0.0.1', 'localhost'))
      expect((await failureOf(run('true', {}, begin({ jump, host: 'localhost', known_hosts: other })))).code).toBe(
        'host_key',
      )
    })

    test('doctor runs `true`', async () => {
      const found = await ssh.doctor!(begin().context as AgentContext<never>)
      expect(found).toEqual({ who: sshd.settings.user, missing: [], text: '127.0.0.1: signed in' })
    })
  })
})

test.each([
  [{ key_file: '~/.ssh/id_x.pub' }, { key_file: 'is ~/.ssh/id_x.pub, the public part of a key: write ~/.ssh/id_x' }],
  [
    { key_file: '/nowhere/id_x' },
    { key_file: 'is /nowhere/id_x, where there is no file: write the path of the private key' },
  ],
  [
    { known_hosts: '/' },
    { known_hosts: 'is /, which is not a file: write the path of the file with the keys of hosts' },
  ],
  [{ key_file: import.meta.path, known_hosts: import.meta.path }, {}],
])('%j is judged, with what to write', (given, problems) => {
  const found = Object.entries(ssh.check!(given)).filter(([, words]) => words)
  expect(Object.fromEntries(found)).toEqual(problems)
})
