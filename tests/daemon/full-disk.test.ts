// A home on a disk that is really full: what cannot be done is told in one sentence, what is recorded can be read, and
// whoever is asked to end does. Needs to mount a small disk.

import { afterEach, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type CommandResult, command, files, spawnDaemon, startCommand } from '../support/daemon.ts'
import { type SmallDisk, smallDisk } from '../support/disk.ts'
import { folder } from '../support/folder.ts'
import { HELLO } from './teams.ts'

const first = smallDisk()
if (!first) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
first?.[Symbol.dispose]()
const skip = first === null

const disks: SmallDisk[] = []
afterEach(() => {
  for (const disk of disks.splice(0)) disk[Symbol.dispose]()
})

function disk(): SmallDisk {
  const made = smallDisk()!
  disks.push(made)
  return made
}

const NAPS = (dir: string) => `name: "@local/naps"
version: 1.0.0
phases:
  - { name: nap, agent: exec, commands: [{ name: c, run: "touch ${dir}/begun; sleep 60" }] }
  - { name: after, agent: exec, depends_on: [nap], commands: [{ name: c, run: "true" }] }
`

const SENTENCE = /^error {2}the disk of \S+ is full: [^\n]*; free some space\n$/

function isSentence(home: string, { code, stdout, stderr }: CommandResult): void {
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(SENTENCE)
  expect(stderr).toContain(`the disk of ${home} is full`)
}

/** A run that a kill -9 has interrupted, so that the write-ahead log holds what is in no other file. */
async function interruptedRun(home: string): Promise<string> {
  const dir = folder()
  const child = startCommand(['run', files({ 'team.yml': NAPS(dir) })], { home })
  while (!existsSync(join(dir, 'begun'))) await Bun.sleep(20)
  child.kill('SIGKILL')
  await child.exited
  return JSON.parse((await command(['runs', '--json'], { home })).stdout).runs[0].run_id
}

test.skipIf(skip)('a home that has nothing yet cannot be made: one sentence, exit 1', async () => {
  const { path, fill } = disk()
  fill()
  const home = join(path, 'home')
  for (const args of [
    ['run', files({ 'team.yml': HELLO })],
    ['serve', '--port', '0'],
  ]) {
    isSentence(home, await command(args, { home, cwd: folder() }))
  }
  isSentence(home, await command(['settings', 'set', 'hub.api_key', 'some value'], { home, cwd: folder() }))
})

test.skipIf(skip).each([0, 8_192, 131_072])(
  'with %i bytes left reading commands read, the others tell why they cannot',
  async spare => {
    const { path: home, fill, free } = disk()
    await command(['run', files({ 'team.yml': HELLO })], { home })
    const runId = await interruptedRun(home)
    fill(spare)
    const runs = await command(['runs', '--json'], { home })
    expect([runs.code, runs.stderr]).toEqual([0, ''])
    expect(JSON.parse(runs.stdout).runs).toMatchObject([
      { run_id: runId, state: 'interrupted' },
      { state: 'completed' },
    ])
    for (const word of ['tree', 'phases', 'why', 'logs']) {
      const stderr = word === 'logs' ? 'no lines\n' : ''
      expect(await command([word, runId], { home })).toMatchObject({ code: 0, stderr })
    }
    isSentence(home, await command(['run', files({ 'team.yml': HELLO })], { home }))
    isSentence(home, await command(['resume', runId], { home }))
    isSentence(home, await command(['cancel', runId], { home }))
    free()
    expect(await command(['cancel', runId], { home })).toMatchObject({ code: 0 })
  },
  60_000,
)

test.skipIf(skip)('nothing at all is left, after a clean end', async () => {
  const { path: home, fill } = disk()
  await command(['run', files({ 'team.yml': HELLO })], { home })
  fill()
  const { code, stdout } = await command(['runs', '--json'], { home })
  expect([code, JSON.parse(stdout).runs.length]).toEqual([0, 1])
  isSentence(home, await command(['run', files({ 'team.yml': HELLO })], { home }))
  isSentence(home, await command(['serve', '--port', '0'], { home }))
})

test.skipIf(skip).each(['SIGTERM', 'SIGINT'] as const)('%s ends a run in its own process within 10 s', async signal => {
  const { path: home, fill } = disk()
  const dir = folder()
  const child = startCommand(['run', files({ 'team.yml': NAPS(dir) })], { home, cwd: dir })
  while (!existsSync(join(dir, 'begun'))) await Bun.sleep(20)
  fill()
  const asked = performance.now()
  child.kill(signal)
  expect(await child.exited).toBe(130)
  expect(performance.now() - asked).toBeLessThan(10_500)
})

test.skipIf(skip)('SIGTERM ends a daemon within 10 s', async () => {
  const { path: home, fill } = disk()
  const dir = folder()
  const daemon = await spawnDaemon({ home })
  await daemon.call('/v1/runs/start', { path: files({ 'team.yml': NAPS(dir) }) })
  while (!existsSync(join(dir, 'begun'))) await Bun.sleep(20)
  fill()
  // Waits for space.
  void daemon.post('/v1/runs/start', { path: files({ 'team.yml': HELLO }) }).catch(() => {})
  await Bun.sleep(500)
  const { ms } = await daemon.stop()
  expect(ms).toBeLessThan(10_500)
})

test.skipIf(skip)(
  '`why` tells that a run waits for space, as `tree` does, in the run and in those above it',
  async () => {
    const { path: home, fill, free } = disk()
    const daemon = await spawnDaemon({ home })
    fill(262_144)
    const isStalled = async () => !(await fetch(`${daemon.url}/ready`)).ok
    await until(isStalled, 'the daemon to notice')
    const path = files({
      'team.yml':
        'name: "@local/top"\nversion: 1.0.0\nphases: [{ name: t, type: team, team: ./below, inputs: { who: ada } }]\n',
      'below/team.yml': HELLO,
    })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    const waits = /waits for space on the disk: \S+ KiB are free on the disk of \S+, 409\.6 KiB are needed/
    await until(async () => waits.test((await command(['tree', run_id], { home })).stdout), 'the phase to wait')
    const { lines, chain, next } = await daemon.call('/v1/runs/why', { run_id })
    expect(lines.slice(0, 2)).toEqual([
      expect.stringMatching(/^Sub-run \S+ of @local\/hello is running, and its phase greet \(exec\) waits for space/),
      expect.stringMatching(/^Run \S+ of @local\/top is in phase t \(team\), attempt 1\.$/),
    ])
    expect(lines[0]).toMatch(new RegExp(`${waits.source}\\.$`))
    expect(chain.map(({ phase }: { phase: string }) => phase)).toEqual(['t', 'greet'])
    expect(next).toEqual([['watch', run_id]])
    free()
    expect((await daemon.ended(run_id)).state).toBe('completed')
  },
)

test.skipIf(skip)('a read-only disk is read; what would write is told', async () => {
  const small = disk()
  const { path: home } = small
  await command(['run', files({ 'team.yml': HELLO })], { home })
  small.readonly()
  expect(JSON.parse((await command(['runs', '--json'], { home })).stdout).runs).toHaveLength(1)
  const { code, stderr } = await command(['run', files({ 'team.yml': HELLO })], { home })
  expect(code).toBe(2)
  expect(stderr).toBe(
    `error  ${home} is on a disk that is read-only: choose another folder with --home or CADRE_HOME\n`,
  )
})
