// Processes that do not want to end, and a daemon that has to.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootId, groupMembers, startOf } from '../../lib/program/process.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'

const PROCESSES = join(import.meta.dir, '../../lib/agent/commands/processes.ts')

/** Ignores SIGTERM, as do a child and a grandchild in the background; all say who they are. Passes once `done` exists. */
const stubborn = (dir: string) => `
trap "" TERM
[ -e ${dir}/done ] && exit 0
echo $$ >> ${dir}/pids
(trap "" TERM; sh -c 'echo $$ >> ${dir}/pids; trap "" TERM; while :; do sleep 60; done' & while :; do sleep 60; done) &
echo $! >> ${dir}/pids
while :; do sleep 60; done
`

const team = (dir: string) => ({
  'team.yml': `name: "@local/stubborn"
version: 1.0.0
phases:
  - { name: before, agent: exec, commands: [{ name: c, run: "echo x >> ${dir}/before" }] }
  - { name: below, type: team, depends_on: [before], team: ./below }
`,
  'below/team.yml': JSON.stringify({
    name: '@local/below',
    version: '1.0.0',
    phases: [{ name: 'stays', agent: 'exec', commands: [{ name: 'c', run: stubborn(dir) }] }],
  }),
})

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function pids(dir: string, count = 3): Promise<number[]> {
  for (;;) {
    const text = existsSync(join(dir, 'pids')) ? readFileSync(join(dir, 'pids'), 'utf8') : ''
    // A shell makes the file before it writes to it.
    const lines = text.split('\n').filter(Boolean)
    if (lines.length === count) return lines.map(Number)
    await Bun.sleep(10)
  }
}

/** Kills the daemon as a power cut would, unlike the processes that it has started. */
async function killed(daemon: RunningDaemon, left: number[]): Promise<void> {
  await daemon.kill('SIGKILL')
  expect(left.filter(alive)).toEqual(left)
}

const remembered = (home: string) => {
  const all = join(home, 'processes')
  return readdirSync(all).flatMap(boot => readdirSync(join(all, boot)))
}

/** Milliseconds since `start` when the last of them was gone. What init has still to bury counts as alive. */
async function gone(all: number[], start: number): Promise<number> {
  while (all.some(alive) && performance.now() - start < 12_000) await Bun.sleep(20)
  return performance.now() - start
}

test('cancel: whatever ignores SIGTERM is gone within 5 s, grandchildren too', async () => {
  const daemon = await spawnDaemon()
  const dir = folder()
  const { run_id } = await daemon.call('/v1/runs/start', { path: files(team(dir)) })
  const all = await pids(dir)
  expect(all.filter(alive)).toEqual(all)
  const asked = performance.now()
  await daemon.call('/v1/runs/cancel', { run_id })
  const run = await daemon.ended(run_id)
  expect(run.state).toBe('cancelled')
  expect(await gone(all, asked)).toBeLessThan(5_000)
  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  expect(runs.map(({ state }: { state: string }) => state)).toEqual(['cancelled', 'cancelled'])
  await daemon.stop()
  checkInvariants(daemon.home)
}, 30_000)

test('SIGTERM: the daemon ends within 10 s, its processes too, and the next start continues', async () => {
  const home = folder()
  const first = await spawnDaemon({ home })
  const dir = folder()
  const { run_id } = await first.call('/v1/runs/start', { path: files(team(dir)) })
  const all = await pids(dir)
  const asked = performance.now()
  const { code } = await first.stop()
  expect(code).toBe(0)
  expect(await gone(all, asked)).toBeLessThan(10_000)
  checkInvariants(home)

  await Bun.write(join(dir, 'done'), '')
  const second = await spawnDaemon({ home })
  expect(await second.ended(run_id)).toMatchObject({ state: 'completed', attempt: 1 })
  expect(readFileSync(join(dir, 'before'), 'utf8')).toBe('x\n')
  await second.stop()
  checkInvariants(home)
}, 40_000)

test('kill -9: what the phase had started is ended before the phase is repeated', async () => {
  const home = folder()
  const first = await spawnDaemon({ home })
  const dir = folder()
  const { run_id } = await first.call('/v1/runs/start', { path: files(team(dir)) })
  const all = await pids(dir)
  await killed(first, all)

  const second = await spawnDaemon({ home })
  const twice = await pids(dir, 6)
  // They never end by themselves.
  expect(groupMembers(all[0]!)).toEqual([])
  expect(readFileSync(join(dir, 'before'), 'utf8')).toBe('x\n')
  expect(remembered(home).map(name => Number(name.split('.')[0]))).toEqual([twice[3]!])
  await second.call('/v1/runs/cancel', { run_id })
  await second.ended(run_id)
  expect(remembered(home)).toEqual([])
  await second.stop()
  checkInvariants(home)
}, 30_000)

test.skipIf(process.platform !== 'linux')(
  'kill -9: a group whose leader is gone is known by its run',
  async () => {
    const home = folder()
    const first = await spawnDaemon({ home })
    const dir = folder()
    // The leader ends when the pipe it writes to has lost its reader; the other one does not write.
    const run = `sh -c 'while :; do sleep 60; done' & echo $! >> ${dir}/pids; while sleep 0.02; do echo .; done`
    const one = JSON.stringify({
      name: '@local/orphan',
      version: '1.0.0',
      phases: [{ name: 'leads', agent: 'exec', commands: [{ name: 'c', run: `[ -e ${dir}/pids ] || { ${run}; }` }] }],
    })
    const { run_id } = await first.call('/v1/runs/start', { path: files({ 'team.yml': one }) })
    const [orphan] = await pids(dir, 1)
    const group = Number(remembered(home)[0]!.split('.')[0])
    await killed(first, [orphan!])
    while (groupMembers(group).includes(group)) await Bun.sleep(10)
    expect(groupMembers(group)).toContain(orphan!)

    const second = await spawnDaemon({ home })
    expect(groupMembers(group)).toEqual([])
    expect(await second.ended(run_id)).toMatchObject({ state: 'completed' })
    await second.stop()
  },
  30_000,
)

test.each([1, 2])('a command whose daemon dies before it is let go never begins (%i)', async place => {
  const dir = folder()
  const started = Bun.spawn(
    [
      process.execPath,
      '-e',
      `import { startGroup } from ${JSON.stringify(PROCESSES)}
       startGroup(['touch', 'begun'], { cwd: ${JSON.stringify(dir)}, env: { PATH: process.env.PATH }, runId: 'x', folder: '${dir}/p' })
       await Bun.sleep(60_000)`,
    ],
    { env: { PATH: process.env.PATH!, CADRE_FAILPOINT: String(place) } },
  )
  await started.exited
  expect(started.signalCode).toBe('SIGKILL')
  await Bun.sleep(300)
  expect(existsSync(join(dir, 'begun'))).toBe(false)
  expect(existsSync(join(dir, 'p'))).toBe(place === 2)
})

test('a process that only has the id of one of ours is left alone', async () => {
  const home = folder()
  const other = Bun.spawn(['sleep', '60'], { detached: true })
  const folderOfBoot = join(home, 'processes', bootId())
  mkdirSync(folderOfBoot, { recursive: true })
  mkdirSync(join(home, 'processes', 'an-earlier-boot'))
  const start = process.platform === 'linux' ? Number(startOf(other.pid)) - 1 : Date.now() - 60_000
  writeFileSync(join(folderOfBoot, `${other.pid}.${start}.01900000-0000-7000-8000-000000000000`), '')
  const right = `${other.pid}.${startOf(other.pid)}.01900000-0000-7000-8000-000000000000`
  writeFileSync(join(home, 'processes', 'an-earlier-boot', right), '')
  const daemon = await spawnDaemon({ home })
  expect(groupMembers(other.pid)).toEqual([other.pid])
  expect(readdirSync(join(home, 'processes'))).toEqual([bootId()])
  expect(remembered(home)).toEqual([])
  await daemon.stop()
  other.kill('SIGKILL')
})
