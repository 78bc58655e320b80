// Earlier attempts of phases are kept for people: those that were retried, those that a resume repeated, and those whose
// process was killed.

import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runHistory } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

/** Fails, with an error that says which time it was, until the file `enough` says that it was often enough. */
const FLAKY = `name: "@local/flaky"
version: 1.0.0
phases:
  - name: first
    agent: exec
    commands: [{ name: c, run: "true" }]
  - name: work
    agent: exec
    depends_on: [first]
    commands:
      - { name: c, run: 'echo x >> tries; n=$(wc -l < tries); echo "try $n"; test $n -ge "$(cat enough)" || exit 3' }
    retry: { attempts: 2, backoff: 1ms }
  - name: after
    agent: exec
    depends_on: [work]
    commands: [{ name: c, run: "true" }]
`

test('retries and resumes keep what was before, and a phase that succeeds at once keeps nothing', async () => {
  const t = await testEngine()
  const workspace = folder()
  writeFileSync(join(workspace, 'enough'), '4')
  const { run_id } = await (await t.prepare(FLAKY))({ workspace })
  expect((await t.engine.ended(run_id)).state).toBe('failed')
  const attemptsOf = (name: string) =>
    runHistory(t.engine.store, run_id, id => t.engine.bundle(id)).attempts.filter(({ phase }) => phase === name)
  expect(attemptsOf('work').map(({ attempt, state }) => [attempt, state])).toEqual([[1, 'failed']])

  await t.engine.resume(run_id)
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  const kept = attemptsOf('work')
  expect(kept.map(({ attempt, state }) => [attempt, state])).toEqual([
    [1, 'failed'],
    [2, 'failed'],
    [3, 'failed'],
  ])
  for (const { error, started_at, ended_at } of kept) {
    expect(error!.message).toContain('exited with code 3')
    expect(ended_at!).toBeGreaterThanOrEqual(started_at)
  }
  expect([attemptsOf('first'), attemptsOf('after')]).toEqual([[], []])

  // A phase that completed is repeated from there, and what it did before can be seen.
  await t.engine.resume(run_id, { from: 'first' })
  await t.engine.ended(run_id)
  expect(attemptsOf('first').map(({ state, error }) => [state, error])).toEqual([['completed', null]])
  await t.engine.resume(run_id, { from: 'first' })
  await t.engine.ended(run_id)
  expect(attemptsOf('first').map(({ attempt }) => attempt)).toEqual([1, 2])
  await t.close()
})

test('an attempt that a kill cut off has no end', async () => {
  const home = folder()
  const path = files({
    'team.yml': `name: "@local/cut"
version: 1.0.0
phases: [{ name: work, agent: exec, commands: [{ name: c, run: 'if [ -e begun ]; then exit 0; fi; touch begun; sleep 60' }] }]
`,
  })
  const first = await spawnDaemon({ home })
  const { run_id } = await first.call('/v1/runs/start', { path })
  await until(() => existsSync(join(path, 'begun')), 'the command runs')
  await first.kill('SIGKILL')
  const second = await spawnDaemon({ home })
  expect((await second.ended(run_id)).state).toBe('completed')
  const { phases } = await second.envelope('/v1/runs/phases', 'run_phases', { run_id })
  expect(phases[0].attempt).toBe(2)
  expect((await second.call('/v1/runs/history', { run_id })).attempts).toEqual([
    { phase: 'work', attempt: 1, state: 'interrupted', error: null, started_at: expect.any(Number), ended_at: null },
  ])
  await second.stop()
})
