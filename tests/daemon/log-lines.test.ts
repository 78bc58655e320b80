// Where the log of a server is JSON, each line of it is: the first ones, and whatever ends it. Real processes that are made
// to fail; stdout has the line that says where they listen, and nothing else.

import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { resolve as absolute, join } from 'node:path'
import { folder } from '../support/folder.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'

const COMPILED = process.env.CADRE_TEST_PROGRAM
const DAEMON = COMPILED ? [COMPILED] : [process.execPath, absolute(import.meta.dir, '../../daemon.ts')]

const children = new Set<Bun.Subprocess>()
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await Promise.all([...children].map(child => child.exited))
})

/** Does what its name says as soon as the file `go` is there. */
const FAULTS: Readonly<Record<string, string>> = {
  'an uncaught exception': 'throw new Error("planted\\nfault")',
  'an unhandled rejection': 'Promise.reject(new Error("planted\\nfault"))',
  'what is thrown and is no error': 'throw "planted"',
}
const WORDS = `process.emitWarning('planted'); console.log('planted'); console.error('planted\\nline'); setTimeout(() => {}, 2 ** 40)`

describe.each([
  ['the daemon', DAEMON, 'daemon.db'],
  ['the hub', HUB, 'hub.db'],
] as const)('%s', (_, program, database) => {
  const start = (home: string, words: string[] = [], env: Record<string, string> = {}) => {
    const child = Bun.spawn([...program, 'serve', '--port', '0', ...words], {
      cwd: home,
      env: { ...environmentAt(home), ...CHEAP_PASSWORDS, CADRE_HOME: home, ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    children.add(child)
    return child
  }
  const said = async (child: ReturnType<typeof start>, first = '', listens = () => {}) => {
    const stdoutOf = async () => {
      let text = ''
      for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
        text += chunk
        if (text.includes('\n')) listens()
      }
      return text
    }
    const [stdout, stderr, code] = await Promise.all([stdoutOf(), child.stderr.text(), child.exited])
    const lines = stderr.split('\n').filter(Boolean)
    const events = lines.map(line => JSON.parse(line) as Record<string, string>)
    for (const event of events) expect(Object.keys(event).slice(0, 3)).toEqual(['time', 'level', 'event'])
    expect(stdout).toMatch(first === '' ? /^$/ : /^(hub|daemon) listening on http:\/\/127\.0\.0\.1:\d+\n$/)
    return { code, events, ended: events.at(-1)! }
  }
  const preloaded = (code: string, go: string) => {
    const file = join(folder(), 'fault.ts')
    const look = `import { existsSync, rmSync } from 'node:fs'
const timer = setInterval(() => {
  if (!existsSync(${JSON.stringify(go)})) return
  rmSync(${JSON.stringify(go)})
  clearInterval(timer)
  ${code}
}, 20)`
    writeFileSync(file, look)
    return { BUN_OPTIONS: `${CHEAP_PASSWORDS.BUN_OPTIONS} --preload=${file}` }
  }

  test('a start and a stop', async () => {
    const child = start(folder())
    const { promise, resolve } = Promise.withResolvers<void>()
    const log = said(child, 'listening', resolve)
    await promise
    child.kill('SIGTERM')
    const { code, events } = await log
    expect(code).toBe(0)
    expect(events.at(-1)!.event).toBe('stopping')
  })

  test('a port that is in use, settings that are wrong, and an option that does not exist', async () => {
    using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
    for (const [words, env, told] of [
      [['--port', `${other.port}`], {}, 'it is in use'],
      [[], { CADRE_DRAIN_SECONDS: 'soon' }, 'CADRE_DRAIN_SECONDS: expected'],
      [[], { CADRE_LOG_LEVEL: 'loud' }, 'CADRE_LOG_LEVEL must be one of'],
      [['--bogus'], {}, "unknown option '--bogus'"],
    ] as const) {
      const { code, events } = await said(start(folder(), [...words], env))
      expect([code, events.some(({ error }) => error?.includes(told))]).toEqual([2, true])
    }
  })

  test('a migration that fails, and a database that is none', async () => {
    const [older, none] = [folder(), folder()]
    using db = new Database(join(older, database))
    db.run('CREATE TABLE runs (x)')
    db.run('CREATE TABLE users (x)')
    writeFileSync(join(none, database), 'no database, but long enough to be taken for one'.repeat(100))
    for (const home of [older, none]) {
      const { code, ended } = await said(start(home))
      expect([code === 0, ended.level]).toEqual([false, 'error'])
    }
  })

  test.each(Object.entries(FAULTS))('%s', async (_, code) => {
    const go = join(folder(), 'go')
    const child = start(folder(), [], preloaded(code, go))
    const { promise, resolve } = Promise.withResolvers<void>()
    const log = said(child, 'listening', resolve)
    await promise
    writeFileSync(go, '')
    const end = await log
    expect([end.code, end.ended.error]).toEqual([1, expect.stringContaining('planted')])
  })

  test('warnings of Bun, and what is written to the console', async () => {
    const go = join(folder(), 'go')
    const child = start(folder(), [], preloaded(WORDS, go))
    const { promise, resolve } = Promise.withResolvers<void>()
    const log = said(child, 'listening', resolve)
    await promise
    writeFileSync(go, '')
    while (existsSync(go)) await Bun.sleep(20)
    child.kill('SIGTERM')
    const { events } = await log
    expect(events.filter(({ said }) => said?.includes('planted'))).toHaveLength(3)
    expect(events).toContainEqual(expect.objectContaining({ name: 'TimeoutOverflowWarning' }))
  })
})
