// The accounts of `notify.on_fail`: they are told of each top run that fails without a listener of its own for that.

import { afterEach, expect, test } from 'bun:test'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { readLines, runDetail } from '../../lib/run/engine.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const told: { channel: string; message: string }[] = []
let answers = async (_: { signal: AbortSignal }): Promise<void> => {}
const bell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Notes what it is told.',
  settings: Type.Object({}),
  notify: {
    effect: 'once',
    entry: Type.Object({ channels: Type.Optional(Type.Array(Type.String())) }),
    async run({ channels = [] }, { event, signal }) {
      await answers({ signal })
      told.push({ channel: channels.join(), message: event!.message })
      return { text: 'rang' }
    },
  },
})
const options = { agents: { bell }, onFail: () => [{ agent: 'bell', channel: 'ops' }] }
const team = (phases: string) => `
name: "@local/nightly"
version: 1.0.0
phases:
${phases}`
const FAILS = '  - { name: work, agent: exec, commands: [{ name: c, run: "exit 3" }] }\n'
const SLEEPS = '  - { name: work, agent: exec, commands: [{ name: c, run: "sleep 60" }] }\n'

let t: TestEngine | null = null
afterEach(async () => {
  told.length = 0
  answers = async () => {}
  await t?.close()
  t = null
})

const deliveriesOf = (runId: string) =>
  runDetail(t!.engine.store, runId).deliveries.map(({ phase, event, state }) => [phase, event, state])

test('a failure is told with the default message, and again when a resume fails', async () => {
  t = await testEngine(options)
  const { run_id } = await t.run(team(FAILS))
  expect(told).toHaveLength(1)
  const [{ channel, message }] = told as [(typeof told)[0]]
  expect(channel).toBe('ops')
  for (const part of ['@local/nightly', run_id, 'failed', 'phase work', 'code 3']) expect(message).toContain(part)
  await t.engine.resume(run_id)
  await t.engine.ended(run_id)
  const one = ['notify.on_fail bell:ops', 'on_fail', 'delivered']
  expect(deliveriesOf(run_id)).toEqual([one, one])
})

test('what completes or is cancelled is not told, and neither is what a listener of the team tells', async () => {
  t = await testEngine(options)
  const listener = '  - { name: own, agent: bell, notify: { on_fail: { when: "false" } } }\n'
  const failed = await t.run(team(FAILS + listener))
  await t.run(team('  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }\n'))
  const { run_id } = await t.start(team(SLEEPS))
  await t.engine.cancel(run_id)
  await t.engine.ended(run_id)
  expect([told, deliveriesOf(failed.run_id)]).toEqual([[], []])
})

test('a sub-run that fails is told once, as the failure of its top run', async () => {
  t = await testEngine(options)
  const top = team('  - { name: down, type: team, team: ./below }\n')
  const { run_id } = await t.run({ 'team.yml': top, 'below/team.yml': team(FAILS).replace('nightly', 'below') })
  expect(told.map(({ message }) => message)).toEqual([expect.stringContaining(run_id)])
  expect(told[0]!.message).toContain('phase work')
})

test('a run that cannot begin is told', async () => {
  t = await testEngine(options)
  const begin = await t.prepare(team(SLEEPS))
  const { run_id } = await begin({ notStarted: { code: 'invalid_request', message: 'agents.wiki.token is missing' } })
  await t.engine.ended(run_id)
  expect(told.map(({ message }) => message)).toEqual([expect.stringContaining('agents.wiki.token is missing')])
})

test('what cannot be told stands in the log of the run, and changes no state', async () => {
  answers = async () => {
    throw new AgentError('no such room', { sent: 'no' })
  }
  t = await testEngine(options)
  const { run_id, state } = await t.run(team(FAILS))
  expect(state).toBe('failed')
  expect(deliveriesOf(run_id)).toEqual([['notify.on_fail bell:ops', 'on_fail', 'failed']])
  const { lines } = await readLines(t.engine.stateDir(run_id), { limit: 10 })
  expect(lines.map(({ phase, text }) => [phase, text])).toContainEqual([
    'notify',
    expect.stringContaining('on_fail was not delivered'),
  ])
})

test('what may have been sent before a stop is in doubt, and is not sent again', async () => {
  const home = folder()
  const rung = Promise.withResolvers<void>()
  answers = ({ signal }) => {
    rung.resolve()
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
  }
  t = await testEngine({ ...options, home })
  const { run_id } = await t.start(team(FAILS))
  await rung.promise
  await t.close()
  answers = async () => {}
  t = await testEngine({ ...options, home })
  await t.engine.untilQuiet()
  expect(deliveriesOf(run_id)).toEqual([['notify.on_fail bell:ops', 'on_fail', 'unknown']])
  expect(told).toEqual([])
})
