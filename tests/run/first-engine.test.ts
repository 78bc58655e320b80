// A home that the first engine left: its rows say less about clocks, and the runs in it go on all the same.

import { Database } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until, within } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { phaseOf, questions } from '../support/home.ts'
import { act, scripted, team } from '../support/scripted.ts'

const { agents } = scripted({
  sleep: async ({ signal }, ms) => {
    for (const until = performance.now() + Number(ms); performance.now() < until; ) {
      signal.throwIfAborted()
      await Bun.sleep(5)
    }
  },
})
let t: TestEngine
afterEach(() => t.close())

const LIMIT = '1s'
const ask = { name: 'ask', type: 'gate', review: { prompt: 'Go on?' } }
const long = act('long', 'sleep', { value: 60_000 })
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')

/** Ends the engine, writes what the first one had written in the place of some columns, and starts another. */
async function upgrade(home: string, sql: string): Promise<void> {
  await t.close()
  const db = new Database(join(home, 'daemon.db'))
  db.run(sql)
  db.close()
  t = await testEngine({ home, agents })
}

test.each(['team', 'map'])('the timeout of a %s phase that was running still strikes', async type => {
  const home = folder()
  t = await testEngine({ home, agents })
  const { run_id } = await t.start({
    'team.yml': team([{ name: 'down', type, team: './child', timeout: LIMIT, ...(type === 'map' && { items: [1] }) }]),
    'child/team.yml': team([long]),
  })
  await until(() => phaseOf(t, run_id, 'down').state === 'running', 'the phase')
  await upgrade(home, 'UPDATE phases SET deadline = NULL, time_left = NULL')
  expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
})

test('the timeout of a team phase that waits for a person begins when the phase continues', async () => {
  const home = folder()
  t = await testEngine({ home, agents })
  const { run_id } = await t.start({
    'team.yml': team([{ name: 'down', type: 'team', team: './child', timeout: LIMIT }]),
    'child/team.yml': team([ask, { ...long, depends_on: ['ask'] }]),
  })
  const [question] = await questions(t)
  await upgrade(home, 'UPDATE phases SET deadline = NULL, time_left = NULL')
  await Bun.sleep(1_200)
  expect(phaseOf(t, run_id, 'down').state).toBe('awaiting_input')
  await t.engine.decide(question!.id, { decision: 'approve', by: 'somebody' })
  expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { code: 'timeout' } })
})

test('the clock of a run that asks a person beside other work runs again', async () => {
  const home = folder()
  t = await testEngine({ home, agents })
  const { run_id } = await t.start(team([ask, long], { timeout: LIMIT }))
  await questions(t)
  // The first engine stopped it as soon as anybody was asked.
  await upgrade(home, 'UPDATE runs SET deadline = NULL, time_left = 1000')
  expect(await ended(run_id)).toMatchObject({ state: 'failed', reason: 'timeout' })
})
