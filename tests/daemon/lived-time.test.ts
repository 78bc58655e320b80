// Real daemons whose wall clock steps, by libfaketime, and that are stopped for a while: nothing is deleted, failed or
// delayed because of it.

import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { RunRecord } from '../../lib/run/engine.ts'
import { change, forgetAges, livedIn, liveOn, sweepOf } from '../support/aged-home.ts'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { rowsOf } from '../support/home.ts'
import { checkInvariants } from '../support/invariants.ts'

const HOUR_S = 3_600
const DAY_S = 24 * HOUR_S
const DAY_MS = DAY_S * 1_000
const LIMIT_MS = 2_000
/** A step that delays what is due delays it by an hour at least. The machine may be busy. */
const LATE_MS = 120_000

const canStep = fakeClock() !== null

/** A wall clock that steps, for a daemon and for nothing that the daemon starts. */
function steppingClock() {
  const { env, set } = fakeClock()!
  return { env, setTo: (seconds: number) => set(seconds * 1_000) }
}

const team = (name: string, phases: string, more = '') =>
  `name: "@local/${name}"\nversion: 1.0.0\n${more}\nphases:\n${phases}`
const command = (run: string, more = '') => `agent: exec, ${more} commands: [{ name: c, run: '${run}' }]`
const LIMIT = `${LIMIT_MS / 1_000}s`

const child = files({
  'endless/team.yml': team('endless', `  - { name: work, ${command('sleep 60')} }`),
  'brief/team.yml': team('brief', `  - { name: work, ${command('sleep 1.5')} }`),
  // What must be over when its time is, and not before.
  'retry/team.yml': team(
    'retry',
    `  - { name: again, retry: { attempts: 2, backoff: 1s }, ${command('test -e "$CADRE_RUN_ID" || { touch "$CADRE_RUN_ID"; exit 1; }')} }`,
  ),
  'run/team.yml': team('run', `  - { name: work, ${command('sleep 60')} }`, `timeout: ${LIMIT}`),
  'phase/team.yml': team('phase', `  - { name: down, type: team, team: ../endless, timeout: ${LIMIT} }`),
  'review/team.yml': team('review', `  - { name: ask, type: gate, review: { prompt: Go on?, timeout: ${LIMIT} } }`),
  // What has plenty of time.
  'roomy/team.yml': team(
    'roomy',
    `  - { name: work, ${command('sleep 1.5')} }
  - { name: down, type: team, team: ../brief, timeout: 30m }
  - { name: attempt, timeout: 30m, ${command('sleep 1.5')} }`,
    'timeout: 30m',
  ),
  'patient/team.yml': team('patient', '  - { name: ask, type: gate, review: { prompt: Go on?, timeout: 30m } }'),
})
const KINDS = ['retry', 'run', 'phase', 'review', 'roomy', 'patient'] as const
type Kind = (typeof KINDS)[number]

interface Review {
  run_id: string
  kind: string
  state: string
}

/** Starts one run of each kind. */
async function startAll(daemon: RunningDaemon) {
  const started = performance.now()
  const ids = {} as Record<Kind, string>
  for (const kind of KINDS) {
    const { run_id } = await daemon.call<RunRecord>('/v1/runs/start', { path: join(child, kind) })
    ids[kind] = run_id
  }
  return { started, ids }
}

/** Waits for the end of what `startAll` started. */
async function expectAll(daemon: RunningDaemon, { started, ids }: Awaited<ReturnType<typeof startAll>>) {
  const reviewsOf = async (runId: string) => {
    const { reviews } = await daemon.call<{ reviews: Review[] }>('/v1/reviews/list', {})
    return reviews.filter(each => each.run_id === runId)
  }
  const took = async (work: Promise<unknown>) => {
    await work
    return performance.now() - started
  }
  const escalated = async () => (await reviewsOf(ids.review)).some(({ kind }) => kind === 'escalation')
  const [run, phase, review] = await Promise.all([
    took(daemon.ended(ids.run)),
    took(daemon.ended(ids.phase)),
    took(until(escalated, 'the time-out of the review', LATE_MS)),
    daemon.ended(ids.retry),
    daemon.ended(ids.roomy),
  ])
  for (const ms of [run, phase, review]) expect(ms).toBeWithin(LIMIT_MS - 100, LATE_MS)
  expect(await daemon.ended(ids.run)).toMatchObject({ state: 'failed', reason: 'timeout' })
  expect(await daemon.ended(ids.phase)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  expect(await daemon.ended(ids.retry)).toMatchObject({ state: 'completed' })
  expect(await daemon.ended(ids.roomy)).toMatchObject({ state: 'completed' })
  expect(await reviewsOf(ids.patient)).toMatchObject([{ kind: 'gate', state: 'pending' }])
  for (const run_id of [ids.review, ids.patient]) await daemon.call('/v1/runs/cancel', { run_id })
  await Promise.all([daemon.ended(ids.review), daemon.ended(ids.patient)])
}

describe.skipIf(!canStep)('a wall clock that steps', () => {
  const homes: string[] = []
  afterAll(() => {
    for (const home of homes) checkInvariants(home)
  })

  test('while the daemon runs fails and delays nothing', async () => {
    const { env, setTo } = steppingClock()
    const daemon = await spawnDaemon({ env })
    homes.push(daemon.home)
    for (const seconds of [HOUR_S, 0, 40 * DAY_S, 0]) {
      const started = await startAll(daemon)
      await Bun.sleep(300)
      setTo(seconds)
      await expectAll(daemon, started)
    }
    await daemon.stop()
  }, 240_000)

  test('while the daemon is down fails and delays nothing', async () => {
    const { env, setTo } = steppingClock()
    let daemon = await spawnDaemon({ env })
    const { home } = daemon
    homes.push(home)
    for (const seconds of [HOUR_S, 0, 40 * DAY_S, 0]) {
      const started = await startAll(daemon)
      await Bun.sleep(300)
      await daemon.stop()
      setTo(seconds)
      daemon = await spawnDaemon({ home, env })
      await expectAll(daemon, started)
    }
    await daemon.stop()
  }, 240_000)

  test('deletes nothing before it is believed', async () => {
    const { env, setTo } = steppingClock()
    const keep = { ...env, CADRE_KEEP_RUNS_DAYS: '30', CADRE_KEEP_AUDIT_DAYS: '30' }
    let daemon = await spawnDaemon({ env })
    const { home } = daemon
    const start = () => daemon.call<RunRecord>('/v1/runs/start', { path: join(child, 'brief') })
    const [old, young] = [await start(), await start()]
    await Promise.all([daemon.ended(old.run_id), daemon.ended(young.run_id)])
    await daemon.stop()
    change(home, 'UPDATE runs SET completed_at = ? WHERE id = ?', Date.now() - 40 * DAY_MS, old.run_id)
    // The start of each run is an entry of the audit log.
    const entries = () => rowsOf<{ id: number }>(home, 'SELECT id FROM audit ORDER BY id').map(({ id }) => id)
    const [oldEntry, youngEntry] = entries() as [number, number]
    change(home, 'UPDATE audit SET at = ? WHERE id = ?', Date.now() - 40 * DAY_MS, oldEntry)
    const kept = () => [
      ...rowsOf<{ id: string }>(home, 'SELECT id FROM runs ORDER BY created_at').map(({ id }) => id),
      ...entries(),
    ]
    let hours = 0
    const everything = [old.run_id, young.run_id, oldEntry, youngEntry]
    const openedAt = async (seconds: number) => {
      // The clock goes on while the home lives.
      setTo(seconds + hours * HOUR_S)
      daemon = await spawnDaemon({ home, env: keep })
      await Bun.sleep(500)
    }

    // Before an hour of life nothing goes by its age, whatever the clock says.
    for (const seconds of [40 * DAY_S, -40 * DAY_S]) {
      await openedAt(seconds)
      expect(kept()).toEqual(everything)
      await daemon.stop()
    }
    // Then what is old goes, but not by a clock that has just stepped.
    forgetAges(home)
    hours++
    await openedAt(40 * DAY_S)
    await until(() => !kept().includes(old.run_id) && !kept().includes(oldEntry), 'the first sweep')
    expect(kept()).toEqual([young.run_id, youngEntry])
    await daemon.stop()
    // Nothing goes by a clock that stands behind.
    liveOn(home, 1)
    hours++
    await openedAt(-40 * DAY_S)
    expect(kept()).toEqual([young.run_id, youngEntry])
    await daemon.stop()
    // A clock with which the home has lived for an hour is believed.
    await openedAt(40 * DAY_S)
    await daemon.stop()
    forgetAges(home)
    hours++
    await openedAt(40 * DAY_S)
    await until(() => kept().length === 0, 'the next sweep')
    await daemon.stop()
  }, 240_000)

  test('leaves what ended while the clock was behind as old as it is', async () => {
    const { env, setTo } = steppingClock()
    setTo(-40 * DAY_S)
    const keep = { ...env, CADRE_KEEP_RUNS_DAYS: '30', CADRE_KEEP_AUDIT_DAYS: '30' }
    const behind = await spawnDaemon({ env: keep })
    const { run_id } = await behind.call<RunRecord>('/v1/runs/start', { path: join(child, 'brief') })
    const ended = (await behind.ended(run_id)).completed_at!
    expect(ended).toBeLessThan(Date.now() - 39 * DAY_MS)
    await behind.stop()
    // The hour in which the right clock is believed, and the hour of the next sweep.
    for (let hours = 0; hours < 3; hours++) {
      setTo(hours * HOUR_S)
      const daemon = await spawnDaemon({ home: behind.home, env: keep })
      await Bun.sleep(300)
      await daemon.stop()
      liveOn(behind.home, 1)
    }
    setTo(3 * HOUR_S)
    const daemon = await spawnDaemon({ home: behind.home, env: keep })
    await until(() => sweepOf(behind.home) > livedIn(behind.home), 'the sweep')
    expect((await daemon.ended(run_id)).completed_at).toBe(ended)
    await daemon.stop()
  }, 240_000)
})

test('what ended while the daemon was stopped is a result, whatever was to expire', async () => {
  const MORE = '5s'
  let posts = 0
  await using server = Bun.serve({
    port: 0,
    async fetch() {
      posts++
      await Bun.sleep(800)
      return new Response('{"id":7}', { headers: { 'content-type': 'application/json' } })
    },
  })
  const brief = command('sleep 0.8')
  const path = files({
    'brief/team.yml': team('brief', `  - { name: work, ${brief} }`),
    'command/team.yml': team(
      'command',
      `  - { name: work, agent: exec, commands: [{ name: c, timeout: ${MORE}, run: 'sleep 0.8; echo done' }] }`,
    ),
    'phase/team.yml': team('phase', `  - { name: work, timeout: ${MORE}, ${brief} }`),
    'post/team.yml': team(
      'post',
      `  - { name: work, agent: http, timeout: ${MORE}, target_entries: [{ name: p, method: POST, url: "${server.url}", body: x }] }`,
    ),
    'entry/team.yml': team(
      'entry',
      `  - { name: work, agent: http, target_entries: [{ name: p, method: POST, url: "${server.url}", body: x, timeout: ${MORE} }] }`,
    ),
    'run/team.yml': team('run', `  - { name: work, ${brief} }`, `timeout: ${MORE}`),
    'below/team.yml': team('below', `  - { name: down, type: team, team: ../brief, timeout: ${MORE} }`),
  })
  const daemon = await spawnDaemon()
  const kinds = ['command', 'phase', 'post', 'entry', 'run', 'below']
  const ids = await Promise.all(
    kinds.map(async kind => (await daemon.call('/v1/runs/start', { path: join(path, kind) })).run_id as string),
  )
  await until(() => posts === 2, 'the requests')
  process.kill(daemon.pid, 'SIGSTOP')
  await Bun.sleep(6_500)
  process.kill(daemon.pid, 'SIGCONT')
  const asked = () => rowsOf(daemon.home, "SELECT id FROM reviews WHERE state = 'pending'").length > 0
  const runs = await Promise.all(
    ids.map(async run_id => {
      const get = () => daemon.call<RunRecord>('/v1/runs/get', { run_id })
      return until(async () => {
        const run = await get()
        return (run.completed_at !== null || asked()) && run
      }, 'an end')
    }),
  )
  expect(runs.map(({ state }, n) => `${kinds[n]} ${state}`)).toEqual(kinds.map(kind => `${kind} completed`))
  expect(posts).toBe(2)
  await daemon.stop()
}, 240_000)
