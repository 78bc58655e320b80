// What listeners were telling when the engine stopped, or when their run was deleted.

import { afterEach, expect, test } from 'bun:test'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { runDetail } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

let rings: (context: { signal: AbortSignal }) => Promise<void>
const bell = (effect: 'idempotent' | 'once') =>
  agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Tells when it is let.',
    settings: Type.Object({}),
    notify: {
      effect,
      entry: Type.Object({}),
      async run(_, context) {
        await rings(context)
        return { text: 'rang' }
      },
    },
  })
const agents = { calm: bell('idempotent'), loud: bell('once') }
const TEAM = (name: string) => `
name: "@local/told"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: tell, agent: ${name}, notify: [on_complete] }
`

let t: TestEngine | null = null
afterEach(() => t?.close())

/** Starts a team whose listener hangs until its signal fires, and resolves once it does. */
async function hanging(home: string, name: string, error: () => Error): Promise<string> {
  const rung = Promise.withResolvers<void>()
  rings = ({ signal }) => {
    rung.resolve()
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(error())))
  }
  t = await testEngine({ home, agents })
  const { run_id } = await t.start(TEAM(name))
  await rung.promise
  return run_id
}

const cases: [what: string, agent: string, error: () => Error, state: string, rang: number][] = [
  ['that may be told again is', 'calm', () => new Error('aborted'), 'delivered', 1],
  ['of which nothing was sent is told', 'loud', () => new AgentError('stopped', { sent: 'no' }), 'delivered', 1],
  ['that may have been sent is not sent again', 'loud', () => new Error('aborted'), 'unknown', 0],
]
test.each(cases)('an event %s at the next start', async (_, name, error, state, rang) => {
  const home = folder()
  const runId = await hanging(home, name, error)
  await t!.close()
  let times = 0
  rings = async () => void times++
  t = await testEngine({ home, agents })
  await t.engine.untilQuiet()
  expect(runDetail(t.engine.store, runId).deliveries).toMatchObject([{ phase: 'tell', event: 'on_complete', state }])
  expect(times).toBe(rang)
})

test('a run that is deleted while its end is told harms nothing', async () => {
  const held = Promise.withResolvers<void>()
  const rung = Promise.withResolvers<void>()
  rings = async () => {
    rung.resolve()
    await held.promise
    throw new AgentError('no answer')
  }
  t = await testEngine({ agents })
  const { run_id } = await t.start(TEAM('loud'))
  await rung.promise
  t.engine.store.db.query('DELETE FROM runs WHERE id = ?').run(run_id)
  held.resolve()
  await t.engine.untilQuiet()
  rings = async () => {}
  expect((await t.run(TEAM('loud'))).state).toBe('completed')
})

test('a listener that ignores its signal does not delay a stop', async () => {
  const rung = Promise.withResolvers<void>()
  rings = () => {
    rung.resolve()
    return Promise.withResolvers<void>().promise
  }
  t = await testEngine({ agents })
  await t.start(TEAM('calm'))
  await rung.promise
  await t.close()
  t = null
})

test('the message of a gate that escalates ends with the last lines that its commands printed', async () => {
  const messages: string[] = []
  const speaker = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Keeps what it is told.',
    settings: Type.Object({}),
    notify: {
      effect: 'idempotent',
      entry: Type.Object({}),
      async run(_, { event }) {
        messages.push(event!.message)
        return { text: 'told' }
      },
    },
  })
  t = await testEngine({ agents: { speaker } })
  const gate = (more: string) => `
name: "@local/asks"
version: 1.0.0
phases:
  - name: ask
    type: gate
    commands: [{ name: c, run: 'for i in $(seq 1 30); do echo "line $i"; done' }]
    review: { prompt: "Go on?", timeout: 1ms${more} }
  - { name: tell, agent: speaker, notify: [on_escalate] }
`
  const above = `
name: "@local/above"
version: 1.0.0
phases:
  - { name: sub, type: team, team: ./asks }
  - { name: tell, agent: speaker, notify: [on_escalate] }
`
  await t.start({ 'team.yml': above, 'asks/team.yml': gate('') })
  await until(() => messages.length === 2, 'both messages')
  const tail = Array.from({ length: 20 }, (_, at) => `line ${at + 11}`).join('\n')
  for (const message of messages) expect(message).toMatch(new RegExp(`^@local/(asks|above): run [^\n]+\n${tail}$`))
  // Colours, links and bells are for terminals, and of a line that is too long its end is told.
  const printing = async (run: string) => {
    messages.length = 0
    await t!.start(gate('').replace(/run: '.*'/, () => `run: ${JSON.stringify(run)}`))
    await until(() => messages.length === 1, 'the message')
    return messages[0]
  }
  const coloured = String.raw`printf '\033[31mred\033[0m, \007 \033]8;;http://x.example\033\\linked\033]8;;\033\\\n'`
  expect(await printing(coloured)).toEndWith('\nred,  linked')
  expect(await printing('head -c 5000 /dev/zero | tr "\\0" x; echo " the end"')).toMatch(/\nx{1000,2040} the end$/)
  messages.length = 0
  await t.start(gate(', share: false'))
  await until(() => messages.length === 1, 'the message')
  expect(messages[0]).not.toContain('line')
})
