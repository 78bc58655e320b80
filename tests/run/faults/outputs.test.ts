// Output files that a daemon cannot read, that block who opens them, or that are larger than memory: their own phase ends
// by name, and meanwhile and afterwards the daemon answers, starts again, and repeats nobody's work.

import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until, within } from '../../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { shell, team } from '../../support/scripted.ts'

const GIB = 2 ** 30
/** Root may read everything unless it gives that up. */
const unprivileged = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
const restricted = unprivileged.length === 0 || Bun.which('setpriv') !== null
if (!restricted) console.log('skipped: files that cannot be read (root needs setpriv to give up its rights)')
/** 5 GiB take a minute each on a slow machine. */
const [SIZE, BYTES] = process.env.CADRE_SLOW_TESTS ? ['5G', 5 * GIB] : ['300M', 300 * 2 ** 20]
const { bavail, bsize } = statfsSync(tmpdir())
const roomy = bavail * bsize > 4 * BYTES
if (!roomy) console.log('skipped: a large file is handed over (the disk has no room for four such files)')

let daemon: RunningDaemon
afterEach(() => daemon.kill('SIGKILL'))

/** Fails when the daemon does not answer within `ms`. */
async function healthy(ms = 5_000): Promise<void> {
  const reply = await within(fetch(`${daemon.url}/health`), 'an answer of /health', ms)
  if (!reply.ok) throw new Error(`/health answered ${reply.status}`)
}
/** Looks at `/health` until the run has ended: its record, and the longest that an answer took. */
async function watched(runId: string, ms: number) {
  let longest = 0
  const run = await until(
    async () => {
      const asked = performance.now()
      await healthy()
      longest = Math.max(longest, performance.now() - asked)
      const record = await within(daemon.call('/v1/runs/get', { run_id: runId }), 'the record of the run')
      return record.completed_at !== null && record
    },
    'the end of the run',
    ms,
  )
  return { run, longest }
}
const phases = async (runId: string) =>
  (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: runId })).phases
const output = (value: string) => ({ outputs: [{ name: 'doc', type: 'file', value }] })
const start = async (child: string, map = false) => {
  const down = map
    ? { name: 'down', type: 'map', items: [1], key: 'k', team: './child' }
    : { name: 'down', type: 'team', team: './child' }
  const path = files({ 'team.yml': team([down]), 'child/team.yml': child })
  return { path, ...(await daemon.call<{ run_id: string }>('/v1/runs/start', { path })) }
}

/** Runs that have nothing to do with it, and what they did. */
async function others(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const path = files({ 'team.yml': team([shell('other', 'true')]) })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    expect((await within(daemon.ended(run_id), 'another run')).state).toBe('completed')
  }
}

/** The phase has failed by name, its command ran once however much is written, and the next start is as any other. */
async function failsByName(run: string, path: string, map: boolean): Promise<void> {
  const counter = join(folder(), 'count')
  const counted = team([shell('make', `echo once >> ${counter}; ${run}`)], output(path))
  const { run_id } = await start(counted, map)
  const { run: record } = await watched(run_id, 30_000)
  expect(record).toMatchObject({ state: 'failed', error: { phase: 'down' } })
  const [down] = await phases(run_id)
  expect(down).toMatchObject({ state: 'failed' })
  expect(down.error.message).toContain(path)
  await others(3)
  const { home } = daemon
  expect((await within(daemon.stop(), 'the stop')).code).toBe(0)
  daemon = await spawnDaemon({ home, through: unprivileged })
  await others(1)
  expect(readFileSync(counter, 'utf8')).toBe('once\n')
}

describe.each([
  ['a team', false],
  ['a map', true],
])('%s whose file output', (_, map) => {
  const secret = 'echo kept > secret; chmod 000 secret'
  test.skipIf(!restricted)(
    'cannot be read in the workspace fails by name',
    async () => {
      daemon = await spawnDaemon({ through: unprivileged })
      await failsByName(secret, 'secret', map)
    },
    60_000,
  )

  test.skipIf(!restricted)(
    'cannot be read among the files of the run fails by name',
    async () => {
      daemon = await spawnDaemon({ through: unprivileged })
      await failsByName(`cd "$CADRE_FILES"; ${secret}`, 'files/secret', map)
    },
    60_000,
  )

  test('is a named pipe in the workspace fails by name and blocks nobody', async () => {
    daemon = await spawnDaemon()
    await failsByName('mkfifo pipe', 'pipe', map)
  }, 60_000)

  test('is a named pipe among the files of the run fails by name and blocks nobody', async () => {
    daemon = await spawnDaemon()
    await failsByName('mkfifo "$CADRE_OUT/pipe"', 'files/make/pipe', map)
  }, 60_000)
})

test('a named pipe as the declared file of a top run fails the run by name and blocks nobody', async () => {
  daemon = await spawnDaemon()
  const path = files({ 'team.yml': team([shell('make', 'mkfifo pipe')], output('pipe')) })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const { run } = await watched(run_id, 30_000)
  expect(run).toMatchObject({ state: 'failed' })
  expect(run.error.message).toContain('pipe')
})

describe.skipIf(!roomy)(`a file of ${SIZE}`, () => {
  const cases: [where: string, run: string, path: string, map: boolean][] = [
    ['from the workspace to a team phase', `truncate -s ${SIZE} big`, 'big', false],
    ['from the files of the run to a map', `truncate -s ${SIZE} "$CADRE_FILES/big"`, 'files/big', true],
  ]
  test.each(cases)(
    'is handed over %s while the daemon answers',
    async (_, run, path, map) => {
      daemon = await spawnDaemon()
      const counter = join(folder(), 'count')
      const { run_id } = await start(team([shell('make', `echo once >> ${counter}; ${run}`)], output(path)), map)
      const { run: record, longest } = await watched(run_id, 180_000)
      expect(record).toMatchObject({ state: 'completed' })
      const [down] = await phases(run_id)
      expect(down.files).toMatchObject([{ bytes: BYTES }])
      expect(longest).toBeLessThan(2_000)
      await others(1)
      expect(readFileSync(counter, 'utf8')).toBe('once\n')
    },
    300_000,
  )
})
