// What can be a home, who holds it, and how a command tells what it could not do: once, and never by a stack.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import {
  chownSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { bootId, startOf } from '../../lib/program/process.ts'
import { command, files, spawnDaemon, startCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { GATE, HELLO } from './teams.ts'

const PROGRAM = join(import.meta.dir, '../../daemon.ts')

const COMMANDS = () => [
  ['runs'],
  ['run', files({ 'team.yml': HELLO })],
  ['serve', '--port', '0'],
  ['cancel', 'x'],
  ['settings', 'list'],
]

async function toldBy(home: string): Promise<string[]> {
  const told = new Set<string>()
  for (const args of COMMANDS()) {
    const { code, stdout, stderr } = await command(args, { home, cwd: folder() })
    expect([code, stdout]).toEqual([2, ''])
    told.add(stderr)
  }
  return [...told]
}

test('a home that is a file is told in one sentence', async () => {
  const home = join(folder(), 'home')
  writeFileSync(home, '')
  expect(await toldBy(home)).toEqual([
    `error  ${home} is a file, but the home must be a folder: choose another folder with --home or CADRE_HOME\n`,
  ])
  const below = join(home, 'below')
  const { code, stderr } = await command(['run', files({ 'team.yml': HELLO })], { home: below, cwd: folder() })
  expect(code).toBe(2)
  expect(stderr).toMatch(/^error {2}\S+ is below a file, but must be below a folder: [^\n]+\n$/)
})

test('an option in the place of the home makes no folder', async () => {
  const cwd = folder()
  for (const args of [
    ['--home', '--help'],
    ['--home', '-h', 'runs'],
  ]) {
    const { code, stderr } = await command(args, { home: folder(), cwd })
    expect([code, stderr]).toEqual([
      2,
      `error  --home needs a folder, and ${args[1]} looks like an option: write ./${args[1]}\n`,
    ])
  }
  expect(readdirSync(cwd)).toEqual([])
})

test.skipIf(process.getuid?.() !== 0)('a home that belongs to another user is told in one sentence', async () => {
  const home = folder()
  chownSync(home, 12_345, 12_345)
  expect(await toldBy(home)).toEqual([
    `error  ${home} belongs to another user (uid 12345, you are 0): choose another folder with --home or CADRE_HOME\n`,
  ])
})

test('the lock of a zombie is no lock', async () => {
  const home = folder()
  const env = { PATH: process.env.PATH!, HOME: home, CADRE_HOME: home }
  // The shell becomes a program that never asks how its children ended.
  const script = `"${process.execPath}" "${PROGRAM}" serve --port 0 & exec sleep 600`
  const parent = Bun.spawn(['sh', '-c', script], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const lock = join(home, 'daemon.lock')
  while (!existsSync(lock) || JSON.parse(readFileSync(lock, 'utf8')).address === null) await Bun.sleep(20)
  const { pid } = JSON.parse(readFileSync(lock, 'utf8'))
  process.kill(pid, 'SIGKILL')
  const state = () =>
    Bun.spawnSync(['ps', '-o', 'stat=', '-p', String(pid)])
      .stdout.toString()
      .trim()
  while (!state().startsWith('Z')) await Bun.sleep(20)
  try {
    expect((await command(['run', files({ 'team.yml': HELLO })], { home })).code).toBe(0)
    expect(state()).toStartWith('Z')
  } finally {
    parent.kill('SIGKILL')
    await parent.exited
  }
})

test.each(['another start', 'another boot', 'no process', 'half a file'])('a lock of %s is no lock', async how => {
  const home = folder()
  const other = Bun.spawn(['sleep', '60'])
  const holder = {
    pid: how === 'no process' ? 2 ** 22 + 1 : other.pid,
    boot: how === 'another boot' ? 'x' : bootId(),
    started: how === 'another start' ? '1' : startOf(other.pid),
    command: 'serve',
    address: 'http://127.0.0.1:1',
  }
  const text = JSON.stringify(holder)
  writeFileSync(join(home, 'daemon.lock'), how === 'half a file' ? text.slice(0, 20) : text)
  expect((await command(['run', files({ 'team.yml': HELLO })], { home })).code).toBe(0)
  other.kill('SIGKILL')
})

// One of these waits for commands that give up after half a minute; the others run meanwhile.
test.concurrent('an error is printed once', async () => {
  const home = folder()
  const lacking = files({
    'team.yml': `name: "@local/lacks"
version: 1.0.0
inputs: [{ name: who, required: true }]
phases: [{ name: p, agent: exec, commands: [{ name: c, run: "true" }] }]
`,
  })
  const wrong = files({ 'team.yml': 'name: "@local/wrong"\nversion: 1.0.0\ncolour: red\nphases: []\n' })
  const daemon = await spawnDaemon()
  for (const at of [home, daemon.home]) {
    for (const args of [
      ['run', lacking],
      ['run', wrong],
      ['validate', wrong],
      ['plan', wrong],
      ['run', lacking, '-i', 'who'],
      ['settings', 'set', 'agents.wiki.colour', 'x'],
      ['cancel', 'nothing'],
      ['decide', 'nothing', 'perhaps'],
      ['walk'],
      ['runs', '--limit', 'many'],
    ]) {
      const { code, stderr } = await command(args, { home: at })
      expect(code).toBe(2)
      const said = stderr
        .split('\n')
        .map(line => line.replace(/^error:? +/, '').trim())
        .filter(Boolean)
      for (const [index, line] of said.entries()) {
        const again = said.filter((other, at) => at !== index && other.includes(line))
        expect([args.slice(0, 2), line, again]).toEqual([args.slice(0, 2), line, []])
      }
    }
  }
})

test.concurrent('a daemon that is stuck is told by its process, and a slow answer of a healthy one is waited for', async () => {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ secrets: { slow: '${cmd:sleep 8; echo x}' } }), {
    mode: 0o600,
  })
  const commands = [{ name: 'c', run: 'test "$S" = x', env: { S: '{{ secrets.slow }}' } }]
  const team = { name: '@local/slow', version: '1.0.0', phases: [{ name: 'p', agent: 'exec', commands }] }
  const daemon = await spawnDaemon({ home })
  const path = files({ 'team.yml': JSON.stringify(team) })
  expect(await command(['run', path], { home })).toMatchObject({ code: 0 })

  expect(await command(['run', files({ 'team.yml': GATE }), '--detach'], { home })).toMatchObject({ code: 0 })
  process.kill(daemon.pid, 'SIGSTOP')
  const timed = async (...args: string[]) => {
    const began = performance.now()
    return { ...(await command(args, { home })), seconds: (performance.now() - began) / 1_000 }
  }
  const told = await Promise.all([
    timed('status'),
    timed('runs'),
    timed('why', 'last'),
    timed('cancel', 'last'),
    timed('watch', 'last'),
    timed('run', path),
  ])
  const named = new RegExp(
    `process ${daemon.pid} \\(serve\\) holds \\S+ and has not answered for [\\d.]+s: .*kill -CONT ${daemon.pid}`,
  )
  const [status, ...others] = told
  expect([status!.code, status!.seconds < 15]).toEqual([1, true])
  expect(status!.stdout).toMatch(named)
  for (const { code, stdout, stderr, seconds } of others) {
    expect([code, stdout, seconds < 40]).toEqual([1, '', true])
    expect(stderr).toMatch(named)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  }
  process.kill(daemon.pid, 'SIGCONT')
  expect((await timed('status')).code).toBe(0)
  await daemon.stop()
}, 120_000)

test.concurrent('a local token that was removed is made anew at the next start, and the former one is none', async () => {
  const first = await spawnDaemon()
  const list = (daemon: typeof first, token: string) =>
    daemon.post('/v1/settings/list', {}, { authorization: `Bearer ${token}` })
  expect((await list(first, first.token)).status).toBe(200)
  await first.stop()
  rmSync(join(first.home, 'token'))
  const second = await spawnDaemon({ home: first.home })
  expect([(await list(second, first.token)).status, (await list(second, second.token)).status]).toEqual([401, 200])
  await second.stop()
})

test.concurrent('a fault of the program is one line, and the log level prints where it happened', async () => {
  const home = folder()
  await command(['run', files({ 'team.yml': HELLO })], { home })
  using database = new Database(join(home, 'daemon.db'))
  database.run('ALTER TABLE runs RENAME TO walks')
  const { code, stderr } = await command(['runs'], { home })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error {2}[^\n]+CADRE_LOG_LEVEL=debug[^\n]+\n$/)
  const debug = await command(['runs'], { home, env: { CADRE_LOG_LEVEL: 'debug' } })
  expect(debug.stderr).toContain('    at ')
})

test.concurrent('secret inputs are given again to those who may know them only', async () => {
  const home = folder()
  const path = files({
    'team.yml': `name: "@local/secret"
version: 1.0.0
inputs: [{ name: token, secret: true, required: true }, { name: plain, default: x }]
phases: [{ name: p, agent: exec, commands: [{ name: c, env: { T: "{{ inputs.token }}" }, run: 'test "$T" = right-token' }] }]
`,
  })
  const failed = await command(['run', path, '-i', 'token=@-'], { home, stdin: 'wrong-token\n' })
  expect(failed.code).toBe(1)
  const { runs } = JSON.parse((await command(['runs', '--json'], { home })).stdout)
  const resume = (args: string[], stdin = '') => command(['resume', runs[0].run_id, ...args], { home, stdin })
  const plain = await resume(['-i', 'plain=y'])
  expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining('input plain is not secret')])
  const unknown = await resume(['-i', 'tokn=y'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean `token`')])
  const twice = await resume(['-i', 'token=@-', '-i', 'plain=@-'])
  expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('only one input is read from stdin')])
})

test.concurrent('a damaged database is named, with what to do, and left as it is', async () => {
  const home = folder()
  const database = join(home, 'daemon.db')
  const damaged = 'This is no database, although it has its name.\n'.repeat(40)
  writeFileSync(database, damaged)
  for (const args of [['runs'], ['run', files({ 'team.yml': HELLO })], ['serve', '--port', '0']]) {
    const { code, stdout, stderr } = await command(args, { home })
    expect([args[0], code, stdout]).toEqual([args[0], 1, ''])
    expect(stderr).toBe(
      `error  ${database} is damaged (file is not a database): put it back from a copy, or move it away with its -wal file to begin with an empty one\n`,
    )
  }
  expect(readFileSync(database, 'utf8')).toBe(damaged)
})

test.concurrent('damage that is found later is named in the same way, by commands and by a daemon', async () => {
  const home = folder()
  const database = join(home, 'daemon.db')
  const path = files({ 'team.yml': HELLO })
  expect((await command(['run', path], { home })).code).toBe(0)
  damageTable(database, 'phases')
  const told = `${database} is damaged (database disk image is malformed): put it back from a copy, or move it away with its -wal file to begin with an empty one`
  const commands = [
    ['phases', 'last'],
    ['why', 'last'],
    ['run', path],
  ]
  const tellAll = async () => {
    for (const args of commands) {
      const { code, stdout, stderr } = await command(args, { home })
      expect([args[0], code, stdout]).toEqual([args[0], 1, ''])
      expect(stderr).toEndWith(`error  ${told}\n`)
    }
  }
  await tellAll()
  const daemon = await spawnDaemon({ home })
  await tellAll()
  const errors = daemon.output.stderr.split('\n').filter(line => line.includes('"level":"error"'))
  expect(errors.length).toBeGreaterThan(0)
  for (const line of errors) expect(JSON.parse(line).error).toContain(told)
})

/** Overwrites the first page of a table, which the open of a database does not read. */
function damageTable(file: string, table: string): void {
  const db = new Database(file)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  const { page_size: size } = db.query<{ page_size: number }, []>('PRAGMA page_size').get()!
  const root = db.query<{ rootpage: number }, [string]>('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(table)!
  db.close()
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(size, 0xff), 0, size, (root.rootpage - 1) * size)
  closeSync(handle)
}

test.concurrent('run reads an input from stdin', async () => {
  const home = folder()
  const said = await command(['run', files({ 'team.yml': HELLO }), '-i', 'who=@-'], { home, stdin: 'ada\n' })
  expect(said.code).toBe(0)
  const child = startCommand(['run', files({ 'team.yml': HELLO }), '-i', 'times=@-', '--json'], { home, stdin: '7\n' })
  expect(JSON.parse(await child.stdout.text()).inputs).toEqual({ who: 'world', times: 7 })
})
