// Listeners: one that does not return, or throws what nobody can read, is a failed delivery and holds up nothing else.

import { afterEach, expect, test } from 'bun:test'
import { agent, Type } from '../../../lib/agent/cadre.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { deliveries, questions, rowsOf, subRunOf } from '../../support/home.ts'
import { act, scripted, team } from '../../support/scripted.ts'

let rings: (event: string) => unknown
let told: string[] = []
const bell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Tells as the test says.',
  settings: Type.Object({}),
  notify: {
    effect: 'idempotent',
    entry: Type.Object({}),
    async run(_, context) {
      const { name, run } = context.event!
      told.push(`${name} ${run.id}`)
      await rings(name)
      return { text: name }
    },
  },
})
const { agents, calls } = scripted({ work: () => {} })
const listening = (...events: string[]) => ({ name: 'tell', agent: 'bell', notify: events })
const never = () => new Promise(() => {})

let t: TestEngine
const open = async (home?: string) => {
  t = await testEngine({ agents: { ...agents, bell }, deliveryTimeout: 400, ...(home && { home }) })
}
afterEach(async () => {
  told = []
  calls.length = 0
  await within(t.close(), 'the stop')
})

test('one that never returns fails its delivery at the time-out, and the next events are delivered', async () => {
  await open()
  rings = name => (name === 'on_start' ? never() : undefined)
  const { run_id } = await t.start(
    team([act('work', 'work'), listening('on_start', 'on_phase_complete', 'on_complete')]),
  )
  expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'completed' })
  expect(deliveries(t, run_id).map(({ event, state }) => [event, state])).toEqual([
    ['on_start', 'failed'],
    ['on_phase_complete', 'delivered'],
    ['on_complete', 'delivered'],
  ])
  expect(deliveries(t, run_id)[0]!.error).toMatch(/longer|within|time/)
  await within(t.engine.untilQuiet(), 'all that is told')
})

test('one that returned while the process was paused is delivered', async () => {
  t = await testEngine({ agents: { ...agents, bell }, deliveryTimeout: 1_000 })
  const server = new Worker(
    `data:text/javascript,const s = Bun.serve({ port: 0, async fetch() { await Bun.sleep(300); return new Response('') } });
     postMessage(s.port)`,
  )
  const port = await new Promise(resolve => {
    server.onmessage = ({ data }) => resolve(data)
  })
  rings = () => fetch(`http://127.0.0.1:${port}/`)
  const { run_id } = await t.start(team([act('work', 'work'), listening('on_complete')]))
  await until(() => told.length === 1, 'the call')
  await Bun.sleep(50)
  Bun.sleepSync(2_500)
  await within(t.engine.ended(run_id), 'the end of the run')
  expect(deliveries(t, run_id)).toMatchObject([{ state: 'delivered' }])
  server.terminate()
})

test('one that never returns delays no other run, no resume and no later start', async () => {
  const home = folder()
  await open(home)
  rings = never
  const stuck = await t.start(team([act('work', 'work'), listening('on_start', 'on_complete')]))
  await until(() => told.length === 1, 'the first event')
  rings = () => {}
  const other = await within(t.run(team([act('work', 'work'), listening('on_complete')])), 'another run')
  expect(deliveries(t, other.run_id)).toMatchObject([{ state: 'delivered' }])
  await until(() => t.engine.record(stuck.run_id).completed_at !== null, 'the end of the run')
  rings = never
  await within(t.engine.resume(stuck.run_id, { from: 'work' }), 'the resume')
  expect(await within(t.engine.ended(stuck.run_id), 'its second end')).toMatchObject({ state: 'completed', attempt: 2 })
  await within(t.close(), 'the stop')
  await open(home)
  await within(t.engine.untilQuiet(), 'all that is told')
  expect(calls).toHaveLength(3)
  const left = "SELECT state FROM deliveries WHERE state IN ('pending', 'sent')"
  expect(rowsOf(home, left)).toEqual([])
})

const wild: [what: string, value: () => unknown][] = [
  ['nothing', () => undefined],
  ['a text', () => 'a text'],
  [
    'an object that throws when it is read',
    () => Object.defineProperty({}, 'message', { get: () => never.prototype.x.y }),
  ],
  [
    'a proxy that throws whatever is asked',
    () =>
      new Proxy(
        {},
        new Proxy(
          {},
          {
            get: () => () => {
              throw new Error('trap')
            },
          },
        ),
      ),
  ],
]
test.each(wild)('one that throws %s fails its delivery and nothing else', async (_, value) => {
  await open()
  rings = name => {
    if (name === 'on_start') throw value()
  }
  const { run_id } = await t.start(team([act('work', 'work'), listening('on_start', 'on_complete')]))
  expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'completed' })
  expect(deliveries(t, run_id).map(({ event, state }) => [event, state])).toEqual([
    ['on_start', 'failed'],
    ['on_complete', 'delivered'],
  ])
  expect(deliveries(t, run_id)[0]!.error).toBeString()
})

test('a review is delivered once in its run and once in each run above, even if it becomes an escalation', async () => {
  const home = folder()
  await open(home)
  rings = () => {}
  const { run_id } = await t.start({
    'team.yml': team([{ name: 'down', type: 'team', team: './child' }, listening('on_escalate')]),
    'child/team.yml': team([
      { name: 'ask', type: 'gate', review: { prompt: 'Go on?', timeout: '200ms' } },
      listening('on_escalate'),
    ]),
  })
  const sub = subRunOf(t, run_id, 'down')
  const [first] = await until(async () => {
    const open = await questions(t)
    return open[0]!.kind === 'escalation' && open
  }, 'the escalation')
  await within(t.close(), 'the stop')
  await open(home)
  await within(t.engine.untilQuiet(), 'all that is told')
  const count = (runId: string) => deliveries(t, runId).filter(({ event }) => event === 'on_escalate').length
  expect([count(run_id), count(sub)]).toEqual([1, 1])

  // Another question is another review.
  await t.engine.decide(first!.id, { decision: 'retry', by: 'somebody' })
  await until(async () => (await questions(t))[0]!.id !== first!.id, 'the second review')
  await within(t.engine.untilQuiet(), 'all that is told')
  expect([count(run_id), count(sub)]).toEqual([2, 2])
  await t.engine.cancel(run_id)
  await within(t.engine.ended(run_id), 'the end of the run')
})
