// What a running phase waits for, as people see it: what its agent says by `waiting`, and nothing that it logs.

import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Waiting } from '../../lib/wire/records/run-records.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { faultServer } from '../support/faults.ts'
import { type Act, scripted, shell, team } from '../support/scripted.ts'

const engines: TestEngine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

async function begin(acts: Record<string, Act>, names = Object.keys(acts)) {
  const t = await testEngine({ agents: scripted(acts).agents })
  engines.push(t)
  const { run_id } = await t.start(team([{ name: 'p', agent: 'act', sources: names.map(name => ({ name })) }]))
  const phase = () => t.engine.phases(run_id).phases[0]!
  return { t, run_id, waiting: () => phase().waiting, shows: (wanted: Waiting | string | null) => until(phase, wanted) }
}

/** Fails by the test's own clock when it never comes. */
async function until(phase: () => { state: string; waiting: Waiting | null }, wanted: Waiting | string | null) {
  const same = typeof wanted === 'string' ? { reason: wanted, until: null } : wanted
  while (phase().state !== 'running' || !Bun.deepEquals(phase().waiting, same)) await Bun.sleep(5)
}

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { promise, open: () => resolve() }
}

test('a line of the log that begins with `waiting: ` is a line of the log', async () => {
  const [logged, done] = [gate(), gate()]
  const { t, run_id, waiting } = await begin({
    async say(context) {
      context.log('waiting: for Godot')
      logged.open()
      await done.promise
    },
  })
  await logged.promise
  expect(waiting()).toBeNull()
  done.open()
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})

test('a command that prints `waiting: ` waits for nothing', async () => {
  const t = await testEngine()
  engines.push(t)
  const { run_id } = await t.start(team([shell('p', 'echo waiting: x; until [ -e go ]; do sleep 0.02; done')]))
  while (t.engine.logs.last(run_id) === 0) await Bun.sleep(10)
  expect(t.engine.phases(run_id).phases[0]!.waiting).toBeNull()
  await Bun.write(join(t.engine.stateDir(run_id), 'work', 'go'), '')
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})

test('what the agent waits for is shown until it is disposed of, whatever is logged meanwhile', async () => {
  const [first, second] = [gate(), gate()]
  const { t, run_id, shows } = await begin({
    async wait(context) {
      {
        using _ = context.waiting('the export')
        context.log('still there')
        await first.promise
      }
      await second.promise
    },
  })
  await shows('the export')
  first.open()
  await shows(null)
  second.open()
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})

test('the end of a wait is shown, and the wait ends then', async () => {
  const done = gate()
  const at = new Date(Date.now() + 300)
  const { t, run_id, shows } = await begin({
    async wait(context) {
      context.waiting('the outer')
      context.waiting('rate limit', at)
      await done.promise
    },
  })
  await shows({ reason: 'rate limit', until: at.getTime() })
  await shows('the outer')
  expect(Date.now()).toBeGreaterThanOrEqual(at.getTime())
  done.open()
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})

test('it ends with the call: the next entry waits for nothing, and a call that has ended can say no more', async () => {
  const [began, done] = [gate(), gate()]
  let late: AgentContext | undefined
  const { t, run_id, shows, waiting } = await begin({
    async first(context) {
      late = context
      context.waiting('the first')
    },
    async second() {
      began.open()
      await done.promise
    },
  })
  await began.promise
  await shows(null)
  late!.waiting('too late')
  expect(waiting()).toBeNull()
  done.open()
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  late!.waiting('much too late')
  expect(waiting()).toBeNull()
})

test('fetch says so while it waits to try again', async () => {
  using server = faultServer()
  let count = 0
  server.on('/', () =>
    count++ === 0 ? new Response('', { status: 429, headers: { 'retry-after': '1' } }) : new Response('done'),
  )
  const { t, run_id, waiting } = await begin({
    async ask(context) {
      await (await context.fetch(server.url)).text()
    },
  })
  while (waiting() === null) await Bun.sleep(5)
  expect(waiting()).toEqual({ reason: 'rate limit', until: expect.any(Number) })
  expect((await t.engine.ended(run_id)).state).toBe('completed')
})
