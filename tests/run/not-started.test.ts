// A run that was admitted and cannot begin, where nobody hears the answer: it is recorded as failed, and can be resumed.

import { afterEach, expect, test } from 'bun:test'
import { agent, Type } from '../../lib/agent/cadre.ts'
import { runDetail, why } from '../../lib/run/engine.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const told: string[] = []
const bell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Notes what it is told.',
  settings: Type.Object({}),
  notify: {
    effect: 'idempotent',
    entry: Type.Object({ message: Type.Optional(Type.String()) }),
    async run(_, { run }) {
      told.push(run.name ?? '')
      return { text: 'rang' }
    },
  },
})
const TEAM = `
name: "@local/morning"
version: 1.0.0
concurrency: { key: one }
inputs: [{ name: token, type: string, secret: true }]
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: tidy, agent: exec, always: true, depends_on: [work], commands: [{ name: c, run: "true" }] }
  - { name: begins, agent: bell, notify: [on_start] }
  - { name: fails, agent: bell, notify: [on_fail] }
`

let t: TestEngine | null = null
afterEach(async () => {
  told.length = 0
  await t?.close()
})

async function notStarted(home = folder()): Promise<string> {
  t = await testEngine({ home, agents: { bell } })
  const first = await t.engine.ended((await t.start(TEAM)).run_id)
  const bundle = t.engine.bundle(t.engine.store.runs.get(first.run_id)!.bundle_id)
  told.length = 0
  const error = { code: 'invalid_request', message: 'the run cannot start: agents.wiki.token is missing' } as const
  const { run_id } = await t.engine.start({ bundle, inputs: {}, runName: 'nightly', notStarted: error })
  return run_id
}

test('it is failed and says why, and nothing of it ran, not even what cleans up', async () => {
  const runId = await notStarted()
  const { engine } = t!
  const record = await engine.ended(runId)
  expect(record).toMatchObject({ state: 'failed', reason: 'not_started', started_at: null, outputs: null })
  expect(record.error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('token is missing') })
  expect(record.completed_at).toBeGreaterThan(0)
  expect(engine.phases(runId).phases.map(({ state, attempt }) => [state, attempt])).toEqual([
    ['cancelled', 0],
    ['cancelled', 0],
  ])
  expect(why(engine.store, runId, id => engine.bundle(id)).lines.join('\n')).toContain('token is missing')
})

test('its listeners are told of the failure, and of no start', async () => {
  const runId = await notStarted()
  await t!.engine.ended(runId)
  await t!.engine.untilQuiet()
  expect(told).toEqual(['nightly'])
  const { deliveries } = runDetail(t!.engine.store, runId)
  expect(deliveries.map(({ phase, event, state }) => [phase, event, state])).toEqual([
    ['fails', 'on_fail', 'delivered'],
  ])
})

test('it takes no concurrency key', async () => {
  const runId = await notStarted()
  expect(t!.engine.store.concurrencyKeys.get(runId)).toBeNull()
})

test('it is the same after a restart, and a resume begins it', async () => {
  const home = folder()
  const runId = await notStarted(home)
  await t!.engine.ended(runId)
  await t!.close()
  t = await testEngine({ home, agents: { bell } })
  expect(t.engine.record(runId)).toMatchObject({ state: 'failed', reason: 'not_started' })
  await t.engine.resume(runId, { inputs: { token: 'x' } })
  expect((await t.engine.ended(runId)).state).toBe('completed')
})
