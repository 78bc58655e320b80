// Those who follow runs, and those who call an engine that has stopped: none of them holds up another, nor hangs.

import { afterEach, expect, test } from 'bun:test'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { phaseOf, subRunOf } from '../../support/home.ts'
import { act, keyed, scripted, team } from '../../support/scripted.ts'

let fails = true
const { agents, calls } = scripted({
  fail: () => {
    if (fails) throw new Error('not yet')
  },
  say: ({ log }) => log('a line'),
  hold: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
})
let t: TestEngine
afterEach(() => t.close())

test('one that throws does not affect other followers or the log', async () => {
  t = await testEngine({ agents })
  t.engine.follow(() => {
    throw new Error('broken on purpose')
  })
  const heard = new Set<string>()
  const lines: string[] = []
  t.engine.follow(notice => {
    heard.add(notice.kind)
    lines.push(...(notice.lines ?? []).map(({ text }) => text))
  })
  const { run_id } = await t.run(team([act('say', 'say')]))
  expect([...heard].toSorted()).toEqual(['log', 'phase', 'run'])
  expect(lines).toEqual(['a line'])
  expect(t.engine.logs.last(run_id)).toBe(1)
  const log = await Bun.file(`${t.engine.stateDir(run_id)}/log.jsonl`).text()
  expect(JSON.parse(log)).toMatchObject({ seq: 1, text: 'a line' })
})

test('a call after the stop is refused', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.start(team([act('hold', 'hold')]))
  await t.engine.stop()
  const answer = await within(t.engine.cancel(run_id), 'the answer').catch(error => error)
  expect(answer).toMatchObject({ code: 'unavailable' })
})

test('a caller that waits for a sub-run that never got its turn learns that it was cancelled', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.run({
    'team.yml': team([keyed(['a', 'b'], './one', { concurrency: 1, on_item_failure: 'continue' })]),
    'one/team.yml': team([act('first', 'fail'), act('second', 'hold', { depends_on: ['first'] })]),
  })
  fails = false
  await t.engine.resume(run_id, { failed: true })
  await until(() => calls.includes('hold'), 'the first item')
  const queued = subRunOf(t, run_id, 'each', 'b')
  expect(t.engine.record(queued).state).toBe('queued')
  const waiting = t.engine.ended(queued)
  await t.engine.cancel(run_id)
  expect(await within(waiting, 'the end of the sub-run')).toMatchObject({ state: 'cancelled' })
  expect(phaseOf(t, run_id, 'each').state).toBe('cancelled')
})
