// `repeat`: a phase goes on turn by turn until its condition holds, over restarts, a cancel and a resume. Where a wait is
// what is looked at, time passes only when the test says so.

import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { JsonObject } from '../../lib/json.ts'
import { readLines, treeEntries, why } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type Act, act, scripted, shell, team } from '../support/scripted.ts'

const NOW = Date.now()
const HOUR = 3_600_000

/** The events that the listener `tell` was told of. */
const told: string[] = []
const tell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Remembers events.',
  settings: Type.Object({}),
  notify: {
    effect: 'idempotent',
    entry: Type.Object({}),
    async run(_, { event }) {
      told.push(event!.name)
      return { text: '' }
    },
  },
})

const written: string[] = []
const write = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes as its entry says.',
  settings: Type.Object({}),
  source: {
    effect: ({ how }) => (how === 'once' ? 'once' : 'idempotent'),
    entry: Type.Object({ name: Type.String(), how: Type.String() }),
    async run({ name }) {
      written.push(name)
      return { text: '' }
    },
  },
})

let t: TestEngine
let lived = 0
afterEach(async () => {
  await t.close()
  checkInvariants(t.home)
})

/** Engines on one home, one after the other. `stands`: the clock of the home stands still unless `lived` changes. */
async function engines(acts: Record<string, Act>, { stands = false } = {}) {
  const { agents, calls } = scripted(acts)
  told.length = 0
  const home = folder()
  lived = 0
  const open = async () => {
    t = await testEngine({
      home,
      agents: { ...agents, tell, write },
      ...(stands && { now: () => NOW, lived: () => lived }),
    })
  }
  await open()
  const again = async () => {
    await t.close()
    checkInvariants(home)
    await open()
  }
  return { calls, again }
}

/** A condition with short waits, where waits do not matter. */
const repeat = (condition: string, more: JsonObject = {}) => ({
  repeat: { until: condition, every: '1ms', most: 4, ...more },
})
const hourly = (condition: string, most = 4) => repeat(condition, { every: '1h', most })

const phase = (runId: string, name = 'poll') => t.engine.phases(runId).phases.find(each => each.name === name)!
const turns = (runId: string, name?: string) => phase(runId, name).turns.map(({ turn, state }) => `${turn} ${state}`)
const waitsForTurn = (runId: string, name?: string) =>
  until(() => phase(runId, name).state === 'pending' && phase(runId, name).reason === 'repeat', 'the wait')
const explained = (runId: string) =>
  why(t.engine.store, runId, id => t.engine.bundle(id), {
    waitsOf: id => t.engine.phases(id).phases.map(each => each.waiting),
  }).lines.join('\n')

/** Counts its calls, which it gives as `count`. */
function counter() {
  let count = 0
  return () => ({ count: ++count })
}

test('a phase is repeated until its condition holds, and gives what its last turn gave', async () => {
  const { calls } = await engines({ look: counter() })
  const before = act('before', 'look')
  const condition = 'result.data.count == inputs.n + phases.before.data.count && result.text == "look"'
  const run = await t.run(
    team([before, act('poll', 'look', { ...repeat(condition), depends_on: ['before'] })], {
      inputs: [{ name: 'n', type: 'number', default: 3 }],
      outputs: [{ name: 'count', type: 'number', value: '{{ phases.poll.data.count }}' }],
    }),
  )
  expect(run).toMatchObject({ state: 'completed', outputs: { count: 4 } })
  expect(turns(run.run_id)).toEqual(['1 completed', '2 completed', '3 completed'])
  expect(phase(run.run_id).turns.at(-1)!.completed_at).toBe(phase(run.run_id).completed_at)
  expect(phase(run.run_id, 'before').turns).toEqual([])
  expect(calls).toHaveLength(4)
  expect(t.engine.store.attempts.of(run.run_id)).toEqual([])
})

test('a bound that is used up fails the phase and the run, and a resume goes on for as many turns', async () => {
  const { calls } = await engines({ look: counter() })
  const { run_id } = await t.start(team([act('poll', 'look', repeat('result.data.count == 6'))]))
  const run = await t.engine.ended(run_id)
  expect(run).toMatchObject({ state: 'failed', reason: 'repeat', error: { code: 'repeat', phase: 'poll' } })
  expect(phase(run_id)).toMatchObject({ state: 'failed', reason: 'repeat', ok: false, data: null })
  expect(explained(run_id)).toContain(
    'failed in turn 4 of 4: team.yml:1:128: `result.data.count == 6` was false after 4 turns, which are all that `most` allows.',
  )
  expect(turns(run_id)).toEqual(['1 completed', '2 completed', '3 completed', '4 completed'])
  await t.engine.resume(run_id)
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(turns(run_id)).toHaveLength(6)
  expect(calls).toHaveLength(6)
  await t.engine.resume(run_id, { from: 'poll' })
  expect((await t.engine.ended(run_id)).reason).toBe('repeat')
  expect(turns(run_id)).toHaveLength(4)
})

test('only the last hundred turns are kept', async () => {
  await engines({ look: counter() })
  const { run_id } = await t.run(team([act('poll', 'look', repeat('result.data.count == 103', { most: 200 }))]))
  expect(turns(run_id)).toHaveLength(100)
  expect(turns(run_id).at(0)).toBe('4 completed')
})

describe('the wait for the next turn', () => {
  test('says when it ends, goes on over a restart, and repeats no turn', async () => {
    const { calls, again } = await engines({ look: counter() }, { stands: true })
    const { run_id } = await t.start(team([act('poll', 'look', hourly('result.data.count == 2'))]))
    await waitsForTurn(run_id)
    expect(phase(run_id)).toMatchObject({ waiting: { reason: 'turn 2 of 4', until: NOW + HOUR }, text: '', data: null })
    expect(phase(run_id).turns).toEqual([{ turn: 1, state: 'completed', started_at: NOW, completed_at: NOW }])
    expect(explained(run_id)).toContain('its phase poll (act) waits for turn 2 of 4, until ')
    lived += HOUR / 4
    await again()
    expect(phase(run_id).waiting).toEqual({ reason: 'turn 2 of 4', until: NOW + (HOUR * 3) / 4 })
    lived += HOUR
    await again()
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed'])
    expect(calls).toHaveLength(2)
  })

  test('is ended by a cancel, and a resume goes on with the next turn', async () => {
    const { calls } = await engines({ look: counter() })
    const { run_id } = await t.start(team([act('poll', 'look', hourly('result.data.count == 2'))]))
    await waitsForTurn(run_id)
    await t.engine.cancel(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('cancelled')
    expect(turns(run_id)).toEqual(['1 completed'])
    await t.engine.resume(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed'])
    expect(calls).toHaveLength(2)
  })

  test('counts in the timeout of the run, and holds no place of its concurrency', async () => {
    const { calls } = await engines({ look: () => ({}), other: () => ({}) })
    const { run_id } = await t.start(
      team([act('poll', 'look', hourly('false')), act('other', 'other')], { concurrency: 1, timeout: '300ms' }),
    )
    expect(await t.engine.ended(run_id)).toMatchObject({ state: 'failed', reason: 'timeout' })
    expect(calls).toEqual(['look', 'other'])
  })
})

describe('a turn', () => {
  test('that a restart interrupts is begun again, and keeps its number', async () => {
    const hangs = Promise.withResolvers<void>()
    let count = 0
    const { again } = await engines({
      async look({ signal }) {
        count++
        if (count === 2) {
          hangs.resolve()
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        }
        return { count }
      },
    })
    const { run_id } = await t.start(team([act('poll', 'look', repeat('result.data.count == 4'))]))
    await hangs.promise
    expect(turns(run_id)).toEqual(['1 completed', '2 running'])
    expect(explained(run_id)).toContain('is in phase poll (act), turn 2 of 4')
    await again()
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed', '3 completed'])
  })

  test('has all attempts of `retry`, with one key for what they send and another one for the next turn', async () => {
    const keys: string[] = []
    await engines({
      look({ key }) {
        keys.push(key)
        if (keys.length % 2 === 1) throw new AgentError('not now', { retryable: true })
        return { count: keys.length }
      },
    })
    const retry = { retry: { attempts: 2, backoff: '1ms' } }
    const { run_id } = await t.run(team([act('poll', 'look', { ...repeat('result.data.count == 4'), ...retry })]))
    expect(turns(run_id)).toEqual(['1 completed', '2 completed'])
    expect(keys).toEqual([keys[0]!, keys[0]!, keys[2]!, keys[2]!])
    expect(new Set(keys).size).toBe(2)
    expect(t.engine.store.attempts.of(run_id).map(({ attempt, state }) => [attempt, state])).toEqual([
      [1, 'failed'],
      [3, 'failed'],
    ])
  })

  test('begins with an empty folder', async () => {
    await engines({})
    const run =
      'ls "$CADRE_OUT" | wc -l >> seen; touch "$CADRE_OUT/x"; [ $(wc -l < seen) -lt 2 ] || echo done=yes >> "$CADRE_OUTPUT"'
    const { run_id, state } = await t.run(team([shell('poll', run, repeat('has(result.data.done)'))]))
    expect(state).toBe('completed')
    expect(turns(run_id)).toHaveLength(2)
    expect(readFileSync(join(t.engine.stateDir(run_id), 'work', 'seen'), 'utf8').match(/\d+/g)).toEqual(['0', '0'])
  })

  test('sends nothing that may be sent only once, also where only a template says that it is', async () => {
    await engines({})
    const phases = [
      { name: 'poll', agent: 'write', sources: [{ name: 'x', how: '{{ inputs.how }}' }], ...repeat('true') },
    ]
    const run = await t.run(team(phases, { inputs: [{ name: 'how', type: 'string', default: 'once' }] }))
    expect(run).toMatchObject({
      state: 'failed',
      error: { code: 'invalid_request', message: expect.stringContaining('entry x has the effect `once`') },
    })
    expect(written).toEqual([])
    expect(t.engine.store.receipts.ofRun(run.run_id)).toEqual([])
  })

  test('that fails ends the phase, and a person who lets it try again repeats this turn', async () => {
    let count = 0
    await engines({
      look() {
        if (++count === 2) throw new AgentError('broken')
        return { count }
      },
    })
    const { run_id } = await t.start(
      team([act('poll', 'look', { ...repeat('result.data.count == 3'), on_failure: 'escalate' })]),
    )
    const review = () => t.db.query<{ id: string }, []>("SELECT id FROM reviews WHERE state = 'pending'").get()
    await until(() => review() !== null, 'the question')
    expect(turns(run_id)).toEqual(['1 completed', '2 awaiting_input'])
    await t.engine.decide(review()!.id, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed'])
  })

  test('whose condition cannot be evaluated fails the phase with the place, and a resume begins the next one', async () => {
    const { calls } = await engines({ look: () => (calls.length < 2 ? {} : { count: calls.length }) })
    const { run_id } = await t.start(team([act('poll', 'look', repeat('result.data.count == 2'))]))
    expect(await t.engine.ended(run_id)).toMatchObject({
      state: 'failed',
      reason: null,
      error: { message: expect.stringMatching(/^team\.yml:1:\d+: .*count.*data of this turn has entries/) },
    })
    await t.engine.resume(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed'])
  })

  test('is in the log, and only the first raises an event', async () => {
    await engines({ look: counter() })
    const { run_id } = await t.run(
      team([
        act('poll', 'look', repeat('result.data.count == 2')),
        { name: 'tell', agent: 'tell', notify: ['on_phase_start', 'on_phase_complete'] },
      ]),
    )
    t.engine.logs.flush()
    const { lines } = await readLines(t.engine.stateDir(run_id), { limit: 10 })
    expect(lines.filter(({ phase }) => phase === 'poll').map(({ text }) => text)).toEqual([
      'turn 1 of 4',
      'turn 2 of 4',
    ])
    expect(told).toEqual(['on_phase_start', 'on_phase_complete'])
  })
})

test('commands that may run only once are refused before anything starts', async () => {
  await engines({})
  const commands = [{ name: 'c', run: 'true', effect: 'once' }]
  await expect(t.start(team([{ name: 'poll', agent: 'exec', commands, ...repeat('true') }]))).rejects.toMatchObject({
    details: [{ message: expect.stringContaining('`repeat` would write what this phase writes in each turn') }],
  })
})

test('a phase that is skipped has no turn', async () => {
  await engines({ look: counter() })
  const { run_id } = await t.run(team([act('poll', 'look', { ...repeat('false'), when: 'false' })]))
  expect(phase(run_id)).toMatchObject({ state: 'skipped', turns: [] })
})

describe('a team', () => {
  const child = team(
    [
      act('look', 'look'),
      shell('write', 'echo $N > "$CADRE_OUT/n"', { env: { N: '{{ phases.look.data.count }}' }, depends_on: ['look'] }),
    ],
    {
      name: '@local/child',
      outputs: [
        { name: 'count', type: 'number', value: '{{ phases.look.data.count }}' },
        { name: 'file', type: 'file', value: 'files/write/n' },
      ],
    },
  )
  const files = (condition: string) => ({
    'team.yml': team([
      { name: 'poll', type: 'team', team: './child', ...repeat(condition) },
      shell('after', 'cat "$CADRE_FILES/poll/n" > "$CADRE_OUT/copy"', { depends_on: ['poll'] }),
    ]),
    'child/team.yml': child,
  })
  const below = (runId: string) =>
    [...treeEntries(t.db, runId)].slice(1).map(({ run_id, state }) => ({ run_id, state }))

  test('has a sub-run for each turn, and keeps the files of the last', async () => {
    await engines({ look: counter() })
    const { run_id, state } = await t.run(files('result.data.count == 3 && result.files[0].name == "n"'))
    expect(state).toBe('completed')
    expect(below(run_id).map(each => each.state)).toEqual(['completed', 'completed', 'completed'])
    expect(turns(run_id)).toHaveLength(3)
    expect(readFileSync(join(t.engine.stateDir(run_id), 'files/after/copy'), 'utf8')).toBe('3\n')
  })

  test('goes on with the turn after a restart and after a resume, and keeps the sub-runs that completed', async () => {
    let count = 0
    let fails = true
    const hangs = Promise.withResolvers<void>()
    const { again } = await engines({
      async look({ signal }) {
        count++
        if (count === 2) {
          hangs.resolve()
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        }
        if (count === 4 && fails) throw new AgentError('broken')
        return { count }
      },
    })
    const { run_id } = await t.start(files('result.data.count == 5'))
    await hangs.promise
    await again()
    expect((await t.engine.ended(run_id)).state).toBe('failed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed', '3 failed'])
    const before = below(run_id)
    expect(before.map(({ state }) => state)).toEqual(['completed', 'completed', 'failed'])
    fails = false
    await t.engine.resume(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed', '2 completed', '3 completed'])
    expect(below(run_id)).toEqual(before.map(each => ({ ...each, state: 'completed' })))
  })

  test('begins anew when it is repeated as a whole', async () => {
    await engines({ look: counter() })
    const { run_id } = await t.run(files('result.data.count == 2 || result.data.count == 3'))
    const before = below(run_id)
    await t.engine.resume(run_id, { from: 'poll' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(turns(run_id)).toEqual(['1 completed'])
    expect(below(run_id)).toEqual(before)
    expect(readFileSync(join(t.engine.stateDir(run_id), 'files/after/copy'), 'utf8')).toBe('3\n')
    expect(existsSync(join(t.engine.stateDir(run_id), 'files/poll/n'))).toBe(true)
  })

  test('waits in the items of a map, and is cancelled there', async () => {
    await engines({ look: counter() })
    const { run_id } = await t.start({
      'team.yml': team([{ name: 'each', type: 'map', items: [1, 2], team: './item' }]),
      'item/team.yml': team([{ name: 'poll', type: 'team', team: '../child', ...hourly('false') }], {
        name: '@local/item',
      }),
      'child/team.yml': child,
    })
    const items = () => phase(run_id, 'each').sub_runs
    await until(() => items().length === 2, 'the items')
    for (const { run_id } of items()) await waitsForTurn(run_id)
    await t.engine.cancel(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('cancelled')
    expect(items().map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
  })
})
