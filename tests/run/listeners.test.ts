// What listeners were telling when the engine stopped, or when their run was deleted.

import { afterEach, expect, test } from 'bun:test'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { runDetail } from '../../lib/run/engine.ts'
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
