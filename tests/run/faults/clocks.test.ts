// Clocks: what they count, what they do not, and what a clock that steps does to them.

import { afterEach, describe, expect, test } from 'bun:test'
import { AgentError } from '../../../lib/agent/cadre.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf, questions, rowsOf, subRunOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, scripted, team } from '../../support/scripted.ts'

const DAY = 86_400_000
let offset = 0
const now = () => Date.now() + offset
let failures = 0
const { agents, calls } = scripted({
  hold: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  sleep: async ({ signal }, ms) => {
    for (const until = performance.now() + Number(ms); performance.now() < until; ) {
      signal.throwIfAborted()
      await Bun.sleep(5)
    }
  },
  fail: () => {
    throw new AgentError('not now', { retryable: true })
  },
  flaky: () => {
    if (failures-- > 0) throw new AgentError('not yet', { retryable: true })
  },
  step: (_, by) => {
    offset += Number(by)
  },
})
let t: TestEngine
/** For tests that run one after the other, on the engine `t`. */
const closeAfterEach = () =>
  afterEach(async () => {
    offset = 0
    calls.length = 0
    await t.close()
  })
const ended = (runId: string, { engine } = t) => within(engine.ended(runId), 'the end of the run')
const ask = (more = {}) => ({ name: 'ask', type: 'gate', review: { prompt: 'Go on?' }, ...more })
/** Answers the question that is open. */
const approve = async (of = t) => {
  const [question] = await questions(of)
  await of.engine.decide(question!.id, { decision: 'approve', by: 'somebody' })
}

test('the clock of a team phase runs again after a person has answered, beside work that never waited', async () => {
  await using t = await testEngine({ agents })
  const { run_id } = await t.start({
    'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: '1s' }, act('beside', 'hold')]),
    'child/team.yml': team([ask(), act('work', 'hold', { depends_on: ['ask'] })]),
  })
  await questions(t)
  await approve(t)
  await until(() => phaseOf(t, run_id, 'down').state === 'failed', 'the timeout')
  checkInvariants(t.home)
  await t.engine.cancel(run_id)
  await ended(run_id, t)
})

/** Its tests wait most of the time, and do that together: each has an engine of its own. */
describe.concurrent("a person's time", () => {
  /** As long as the clock allows, within which the work is done and a person's answer is not. */
  const LIMIT = '2s'
  const ASKED_MS = 1_500
  const WORK_MS = 1_000
  const phases = [ask(), act('work', 'sleep', { value: WORK_MS, depends_on: ['ask'] })]
  const cases: [what: string, files: Record<string, string>][] = [
    ['of a run', { 'team.yml': team(phases, { timeout: LIMIT }) }],
    [
      'of a team phase',
      {
        'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: LIMIT }]),
        'child/team.yml': team(phases),
      },
    ],
    [
      'of a map phase',
      {
        'team.yml': team([{ name: 'down', type: 'map', items: [1], team: './child', timeout: LIMIT }]),
        'child/team.yml': team(phases),
      },
    ],
    [
      'of a team phase above another',
      {
        'team.yml': team([{ name: 'down', type: 'team', team: './middle', timeout: LIMIT }]),
        'middle/team.yml': team([{ name: 'down', type: 'team', team: './child' }]),
        'middle/child/team.yml': team(phases),
      },
    ],
  ]
  describe.each(cases)('does not count in the clock %s', (_, files) => {
    test('before the work', async () => {
      await using t = await testEngine({ agents })
      const { run_id } = await t.start(files)
      await questions(t)
      await Bun.sleep(ASKED_MS)
      await approve(t)
      expect(await ended(run_id, t)).toMatchObject({ state: 'completed' })
    })

    test('over a restart', async () => {
      const home = folder()
      const before = await testEngine({ home, agents })
      const { run_id } = await before.start(files)
      await questions(before)
      await Bun.sleep(ASKED_MS / 2)
      await before.close()
      await using t = await testEngine({ home, agents })
      await Bun.sleep(ASKED_MS / 2)
      await approve(t)
      expect(await ended(run_id, t)).toMatchObject({ state: 'completed' })
    })

    test('asked twice, with work before, between and after', async () => {
      await using t = await testEngine({ agents })
      const often = [
        act('first', 'sleep', { value: 300 }),
        ask({ depends_on: ['first'] }),
        act('second', 'sleep', { value: 300, depends_on: ['ask'] }),
        { ...ask({ depends_on: ['second'] }), name: 'again' },
        act('third', 'sleep', { value: 300, depends_on: ['again'] }),
      ]
      const last = Object.keys(files).at(-1)!
      const { run_id } = await t.start({
        ...files,
        [last]: team(often, last === 'team.yml' ? { timeout: LIMIT } : {}),
      })
      for (let n = 0; n < 2; n++) {
        await questions(t)
        await Bun.sleep(ASKED_MS)
        await approve(t)
        await until(() => rowsOf(t.home, "SELECT id FROM reviews WHERE state = 'pending'").length === 0, 'the answer')
      }
      expect(await ended(run_id, t)).toMatchObject({ state: 'completed' })
    })

    test('but the work before and after it does, over a restart, too', async () => {
      const home = folder()
      const before = await testEngine({ home, agents })
      const last = Object.keys(files).at(-1)!
      const much = [
        act('first', 'sleep', { value: 1_200 }),
        ask({ depends_on: ['first'] }),
        act('second', 'sleep', { value: 20_000, depends_on: ['ask'] }),
      ]
      const limit = last === 'team.yml' ? { timeout: LIMIT } : {}
      const { run_id } = await before.start({ ...files, [last]: team(much, limit) })
      await questions(before)
      await before.close()
      await using t = await testEngine({ home, agents })
      // Of 2 s at most 0.8 s are left; a clock that began anew would have 2 s.
      const [{ left }] = rowsOf<{ left: number }>(
        t.home,
        'SELECT max(time_left) AS left FROM (SELECT time_left FROM runs UNION ALL SELECT time_left FROM phases)',
      ) as [{ left: number }]
      expect(left).toBeWithin(0, 801)
      await approve(t)
      expect(await ended(run_id, t)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
    })
  })

  const branches = [ask(), act('work', 'sleep', { value: 20_000 })]
  const parallel: [what: string, files: Record<string, string>][] = [
    ['of a run', { 'team.yml': team(branches, { timeout: '400ms' }) }],
    [
      'of a team phase',
      {
        'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: '400ms' }]),
        'child/team.yml': team(branches),
      },
    ],
    [
      'of a map phase, where one item asks and another works',
      {
        'team.yml': team([
          {
            name: 'down',
            type: 'map',
            items: ['ask', 'work'],
            team: './child',
            inputs: { v: '{{ item }}' },
            timeout: '400ms',
          },
        ]),
        'child/team.yml': team(
          [ask({ when: "inputs.v == 'ask'" }), act('work', 'sleep', { value: 20_000, when: "inputs.v == 'work'" })],
          { inputs: [{ name: 'v', type: 'string' }] },
        ),
      },
    ],
  ]
  test.each(parallel)('counts in the clock %s while another branch works', async (_, files) => {
    await using t = await testEngine({ agents })
    const { run_id } = await t.start(files)
    expect(await ended(run_id, t)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  })
})

describe('the backoff of a retry', () => {
  closeAfterEach()

  const NOW = Date.now()
  /** How long the phases of a run wait for their next attempts, in milliseconds, on a wall clock that stands. */
  const waits = (runId: string) =>
    t.engine
      .phases(runId)
      .phases.flatMap(({ waiting }) => (waiting?.reason === 'its next attempt' ? waiting.until! - NOW : []))
  const MAX = 5 * 60_000
  /** Jitter may take or add as much as half. */
  const around = (ms: number): [number, number] => [ms / 2, ms * 1.5]

  test('doubles up to five minutes, whatever it began with', async () => {
    const home = folder()
    let lived = 0
    const open = () => testEngine({ home, agents, now: () => NOW, lived: () => lived })
    t = await open()
    const retry = (backoff: string) => ({ retry: { attempts: 50, backoff } })
    const { run_id } = await t.start(team([act('a', 'fail', retry('1m')), act('b', 'fail', retry('10h'))]))
    for (const expected of [60_000, 120_000, 240_000, MAX, MAX, MAX]) {
      const [a, b] = await until(() => {
        const due = waits(run_id)
        return due.length === 2 && due.every(ms => ms > 0) && due
      }, 'both retries')
      const [least, most] = around(expected)
      expect(a!).toBeWithin(least, most + 1)
      expect(b!).toBeWithin(...around(MAX))
      lived += 3 * MAX
      await t.close()
      t = await open()
    }
  }, 60_000)

  test('differs between phases that failed at the same time', async () => {
    t = await testEngine({ agents, now: () => NOW, lived: () => 0 })
    const retry = { attempts: 2, backoff: '1m' }
    const { run_id } = await t.start(team(Array.from({ length: 20 }, (_, n) => act(`p${n}`, 'fail', { retry }))))
    const due = await until(() => {
      const all = waits(run_id)
      return all.length === 20 && all
    }, 'all retries')
    expect(new Set(due).size).toBeGreaterThan(5)
    for (const ms of due) expect(ms).toBeWithin(...around(60_000))
  })
})

describe('a clock that steps', () => {
  closeAfterEach()

  const steps: [string, number][] = [
    ['back', -DAY],
    ['forward', DAY],
  ]

  test.each(steps)('%s by a day between phases and back again loses nothing', async (_, by) => {
    const home = folder()
    t = await testEngine({ home, agents, now })
    const phases = Array.from({ length: 8 }, (_, n) =>
      act(`p${n}`, 'step', { value: n % 2 ? -by : by, ...(n > 0 && { depends_on: [`p${n - 1}`] }) }),
    )
    const { run_id } = await t.start({
      'team.yml': team([
        { name: 'each', type: 'map', items: [1, 2, 3], concurrency: 1, team: './child' },
        { name: 'down', type: 'team', team: './child', depends_on: ['each'] },
      ]),
      'child/team.yml': team(phases),
    })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(calls).toHaveLength(32)
    await t.close()
    checkInvariants(home)
  })

  test.each(steps)('%s by a day while nothing runs keeps no open run from going on', async (_, by) => {
    const home = folder()
    t = await testEngine({ home, agents, now })
    const { run_id } = await t.start(
      team([act('long', 'sleep', { value: 500 }), act('after', 'sleep', { value: 1, depends_on: ['long'] })], {
        timeout: '30d',
      }),
    )
    await until(() => calls.length === 1, 'the phase')
    await t.close()
    offset += by
    t = await testEngine({ home, agents, now })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    await t.close()
    checkInvariants(home)
  })

  test('forward by a day does not prevent what is due', async () => {
    t = await testEngine({ agents, now })
    failures = 2
    const { run_id } = await t.start(
      team([
        act('again', 'flaky', { retry: { attempts: 3, backoff: '300ms' } }),
        act('step', 'step', { value: DAY }),
        ask({ review: { prompt: 'Go on?', timeout: '500ms' }, depends_on: ['step'] }),
      ]),
    )
    await until(() => phaseOf(t, run_id, 'again').state === 'completed', 'the third attempt')
    const escalated = () => rowsOf<{ id: string }>(t.home, "SELECT id FROM reviews WHERE kind = 'escalation'")[0]
    const { id } = await until(escalated, 'the end of the review')
    await t.engine.decide(id, { decision: 'complete', by: 'somebody' })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  })

  test('back by a day delays nothing that is due', async () => {
    t = await testEngine({ agents, now })
    failures = 1
    const retry = { attempts: 2, backoff: '1s' }
    const { run_id } = await t.start(
      team([act('again', 'flaky', { retry }), ask({ review: { prompt: 'Go on?', timeout: '1s' } })]),
    )
    const timed = await t.start(team([act('long', 'sleep', { value: 60_000 })], { timeout: '1s' }))
    const below = await t.start({
      'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: '1s' }]),
      'child/team.yml': team([act('long', 'sleep', { value: 60_000 })]),
    })
    await questions(t)
    const since = performance.now()
    offset = -DAY
    expect(await ended(timed.run_id)).toMatchObject({ state: 'failed', reason: 'timeout' })
    expect(await ended(below.run_id)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
    await until(() => phaseOf(t, run_id, 'again').state === 'completed', 'the second attempt')
    await until(
      () => rowsOf(t.home, "SELECT id FROM reviews WHERE kind = 'escalation'").length === 1,
      'the end of the review',
    )
    expect(performance.now() - since).toBeLessThan(6_000)
    await t.engine.cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(await ended(subRunOf(t, below.run_id, 'down'))).toMatchObject({ state: 'cancelled' })
  })

  test('back by a day does not prevent a cancel from ending an agent that ignores it', async () => {
    const { agents } = scripted({ deaf: () => new Promise(() => {}) })
    t = await testEngine({ agents, now })
    const { run_id } = await t.start(team([act('deaf', 'deaf')]))
    await until(() => phaseOf(t, run_id, 'deaf').state === 'running', 'the phase')
    await t.engine.cancel(run_id)
    offset = -DAY
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
  })
})
