// What comes from outside as an id becomes a folder's name only when it is a UUID. The hub here is hostile, the daemon a
// real process.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRunId, removeRunFolder, runFolder } from '../../lib/files/run-id.ts'
import { RunIds } from '../../lib/files/run-ids.ts'
import { forgetAges } from '../support/aged-home.ts'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hostileTexts } from '../support/hostile.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const ECHO = `name: "@acme/echo"
version: 1.0.0
phases: [{ name: say, agent: exec, commands: [{ name: c, run: 'echo hello > "$CADRE_OUT/said.txt"' }] }]
`

let hub: HostileHub
let daemon: RunningDaemon
/** The folder that has the home, and beside it what must stay as it is. */
let around: string
let echo: { team: string; sha256: string }

beforeAll(async () => {
  hub = startHostileHub()
  echo = hub.publish('@acme/echo', ECHO)
  around = folder()
  const home = join(around, 'home')
  mkdirSync(join(around, 'victim'), { recursive: true })
  writeFileSync(join(around, 'victim/kept.txt'), 'kept')
  mkdirSync(home, { mode: 0o700 })
  daemon = await spawnDaemon({ home, env: hub.env })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

/** Everything beside the home. */
const outside = () =>
  readdirSync(around, { recursive: true, encoding: 'utf8' })
    .filter(name => !/^home(\/|$)/.test(name))
    .sort()
const untouched = () => {
  expect(outside()).toEqual(['victim', 'victim/kept.txt'])
  expect(readFileSync(join(around, 'victim/kept.txt'), 'utf8')).toBe('kept')
}

/** The daemon executes what a hub may ask for. */
async function works(): Promise<void> {
  const job = jobOf('run', runOrder(echo))
  hub.deliver(job)
  expect(await hub.outcome(job.job_id)).toMatchObject({ status: 'done' })
}

const WRONG_IDS = [
  ...['../../victim', '..', '.', '', '/tmp/victim', '../runs/x', 'victim', 'a/b', '\0', 'x'.repeat(5_000)],
  ...[
    '0192D3C4-5B6A-7C8D-9E0F-112233445566',
    '0192d3c4-5b6a-7c8d-9e0f-112233445566\n',
    ' 0192d3c4-5b6a-7c8d-9e0f-112233445566',
  ],
  ...['0192d3c4-5b6a-7c8d-9e0f-112233445566/..', '{0192d3c4-5b6a-7c8d-9e0f-112233445566}'],
]

test('a job whose run has an id that is no UUID is refused by name, and the jobs beside it are done', async () => {
  const wrong = WRONG_IDS.map(run_id => jobOf('run', runOrder(echo), { run_id }))
  const right = jobOf('run', runOrder(echo))
  hub.deliver(...wrong, right)
  expect(await hub.outcome(right.job_id)).toMatchObject({ status: 'done' })
  for (const { job_id, lease_id } of wrong) {
    const answer = await hub.outcome(job_id)
    expect(answer).toMatchObject({ job_id, lease_id, status: 'failed' })
    expect(answer.error).toContain('run_id must be a UUID in small letters')
  }
  untouched()
  expect(readdirSync(join(daemon.home, 'runs')).every(isRunId)).toBe(true)
  for (const { job_id } of wrong) expect(daemon.output.stderr).toContain(job_id)
})

test('orders about such runs, and jobs and leases with such ids, are refused in the same way', async () => {
  const wrong = WRONG_IDS.flatMap(id => [
    jobOf('cancel', {}, { run_id: id }),
    jobOf('resume', {}, { run_id: id }),
    jobOf('decide', { review_id: id, decision: 'approve', by: 'x' }, { run_id: id }),
  ])
  const ids = ['../../victim', '..', 'x'].flatMap(id => [
    jobOf('run', runOrder(echo), { job_id: id }),
    jobOf('run', runOrder(echo), { lease_id: id }),
  ])
  hub.deliver(...wrong, ...ids)
  for (const { job_id } of [...wrong, ...ids]) expect(await hub.outcome(job_id)).toMatchObject({ status: 'failed' })
  await works()
  untouched()
})

test('a delivery that is not even a job stops nothing', async () => {
  const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)
  const right = jobOf('run', runOrder(echo))
  const wrong = [
    ...[
      null,
      7,
      'job',
      [],
      {},
      [[]],
      { job_id: 7 },
      jobOf('run', [] as object),
      jobOf('run', runOrder(echo), { run_id: null }),
    ],
    ...[
      jobOf('run', runOrder(echo), { run_id: { toString: 'x' } }),
      jobOf('__proto__', {}),
      jobOf('run', {}),
      jobOf('run', deep),
    ],
    ...[jobOf('run', runOrder(echo), { attempt: 'many' }), jobOf('run', runOrder(echo), { payload: null })],
  ]
  hub.deliver(...wrong, right)
  expect(await hub.outcome(right.job_id)).toMatchObject({ status: 'done' })
  await works()
  untouched()
})

test('a package that is named or pinned as a path is refused, and nothing of it is written', async () => {
  const names = [
    '@acme/echo@..',
    '@acme/..@1.0.0',
    '@../victim@1.0.0',
    '../../victim',
    '@acme/echo@1.0.0/../../..',
    '@acme/echo@',
  ]
  const jobs = names.map(team => jobOf('run', runOrder({ ...echo, team })))
  hub.deliver(...jobs)
  for (const { job_id } of jobs) {
    const { status, error } = await hub.outcome(job_id)
    expect(status).toBe('failed')
    expect(error).not.toContain('internal error')
  }
  untouched()
  expect(readdirSync(join(daemon.home, 'packages'))).toEqual(['@acme'])
})

test('deleting a run removes one entry of the runs of the home, and follows no link', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@acme/echo' })
  await daemon.ended(run_id)
  const inside = runFolder(daemon.home, run_id)
  symlinkSync(join(around, 'victim'), join(inside, 'link'))
  await daemon.call('/v1/runs/delete', { run_id })
  expect(existsSync(inside)).toBe(false)
  untouched()

  const home = folder()
  const linked = new RunIds().next()
  mkdirSync(join(home, 'runs'))
  symlinkSync(join(around, 'victim'), runFolder(home, linked))
  await removeRunFolder(home, linked)
  expect(readdirSync(join(home, 'runs'))).toEqual([])
  untouched()
})

test('a row that an older version wrote for such an id goes without a folder', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@acme/echo' })
  await daemon.ended(run_id)
  await daemon.stop()
  const db = new Database(join(daemon.home, 'daemon.db'))
  db.run('PRAGMA foreign_keys = OFF')
  db.run('UPDATE runs SET id = ?1, root_id = ?1, completed_at = 1 WHERE id = ?2', ['../../victim', run_id])
  db.close()
  forgetAges(daemon.home)
  daemon = await spawnDaemon({ home: daemon.home, env: hub.env })
  const left = () => daemon.post('/v1/runs/get', { run_id: '../../victim' })
  // It ended long ago: retention removes it soon after the start.
  await until(async () => (await left()).status === 404, 'the end of the row')
  untouched()
})

test('only a UUID in small letters is the id of a run', () => {
  const random = randomFrom(seedOf('ids'))
  for (const text of [...WRONG_IDS, ...hostileTexts(random, 2_000)]) {
    if (isRunId(text)) expect(text).toMatch(/^[0-9a-f-]{36}$/)
  }
  for (let n = 0; n < 100; n++) expect(isRunId(new RunIds().next())).toBe(true)
})
