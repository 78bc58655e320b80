// Phases with `always: true` run when their run was cancelled or timed out: in every run of the tree, for as long as their
// own timeout allows, unless somebody cancels a second time. The run ends as it would have without them.

import { afterEach, describe, expect, test } from 'bun:test'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf, rowsOf, subRunOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, scripted, shell, team } from '../../support/scripted.ts'

let hold: Promise<void> | null = null
const { agents, calls } = scripted({
  wait: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  clean: async ({ signal }) => {
    signal.throwIfAborted()
    await hold
  },
})
let home: string
let t: TestEngine
const open = async () => {
  t = await testEngine({ home, agents })
}
afterEach(async () => {
  await t.close()
  checkInvariants(home)
  calls.length = 0
  hold = null
})
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')
const cancel = (runId: string) => within(t.engine.cancel(runId), 'the cancel')
const running = (runId: string, phase: string) =>
  until(() => phaseOf(t, runId, phase).state === 'running', `phase ${phase}`)
const stateOf = (runId: string, phase: string) => phaseOf(t, runId, phase).state

const phases = [
  act('work', 'wait'),
  act('after', 'clean', { depends_on: ['work'], value: 'never' }),
  act('clean', 'clean', { depends_on: ['after'], always: true }),
  act('told', 'clean', { depends_on: ['clean'], always: true, value: 'too' }),
  act('last', 'clean', { depends_on: ['clean'], value: 'never' }),
]
/** How each way of ending ends the run. */
const ends: [how: string, more: object, state: string, reason: string][] = [
  ['a cancel', {}, 'cancelled', 'cancelled'],
  ['its time-out', { timeout: '200ms' }, 'failed', 'timeout'],
]

describe.each(ends)('after %s', (how, more, state, reason) => {
  test('they run, in their order, and nothing else does', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start(team(phases, more as never))
    await running(run_id, 'work')
    if (how === 'a cancel') await cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state, reason })
    expect(calls).toEqual(['wait', 'clean', 'clean too'])
    expect(['work', 'after', 'clean', 'told', 'last'].map(name => stateOf(run_id, name))).toEqual([
      'cancelled',
      'cancelled',
      'completed',
      'completed',
      'cancelled',
    ])
  })

  test('they run in sub-runs, and as sub-runs', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team(
        [
          { name: 'down', type: 'team', team: './child' },
          { name: 'each', type: 'map', items: [1, 2], team: './child' },
          { name: 'clean', type: 'team', team: './clean', depends_on: ['down', 'each'], always: true },
        ],
        more as never,
      ),
      'child/team.yml': team(phases),
      'clean/team.yml': team([
        act('one', 'clean', { value: 'one' }),
        act('two', 'clean', { depends_on: ['one'], value: 'two' }),
      ]),
    })
    await until(() => calls.length === 3, 'three sub-runs at work')
    if (how === 'a cancel') await cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state, reason })
    expect(calls.slice(3).sort()).toEqual(
      [...Array(3).fill('clean'), ...Array(3).fill('clean too'), 'clean one', 'clean two'].sort(),
    )
    expect(stateOf(run_id, 'clean')).toBe('completed')
    expect(t.engine.record(subRunOf(t, run_id, 'down'))).toMatchObject({ state: 'cancelled' })
    expect(t.engine.record(subRunOf(t, run_id, 'clean'))).toMatchObject({ state: 'completed' })
  })

  test('a map whose items were being evaluated continues', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team(
        [
          act('work', 'wait'),
          {
            name: 'each',
            type: 'map',
            always: true,
            items: Array.from({ length: 2_000 }, (_, n) => n),
            key: "{{ [1, 2, 3].map(n, string(n)).join('-') + string(item) }}",
            team: './child',
            concurrency: 100,
          },
        ],
        more as never,
      ),
      'child/team.yml': team([act('clean', 'clean', { when: 'false' })]),
    })
    await running(run_id, 'each')
    if (how === 'a cancel') await cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state })
    expect(stateOf(run_id, 'each')).toBe('completed')
  })

  test('they continue after a restart in the middle of them', async () => {
    home = folder()
    await open()
    const held = Promise.withResolvers<void>()
    hold = held.promise
    const { run_id } = await t.start(team(phases, more as never))
    await running(run_id, 'work')
    if (how === 'a cancel') await cancel(run_id)
    await running(run_id, 'clean')
    expect(t.engine.record(run_id).completed_at).toBeNull()
    const closed = t.close()
    held.resolve()
    await closed
    await open()
    expect(await ended(run_id)).toMatchObject({ state, reason })
    expect([stateOf(run_id, 'clean'), stateOf(run_id, 'told')]).toEqual(['completed', 'completed'])
  })

  test('their own timeout ends them, and the run ends all the same', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start(
      team(
        [
          shell('work', 'sleep 60'),
          shell('clean', 'sleep 60', { depends_on: ['work'], always: true, timeout: '300ms' }),
        ],
        more as never,
      ),
    )
    await running(run_id, 'work')
    if (how === 'a cancel') await cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state, reason })
    expect(phaseOf(t, run_id, 'clean')).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
  })

  test('a second cancel stops them', async () => {
    home = folder()
    await open()
    const { run_id } = await t.start({
      'team.yml': team(
        [
          { name: 'down', type: 'team', team: './child' },
          act('clean', 'wait', { depends_on: ['down'], always: true, timeout: '10m', value: 'top' }),
        ],
        more as never,
      ),
      'child/team.yml': team([
        act('work', 'wait'),
        act('clean', 'wait', { depends_on: ['work'], always: true, timeout: '10m', value: 'below' }),
      ]),
    })
    await until(() => calls.length === 1, 'the work')
    if (how === 'a cancel') await cancel(run_id)
    await until(() => calls.includes('wait below'), 'the phase that always runs')
    const since = performance.now()
    if (how === 'a cancel') await cancel(run_id)
    else {
      // What a time-out began takes a first cancel to stop, or a second: both are a person who wants an end.
      await cancel(run_id)
      await t.engine.cancel(run_id).catch(() => {})
    }
    expect(['cancelled', state]).toContain((await ended(run_id)).state)
    expect(performance.now() - since).toBeLessThan(9_000)
    expect(calls).not.toContain('wait top')
    expect(stateOf(subRunOf(t, run_id, 'down'), 'clean')).toBe('cancelled')
  })
})

test('maps continue that are between two of their sub-runs when a cancel comes', async () => {
  home = folder()
  await open()
  const items = Array.from({ length: 100 }, (_, n) => n)
  const maps = Array.from({ length: 12 }, (_, n) => `each_${n}`)
  const each = { type: 'map', always: true, items, team: './child', concurrency: 1 }
  const started = () => rowsOf(home, 'SELECT id FROM runs WHERE parent_id IS NOT NULL').length
  // The sub-runs end in the unit in which they begin, so that a cancel finds most maps without an open one.
  for (let round = 0; round < 6; round++) {
    const before = started()
    const { run_id } = await t.start({
      'team.yml': team([act('work', 'wait'), ...maps.map(name => ({ name, ...each }))]),
      'child/team.yml': team([act('clean', 'clean', { when: 'false' })]),
    })
    await until(() => started() > before, 'the first sub-runs')
    await cancel(run_id)
    expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
    expect(maps.map(name => stateOf(run_id, name))).toEqual(maps.map(() => 'completed'))
  }
})
