// Concurrency keys of a home: how many runs hold one, who comes next, and what becomes of those that find no place.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { agent, Type } from '../../lib/agent/cadre.ts'
import type { RunId } from '../../lib/files/run-id.ts'
import { why } from '../../lib/run/engine.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

/** The runs that execute, in the order in which they began, and how each is let go. */
const begun: string[] = []
const executing = new Map<string, () => void>()
let most = 0

const hold = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Executes until the test lets it go.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), brief: Type.Optional(Type.Boolean()) }),
    async run({ brief }, { run, signal }) {
      begun.push(run.id)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      executing.set(run.id, resolve)
      most = Math.max(most, executing.size)
      signal.addEventListener('abort', () => reject(new Error('aborted')))
      if (brief) setImmediate(resolve)
      await promise.finally(() => executing.delete(run.id))
      return { text: 'held' }
    },
  },
})

const team = (concurrency: string, more = '', name = 'deploy') => `
name: "@local/${name}"
version: 1.0.0
inputs: [{ name: env, type: string, default: prod }]
concurrency: ${concurrency}
phases:
  - { name: ship, agent: hold, sources: [{ name: x }] }
${more}`
const QUEUE = team('{ key: "deploy-{{ inputs.env }}" }')
const SKIP = team('{ key: "deploy-{{ inputs.env }}", when_full: skip }')
const NEWEST = team('{ key: "deploy-{{ inputs.env }}", when_full: cancel_oldest }')

let t: TestEngine
beforeEach(async () => {
  begun.length = 0
  most = 0
  t = await testEngine({ agents: { hold } })
})
afterEach(async () => {
  expect(brokenInvariants(t.db)).toEqual([])
  await t.close()
})

const stateOf = (runId: string) => t.engine.record(runId).state
const executes = (runId: string) => until(() => executing.has(runId), `run ${runId} executes`)
const release = async (runId: string) => {
  await executes(runId)
  executing.get(runId)!()
  return t.engine.ended(runId)
}

test('a run waits until the one that holds its key has ended, and says so', async () => {
  const first = await t.start(QUEUE)
  const second = await t.start(QUEUE)
  const other = await t.start(QUEUE, { env: 'test' })
  await executes(first.run_id)
  await executes(other.run_id)
  expect(second).toMatchObject({
    state: 'queued',
    reason: 'waits for the key deploy-prod',
    started_at: null,
    completed_at: null,
  })
  const third = await t.start(QUEUE)
  const waits = `run ${first.run_id}, which holds the key deploy-prod`
  expect(t.engine.phases(second.run_id).phases.map(phase => phase.waiting?.reason ?? null)).toEqual([waits])
  expect(t.engine.phases(third.run_id).phases.map(phase => phase.waiting?.reason ?? null)).toEqual([
    `${waits}, and 1 run that waits before it`,
  ])
  const { lines, next } = why(t.engine.store, second.run_id, id => t.engine.bundle(id))
  expect(lines[0]).toBe(`Run ${second.run_id} of @local/deploy waits for ${waits}.`)
  expect(next[0]).toEqual(['why', first.run_id])
  for (const { run_id } of [first, second, third, other]) expect((await release(run_id)).state).toBe('completed')
  expect(t.engine.record(second.run_id)).toMatchObject({ reason: null, attempt: 1 })
  expect(t.engine.record(second.run_id).started_at).toBeGreaterThanOrEqual(t.engine.record(first.run_id).completed_at!)
})

test('a team without a key has no place, and one with a key gives it up', async () => {
  await t.run(
    'name: "@local/free"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: x, run: "true" }] }]',
  )
  const { run_id } = await t.start(QUEUE)
  await release(run_id)
  expect(t.db.query('SELECT * FROM key_places').all()).toEqual([])
})

test('a key that is no short text is refused before anything is recorded', async () => {
  await expect(t.start(QUEUE, { env: 'x'.repeat(300) })).rejects.toMatchObject({ code: 'invalid_request' })
  expect(t.db.query('SELECT * FROM runs').all()).toEqual([])
})

test('200 runs of one key with a limit of 2 are never more than 2 at once, and keep their order', async () => {
  const begin = await t.prepare(team('{ key: k, limit: 2 }').replace('{ name: x }', '{ name: x, brief: true }'))
  const runs = await Promise.all(Array.from({ length: 200 }, () => begin()))
  for (const { run_id } of runs) expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(most).toBe(2)
  expect(begun).toEqual(runs.map(({ run_id }) => run_id))
})

test('each run goes by the limit of its own team, and nobody overtakes', async () => {
  const [one, many] = [team('{ key: k }'), team('{ key: k, limit: 3 }', '', 'other')]
  const first = await t.start(many)
  const alone = await t.start(one)
  const third = await t.start(many)
  await executes(first.run_id)
  expect([stateOf(alone.run_id), stateOf(third.run_id)]).toEqual(['queued', 'queued'])
  await release(first.run_id)
  await executes(alone.run_id)
  await executes(third.run_id)
  for (const { run_id } of [alone, third]) await release(run_id)
})

describe('cancel', () => {
  test('ends a run that waits, of which nothing executes', async () => {
    const tell = '  - { name: told, agent: exec, always: true, commands: [{ name: x, run: "true" }] }\n'
    const [first, second] = [await t.start(QUEUE), await t.start(team('{ key: deploy-prod }', tell))]
    const third = await t.start(QUEUE)
    await t.engine.cancel(second.run_id)
    expect(await t.engine.ended(second.run_id)).toMatchObject({
      state: 'cancelled',
      reason: 'cancelled',
      started_at: null,
    })
    expect(t.engine.phases(second.run_id).phases.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
    await expect(t.engine.cancel(second.run_id)).rejects.toMatchObject({ code: 'invalid_state' })
    await release(first.run_id)
    await release(third.run_id)
    expect(begun).toEqual([first.run_id, third.run_id])
  })

  test('of the run that holds the key lets the next one begin', async () => {
    const [first, second] = [await t.start(QUEUE), await t.start(QUEUE)]
    await executes(first.run_id)
    await t.engine.cancel(first.run_id)
    await release(second.run_id)
    expect(stateOf(first.run_id)).toBe('cancelled')
  })
})

describe('when_full: skip', () => {
  test('a run that finds its key full is cancelled at once and says by whom', async () => {
    const first = await t.start(QUEUE)
    const second = await t.start(SKIP)
    const message = `run ${first.run_id} held the key deploy-prod, and the team says \`when_full: skip\``
    expect(second).toMatchObject({ state: 'cancelled', reason: 'skipped', error: { code: 'conflict', message } })
    expect(why(t.engine.store, second.run_id, id => t.engine.bundle(id)).lines[0]).toBe(
      `Run ${second.run_id} of @local/deploy was cancelled (skipped): ${message}.`,
    )
    await release(first.run_id)
    expect(begun).toEqual([first.run_id])
    await release((await t.start(SKIP)).run_id)
  })

  test('a resume that finds the key full is refused, and the run stays ended', async () => {
    const first = await t.start(SKIP)
    await executes(first.run_id)
    await t.engine.cancel(first.run_id)
    await t.engine.ended(first.run_id)
    const second = await t.start(SKIP)
    await expect(t.engine.resume(first.run_id)).rejects.toMatchObject({ code: 'conflict' })
    expect(t.engine.record(first.run_id)).toMatchObject({ state: 'cancelled', attempt: 1 })
    await release(second.run_id)
    await t.engine.resume(first.run_id)
    expect(await release(first.run_id)).toMatchObject({ state: 'completed', attempt: 2 })
  })
})

describe('when_full: cancel_oldest', () => {
  test('the run that holds the key is cancelled, and the new one begins after its end', async () => {
    const [first, second] = [await t.start(NEWEST), await t.start(NEWEST)]
    await release(second.run_id)
    expect(t.engine.record(first.run_id)).toMatchObject({
      state: 'cancelled',
      reason: `superseded by run ${second.run_id}`,
    })
    const [before, after] = [t.engine.record(first.run_id), t.engine.record(second.run_id)]
    expect(after.started_at).toBeGreaterThanOrEqual(before.completed_at!)
  })

  test('of many only the newest remain, also where older ones had not begun', async () => {
    const begin = await t.prepare(team('{ key: k, limit: 2, when_full: cancel_oldest }'))
    const runs = await Promise.all(Array.from({ length: 20 }, () => begin()))
    const ids = runs.map(({ run_id }) => run_id)
    for (const id of ids.slice(-2)) await release(id)
    for (const id of ids.slice(0, -2)) expect((await t.engine.ended(id)).state).toBe('cancelled')
    expect(ids.slice(-2).map(stateOf)).toEqual(['completed', 'completed'])
  })

  test('a run that cleans up is not asked a second time', async () => {
    const cleanup = '  - { name: tidy, agent: hold, always: true, sources: [{ name: x }], depends_on: [ship] }\n'
    const first = await t.start(team('{ key: deploy-prod }', cleanup))
    await executes(first.run_id)
    await t.engine.cancel(first.run_id)
    await until(() => begun.length === 2 && executing.size === 1, 'the clean-up executes')
    const second = await t.start(NEWEST)
    expect(stateOf(second.run_id)).toBe('queued')
    await release(first.run_id)
    expect(t.engine.phases(first.run_id).phases.map(({ state }) => state)).toEqual(['cancelled', 'completed'])
    await release(second.run_id)
  })
})

describe('resume', () => {
  test('takes a place again, behind those that wait', async () => {
    const first = await t.start(QUEUE)
    await executes(first.run_id)
    await t.engine.cancel(first.run_id)
    await t.engine.ended(first.run_id)
    const [second, third] = [await t.start(QUEUE), await t.start(QUEUE)]
    expect(await t.engine.resume(first.run_id)).toMatchObject({
      state: 'queued',
      attempt: 2,
      reason: 'waits for the key deploy-prod',
    })
    for (const { run_id } of [second, third]) await release(run_id)
    expect(await release(first.run_id)).toMatchObject({ state: 'completed', attempt: 2, reason: null })
  })

  test('that waits can be cancelled, with everything below', async () => {
    const child =
      'name: "@local/child"\nversion: 1.0.0\nphases: [{ name: ship, agent: hold, sources: [{ name: x }] }]\n'
    const files = {
      'team.yml':
        'name: "@local/top"\nversion: 1.0.0\nconcurrency: { key: deploy-prod }\nphases: [{ name: down, type: team, team: ./child }]\n',
      'child/team.yml': child,
    }
    const first = await t.start(files)
    await until(() => executing.size === 1, 'the sub-run executes')
    for (const end of executing.values()) end()
    expect((await t.engine.ended(first.run_id)).state).toBe('completed')
    const second = await t.start(QUEUE)
    await t.engine.resume(first.run_id, { from: 'down' })
    await t.engine.cancel(first.run_id)
    expect(await t.engine.ended(first.run_id)).toMatchObject({ state: 'cancelled', attempt: 2 })
    const states = t.db.query<{ state: string }, [string]>('SELECT state FROM runs WHERE root_id = ?').all(first.run_id)
    expect(states.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
    await release(second.run_id)
    await t.engine.resume(first.run_id)
    await until(() => executing.size === 1, 'the sub-run executes again')
    for (const end of executing.values()) end()
    expect((await t.engine.ended(first.run_id)).state).toBe('completed')
  })
})

test('a sub-run holds no key, so a team that calls itself under one key ends', async () => {
  const child = QUEUE.replace('@local/deploy', '@local/child')
  const files = {
    'team.yml':
      'name: "@local/top"\nversion: 1.0.0\nconcurrency: { key: deploy-prod }\nphases: [{ name: down, type: team, team: ./child }]\n',
    'child/team.yml': child,
  }
  const { run_id } = await t.start(files)
  await until(() => executing.size === 1, 'the sub-run executes')
  for (const end of executing.values()) end()
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})

test('a restart keeps the order, and a run that was in progress keeps its place', async () => {
  const home = folder()
  const before = await testEngine({ home, agents: { hold } })
  const runs = [await before.start(QUEUE), await before.start(QUEUE), await before.start(QUEUE)]
  const [first, second, third] = runs.map(({ run_id }) => run_id) as [RunId, RunId, RunId]
  await executes(first)
  await before.close()
  begun.length = 0
  const after = await testEngine({ home, agents: { hold } })
  try {
    for (const id of [first, second, third]) {
      await executes(id)
      expect([...executing.keys()]).toEqual([id])
      executing.get(id)!()
      expect((await after.engine.ended(id)).state).toBe('completed')
    }
    expect(begun).toEqual([first, second, third])
    expect(brokenInvariants(after.db)).toEqual([])
  } finally {
    await after.close()
  }
})

test('listeners hear of a run that ended before it began', async () => {
  const told: string[] = []
  const teller = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Remembers events.',
    settings: Type.Object({}),
    notify: {
      effect: 'idempotent',
      entry: Type.Object({}),
      async run(_, { event }) {
        told.push(`${event!.name} ${event!.run.state}`)
        return { text: 'told' }
      },
    },
  })
  const own = await testEngine({ agents: { hold, teller } })
  try {
    const listens = '  - { name: tell, agent: teller, notify: [on_start, on_cancel] }\n'
    const first = await own.start(QUEUE)
    const second = await own.start(team('{ key: deploy-prod, when_full: skip }', listens))
    await own.engine.ended(second.run_id)
    expect(told).toEqual(['on_cancel cancelled'])
    await until(() => executing.has(first.run_id), 'the first run executes')
    executing.get(first.run_id)!()
    await own.engine.ended(first.run_id)
  } finally {
    await own.close()
  }
})
