// Processes that do not want to end, and a daemon that has to.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'

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

async function pids(dir: string): Promise<number[]> {
  for (;;) {
    const lines = existsSync(join(dir, 'pids')) ? readFileSync(join(dir, 'pids'), 'utf8').trim().split('\n') : []
    if (lines.length === 3) return lines.map(Number)
    await Bun.sleep(10)
  }
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
