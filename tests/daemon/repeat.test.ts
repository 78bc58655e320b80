// A daemon that polls a server until an export is ready: it is killed again and again, and no recorded turn is repeated.
// And a wait that is cancelled, with the command line.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunPhases } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'

/** The export is ready with this request. */
const READY = 8
const KILLS = 4

let requests = 0
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: () => Response.json({ state: ++requests >= READY ? 'done' : 'running' }),
})
afterAll(() => server.stop(true))
beforeEach(() => {
  requests = 0
})

function poll(repeat: string): string {
  const path = folder()
  writeFileSync(
    join(path, 'team.yml'),
    `
name: "@local/poll"
version: 1.0.0
outputs: [{ name: state, type: string, value: "{{ phases.poll.data.json.state }}" }]
phases:
  - name: poll
    agent: http
    sources: [{ name: export.json, url: "http://127.0.0.1:${server.port}/export" }]
    repeat: { until: "result.data.json.state == 'done'", ${repeat} }
`,
  )
  return path
}

const pollOf = async (daemon: RunningDaemon, run_id: string) => {
  const { phases } = await daemon.envelope<RunPhases>('/v1/runs/phases', 'run_phases', { run_id })
  return phases[0]!
}

test('kill -9 between turns repeats no turn that was recorded', async () => {
  const home = folder()
  let daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path: poll('every: 300ms, most: 100') })
  let recorded = 0
  for (let kill = 0; kill < KILLS; kill++) {
    recorded = await until(async () => {
      const { turns } = await pollOf(daemon, run_id)
      const ended = turns.filter(({ state }) => state === 'completed').length
      return ended > recorded && ended
    }, 'the next turn')
    await daemon.kill('SIGKILL')
    checkInvariants(home)
    daemon = await spawnDaemon({ home })
  }
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', outputs: { state: 'done' } })
  const { turns } = await pollOf(daemon, run_id)
  expect(turns.map(({ turn }) => turn)).toEqual(turns.map((_, at) => at + 1))
  expect(turns.every(({ state }) => state === 'completed')).toBe(true)
  // Only a turn in the middle of which the daemon was killed asks again.
  expect(requests - turns.length).toBeWithin(0, KILLS + 1)
  expect(turns.length).toBeWithin(READY - KILLS, READY + 1)
  await daemon.stop()
  checkInvariants(home)
}, 60_000)

test('a wait is explained, cancelled, and gone on with', async () => {
  const daemon = await spawnDaemon()
  const { run_id } = await daemon.call('/v1/runs/start', { path: poll('every: 1h, most: 40') })
  await until(async () => (await pollOf(daemon, run_id)).reason === 'repeat', 'the wait')
  const run = (...args: string[]) => command(args, { home: daemon.home })
  expect((await run('why', run_id)).stdout).toContain('its phase poll (http) waits for turn 2 of 40, until ')
  expect((await run('phases', run_id)).stdout).toContain('turn 2 of 40')
  await run('cancel', run_id)
  expect((await daemon.ended(run_id)).state).toBe('cancelled')
  expect(requests).toBe(1)
  await daemon.call('/v1/runs/resume', { run_id })
  await until(async () => (await pollOf(daemon, run_id)).reason === 'repeat', 'the second wait')
  expect((await pollOf(daemon, run_id)).turns.map(({ turn, state }) => [turn, state])).toEqual([
    [1, 'completed'],
    [2, 'completed'],
  ])
  expect(requests).toBe(2)
  await daemon.stop()
  checkInvariants(daemon.home)
}, 60_000)
