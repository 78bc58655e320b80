// `hub drain`: it finds the hub by its pid file, stops it as SIGTERM does, waits for its end, and touches no other process.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'

const server = process.env.TEST_POSTGRES_URL

const children = new Set<Bun.Subprocess>()
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await Promise.all([...children].map(child => child.exited))
})

function hubsOf(env: Record<string, string> = {}) {
  const home = folder()
  const start = (args: string[]) => {
    const child = Bun.spawn([...HUB, ...args], {
      env: { ...environmentAt(home), ...CHEAP_PASSWORDS, CADRE_HOME: home, CADRE_LOG_FORMAT: 'json', ...env },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    children.add(child)
    return child
  }
  return {
    home,
    start,
    async serve() {
      const child = start(['serve', '--port', '0'])
      let said = ''
      for await (const chunk of child.stdout) {
        said += new TextDecoder().decode(chunk)
        if (said.includes('\n')) break
      }
      const url = /^hub listening on (\S+)\n/.exec(said)![1]!
      return { child, url, port: URL.parse(url)!.port }
    },
    async drain(...args: string[]) {
      const child = start(['drain', ...args])
      const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
      return { code, stderr }
    },
    pidFiles: () => readdirSync(home).filter(name => name.endsWith('.pid')),
  }
}

test('drain waits for the end of the hub, and says what it waits for', async () => {
  const hubs = hubsOf({ CADRE_DRAIN_SECONDS: '1' })
  const { child, url, port } = await hubs.serve()
  expect(hubs.pidFiles()).toEqual([`hub.db.${port}.pid`])
  const file = join(hubs.home, `hub.db.${port}.pid`)
  expect(readFileSync(file, 'utf8').split('\n', 1)).toEqual([`${child.pid}`])
  expect(await hubs.drain()).toEqual({
    code: 0,
    stderr: [
      `hub: process ${child.pid} at ${url} was told to stop: it still answers for 1.0s (CADRE_DRAIN_SECONDS), while ` +
        '/ready says 503; then it refuses new requests and waits at most 9.5s for those under way',
      `hub: process ${child.pid} has ended`,
      '',
    ].join('\n'),
  })
  expect(await child.exited).toBe(0)
  expect(existsSync(file)).toBe(false)
})

test('a pid file that a killed hub left is noticed, and is no obstacle', async () => {
  const hubs = hubsOf()
  expect(await hubs.drain()).toEqual({
    code: 1,
    stderr: expect.stringContaining(`no hub runs here: there is no ${hubs.home}/hub.db.PORT.pid`),
  })
  const killed = await hubs.serve()
  killed.child.kill('SIGKILL')
  await killed.child.exited
  expect(await hubs.drain()).toEqual({
    code: 1,
    stderr: expect.stringContaining(`hub.db.${killed.port}.pid names process ${killed.child.pid}, which did not end`),
  })
  const next = await hubs.serve()
  expect(hubs.pidFiles()).toEqual([`hub.db.${next.port}.pid`])
  expect((await hubs.drain()).code).toBe(0)
  expect(await next.child.exited).toBe(0)
})

test('a process that has the id of a hub by now gets no signal', async () => {
  const hubs = hubsOf()
  const killed = await hubs.serve()
  killed.child.kill('SIGKILL')
  await killed.child.exited
  const other = Bun.spawn(['sleep', '600'])
  children.add(other)
  const file = join(hubs.home, `hub.db.${killed.port}.pid`)
  const whole = readFileSync(file, 'utf8').replace(`${killed.child.pid}`, `${other.pid}`)
  for (const text of [whole, `${other.pid}\n`]) {
    writeFileSync(file, text)
    expect(await hubs.drain()).toEqual({
      code: 2,
      stderr: expect.stringContaining(
        `names process ${other.pid}, which is another program by now: no signal was sent`,
      ),
    })
  }
  expect(other.killed || other.exitCode !== null).toBe(false)
})

test('a hub that does not come to its end fails the drain', async () => {
  const hubs = hubsOf({ CADRE_DRAIN_SECONDS: '300' })
  const { child, url } = await hubs.serve()
  const draining = hubs.drain()
  while ((await fetch(`${url}/ready`)).status !== 503) await Bun.sleep(10)
  child.kill('SIGKILL')
  expect(await draining).toEqual({ code: 1, stderr: expect.stringContaining('has ended, but not by itself') })
})

test('a hub whose pid file is that of the next hub by now has ended by itself', async () => {
  const hubs = hubsOf({ CADRE_DRAIN_SECONDS: '1' })
  const { child, url, port } = await hubs.serve()
  const file = join(hubs.home, `hub.db.${port}.pid`)
  // In containers, one hub after the other has the same id.
  const next = readFileSync(file, 'utf8').replace(/"started":"\w+"/, '"started":"later"')
  const draining = hubs.drain()
  while ((await fetch(`${url}/ready`)).status !== 503) await Bun.sleep(10)
  writeFileSync(file, next)
  expect(await draining).toEqual({ code: 0, stderr: expect.stringContaining(`process ${child.pid} has ended\n`) })
  expect(await child.exited).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe(next)
})

describe.if(Boolean(server))('on PostgreSQL', () => {
  test('one of several hubs is drained by its port', async () => {
    await using database = await freshPostgres(server!)
    const hubs = hubsOf({ CADRE_HUB_DATABASE: database.location })
    const [one, two] = [await hubs.serve(), await hubs.serve()]
    expect(await hubs.drain()).toEqual({ code: 2, stderr: expect.stringContaining('say which one with --port') })
    expect((await hubs.drain('--port', two.port)).code).toBe(0)
    expect(await two.child.exited).toBe(0)
    expect(one.child.exitCode).toBeNull()
    expect((await hubs.drain()).code).toBe(0)
    expect(await one.child.exited).toBe(0)
  })
})
