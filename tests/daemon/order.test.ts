// `last` and lists after a clock that was ahead is right again: the newest run or review is the one that came last.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { folder } from '../support/folder.ts'

const MINUTE = 60_000
const DAY = 1_440 * MINUTE
const clock = fakeClock()

const teams = files({
  'quick/team.yml':
    'name: "@local/quick"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, commands: [{ name: c, run: "true" }] }]\n',
  'asks/team.yml':
    'name: "@local/asks"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n',
})
const QUICK = join(teams, 'quick')

const lastOf = async (daemon: RunningDaemon) => {
  const { runs } = await daemon.call('/v1/runs/list', { root_only: true, limit: 1 })
  return runs[0].run_id
}
const start = async (daemon: RunningDaemon, team: string, more: object = {}): Promise<string> =>
  (await daemon.call('/v1/runs/start', { path: join(teams, team), ...more })).run_id

describe.skipIf(clock === null)('after a clock was ahead', () => {
  test('commands without a daemon name the run that came last', async () => {
    const home = folder()
    const { env, set } = fakeClock()!
    const says = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await command(args, { home, env })
      if (code !== 0) throw new Error(`${args}: ${code} ${stderr}`)
      return stdout
    }
    // biome-ignore lint/suspicious/noExplicitAny: the JSON of all commands
    const json = async (...args: string[]): Promise<any> => {
      return JSON.parse(await says(...args, '--json'))
    }
    const names = async () => (await json('runs')).runs.map((run: { run_name: string }) => run.run_name)
    set(10 * MINUTE)
    await says('run', QUICK, '--name', 'ahead')
    set(0)
    await says('run', QUICK, '--name', 'right')
    await says('run', QUICK, '--name', 'newest')
    expect(await names()).toEqual(['newest', 'right', 'ahead'])
    expect((await json('show', 'last')).run_name).toBe('newest')
    await says('runs', 'delete', 'last')
    expect(await names()).toEqual(['right', 'ahead'])
  }, 60_000)

  test('a daemon and the commands that call it name the run that came last', async () => {
    const home = folder()
    const { env, set } = fakeClock()!
    let daemon = await spawnDaemon({ home, env })
    set(400 * DAY)
    const ahead = await start(daemon, 'quick')
    set(0)
    const after = await start(daemon, 'quick')
    expect(await lastOf(daemon)).toBe(after)
    await daemon.stop()
    daemon = await spawnDaemon({ home, env })
    const later = await start(daemon, 'quick')
    expect(await lastOf(daemon)).toBe(later)
    const { code } = await command(['run', QUICK, '--name', 'by command'], { home, env })
    expect(code).toBe(0)
    const { runs } = await daemon.call('/v1/runs/list', { root_only: true })
    const ids = runs.map(({ run_id }: { run_id: string }) => run_id)
    expect(runs[0].run_name).toBe('by command')
    expect(ids.slice(1)).toEqual([later, after, ahead])
    expect((await daemon.call('/v1/runs/list', { root_only: true, since: Date.now() - DAY })).total).toBe(4)
    await daemon.stop()
  }, 60_000)

  test('the newest review that waits is the one that was asked last', async () => {
    const { env, set } = fakeClock()!
    const daemon = await spawnDaemon({ env })
    set(10 * MINUTE)
    const first = await start(daemon, 'asks')
    const reviews = async (): Promise<string[]> =>
      (await daemon.call('/v1/reviews/list', { state: 'pending' })).reviews.map(
        (each: { run_id: string }) => each.run_id,
      )
    await until(async () => (await reviews()).length === 1, 'the first review')
    set(0)
    const second = await start(daemon, 'asks')
    await until(async () => (await reviews()).length === 2, 'the second review')
    expect(await reviews()).toEqual([second, first])
    await daemon.stop()
  }, 60_000)
})

test('an id that a caller chose does not change the order of the others', async () => {
  const daemon = await spawnDaemon()
  const run_id = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
  await start(daemon, 'quick', { run_id })
  const ids = [await start(daemon, 'quick'), await start(daemon, 'quick')]
  const { runs } = await daemon.call('/v1/runs/list', { root_only: true })
  expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual([run_id, ids[1], ids[0]])
  for (const id of ids) expect(id < '1').toBe(true)
  await daemon.stop()
}, 30_000)
