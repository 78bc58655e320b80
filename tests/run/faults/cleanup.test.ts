// What cleans up after a cancel: how often the run was asked to end decides, wherever the requests are on their way; a
// restart changes nothing of it; and nobody is asked.

import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { livedMs } from '../../../lib/lived-time.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf, rowsOf, subRunOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, scripted, team } from '../../support/scripted.ts'

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

let held = Promise.withResolvers<void>()
const { agents, calls } = scripted({
  wait: ({ signal }) => aborted(signal),
  clean: () => ({}),
  slow: ({ signal }) => Promise.race([held.promise, aborted(signal)]),
  fail: () => {
    throw new Error('no')
  },
})
let home: string
let t: TestEngine
let clock = 0
const open = async (more = {}) => {
  t = await testEngine({ home, agents, lived: () => livedMs() + clock, ...more })
}
afterEach(async () => {
  held.resolve()
  await t.close()
  checkInvariants(home)
  held = Promise.withResolvers()
  calls.length = 0
  clock = 0
})
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')
const called = (name: string, times = 1) =>
  until(() => calls.filter(call => call === name).length === times, `${times} calls of ${name}`)

describe('of 300 sub-runs', () => {
  const items = Array.from({ length: 300 }, (_, n) => n)
  const FILES = {
    'team.yml': team([{ name: 'each', type: 'map', items, team: './child', concurrency: 300 }]),
    'child/team.yml': team([act('work', 'wait'), act('clean', 'clean', { depends_on: ['work'], always: true })]),
  }
  const begin = async () => {
    home = folder()
    await open({ slots: 400 })
    const { run_id } = await t.start(FILES)
    await called('wait', 300)
    const below = rowsOf<{ id: string }>(home, 'SELECT id FROM runs WHERE parent_id IS NOT NULL ORDER BY item')
    return { run_id, first: below[0]!.id, last: below.at(-1)!.id }
  }

  test('a second cancel stops the cleanup also of one that is cancelled at the same time', async () => {
    const { run_id, last } = await begin()
    await Promise.all([t.engine.cancel(run_id), t.engine.cancel(run_id), t.engine.cancel(last).catch(() => {})])
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(phaseOf(t, last, 'clean').state).toBe('cancelled')
    expect(calls).not.toContain('clean')
  })

  test('a cancel of one after that of its run is its second, wherever the first one is', async () => {
    const { run_id, first, last } = await begin()
    await Promise.all([t.engine.cancel(run_id), t.engine.cancel(first), t.engine.cancel(last)])
    await ended(run_id)
    expect([first, last].map(id => phaseOf(t, id, 'clean').state)).toEqual(['cancelled', 'cancelled'])
  })

  test('a cancel of a cleanup is its first, while that of a run far above has not reached it', async () => {
    home = folder()
    await open({ slots: 400 })
    const { run_id } = await t.start({
      'team.yml': team([{ name: 'each', type: 'map', items, team: './child', concurrency: 300 }]),
      'child/team.yml': team([{ name: 'down', type: 'team', team: '../middle' }]),
      'middle/team.yml': team([{ name: 'tidy', type: 'team', team: '../leaf', always: true }]),
      'leaf/team.yml': team([act('work', 'wait'), act('clean', 'clean', { depends_on: ['work'], always: true })]),
    })
    await called('wait', 300)
    const [leaf] = rowsOf<{ id: string }>(
      home,
      'SELECT leaf.id FROM runs leaf JOIN runs middle ON middle.id = leaf.parent_id JOIN runs child ON child.id = middle.parent_id WHERE child.item = 299 AND leaf.call_depth = 3',
    )
    await Promise.all([t.engine.cancel(run_id), t.engine.cancel(leaf!.id)])
    await ended(leaf!.id)
    expect(phaseOf(t, leaf!.id, 'clean').state).toBe('completed')
    await t.engine.cancel(run_id)
    await ended(run_id)
  })
})

test.each([false, true])('goes on where a phase that always runs took too long (restart: %p)', async restarts => {
  home = folder()
  await open()
  const { run_id } = await t.start({
    'team.yml': team([
      act('work', 'wait'),
      { name: 'down', type: 'team', team: './child', always: true, timeout: '200ms' },
    ]),
    'child/team.yml': team([
      act('work', 'wait'),
      act('clean', 'slow', { depends_on: ['work'], always: true, timeout: '1m' }),
    ]),
  })
  await called('slow')
  const child = subRunOf(t, run_id, 'down')
  await t.engine.cancel(run_id)
  expect(phaseOf(t, child, 'clean').state).toBe('running')
  if (restarts) {
    await t.close()
    await open()
    await called('slow', 2)
  }
  held.resolve()
  expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
  expect(phaseOf(t, child, 'clean').state).toBe('completed')
})

test('goes on where a kill came before a sub-run recorded that its phase took too long', async () => {
  home = folder()
  await open()
  const { run_id } = await t.start({
    'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: '200ms' }]),
    'child/team.yml': team([
      act('work', 'wait'),
      act('clean', 'slow', { depends_on: ['work'], always: true, timeout: '1m' }),
    ]),
  })
  await called('slow')
  const child = subRunOf(t, run_id, 'down')
  await t.close()
  {
    using db = new Database(join(home, 'daemon.db'))
    db.run('UPDATE runs SET ending = NULL WHERE id = ?', [child])
    db.run("UPDATE phases SET state = 'running', completed_at = NULL WHERE run_id = ? AND position = 0", [child])
    db.run("UPDATE phases SET state = 'pending', completed_at = NULL WHERE run_id = ? AND position = 1", [child])
  }
  await open()
  await called('slow', 2)
  held.resolve()
  expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  expect(t.engine.record(child).state).toBe('cancelled')
  expect(phaseOf(t, child, 'clean').state).toBe('completed')
})

describe('asks nobody', () => {
  const escalates = act('remove', 'fail', { on_failure: 'escalate' })
  const after = { depends_on: ['work'], always: true }

  test.each([
    ['in its run', { ...escalates, ...after }],
    ['in a sub-run', { name: 'clean', type: 'team', team: './child', ...after }],
  ])('%s', async (_, phase) => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team([act('work', 'wait'), phase]),
      'child/team.yml': team([escalates]),
    })
    await called('wait')
    await t.engine.cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(rowsOf(home, 'SELECT id FROM reviews')).toEqual([])
  })

  test('and who was asked before has no more time than the cleanup', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team([act('work', 'wait'), { name: 'clean', type: 'team', team: './child', always: true }]),
      'child/team.yml': team([escalates]),
    })
    await until(() => phaseOf(t, run_id, 'clean').state === 'awaiting_input', 'the question')
    await t.engine.cancel(run_id)
    clock += 61_000
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(phaseOf(t, run_id, 'clean')).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  })

  test('and the time of a cleanup that was waiting for a person goes on', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team([{ name: 'clean', type: 'team', team: './child', always: true, timeout: '1m' }]),
      'child/team.yml': team([escalates]),
    })
    await until(() => phaseOf(t, run_id, 'clean').state === 'awaiting_input', 'the question')
    await t.engine.cancel(run_id)
    clock += 61_000
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(phaseOf(t, run_id, 'clean')).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  })
})
