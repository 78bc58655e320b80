// `agents.<agent>.limit` in settings.yml: how many requests are sent in the name of an account within a time, over all runs
// of the home. The time is an hour, so that what may not be sent is not sent.

import { afterAll, afterEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunPhases } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const asked: string[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url }) {
    asked.push(new URL(url).pathname.slice(1))
    return Response.json({})
  },
})
afterAll(() => server.stop(true))

let daemon: RunningDaemon | undefined
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
})

function homeWith(settings: string): string {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  return home
}

function asking(agent: string, names: readonly string[]): string {
  const path = folder()
  const sources = names.map(name => `{ name: ${name}, url: "http://127.0.0.1:${server.port}/${name}" }`)
  writeFileSync(
    join(path, 'team.yml'),
    `name: "@local/ask"\nversion: 1.0.0\nphases: [{ name: ask, agent: "${agent}", sources: [${sources.join(', ')}] }]\n`,
  )
  return path
}

const LIMITED = 'the limit of agents.http (3 per 1h)'

test('all runs share the limit of an account, another account has its own, and a cancel ends the wait', async () => {
  daemon = await spawnDaemon({ home: homeWith('agents: { http: { limit: { count: 3, per: 1h } } }\n') })
  const { call, envelope, ended } = daemon
  const start = async (path: string): Promise<string> => (await call('/v1/runs/start', { path })).run_id
  const waiting = async (run_id: string) => {
    const { phases } = await envelope<RunPhases>('/v1/runs/phases', 'run_phases', { run_id })
    return phases[0]!.waiting?.reason
  }
  const first = await start(asking('http', ['a', 'b']))
  expect((await ended(first)).state).toBe('completed')
  const second = await start(asking('http', ['c', 'd']))
  await until(async () => (await waiting(second)) === LIMITED, 'the fourth request')
  expect(asked).toEqual(['a', 'b', 'c'])
  expect((await ended(await start(asking('http@other', ['e', 'f', 'g', 'h'])))).state).toBe('completed')
  expect(asked).toEqual(['a', 'b', 'c', 'e', 'f', 'g', 'h'])
  const why = await command(['why', second], { home: daemon.home })
  expect(why.stdout).toContain(`and waits: ${LIMITED}`)
  await call('/v1/runs/cancel', { run_id: second })
  expect((await ended(second)).state).toBe('cancelled')
  expect(asked).toHaveLength(7)
}, 60_000)

test('a limit of another form is named, and nothing is sent without it', async () => {
  const home = homeWith('agents: { http: { limit: { count: many, per: 1h } } }\n')
  const set = (key: string, value: string) => command(['settings', 'set', key, value], { home })
  const run = await command(['run', asking('http', ['x'])], { home })
  expect(run).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('agents.http.limit: count must be an integer'),
  })
  expect(asked).not.toContain('x')
  expect((await set('agents.http.limit.count', '0')).code).toBe(2)
  expect((await set('agents.http.limit.often', '5')).stderr).toContain('agents.http.limit takes count and per')
  expect((await set('agents.http.limit.count', '5')).code).toBe(0)
  expect((await command(['run', asking('http', ['x'])], { home })).code).toBe(0)
  expect(asked).toContain('x')
}, 60_000)
