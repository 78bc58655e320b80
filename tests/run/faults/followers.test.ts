// Those who follow runs, and those who call an engine that has stopped: none of them holds up another, nor hangs.

import { afterEach, expect, test } from 'bun:test'
import { within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { act, scripted, team } from '../../support/scripted.ts'

const { agents } = scripted({
  say: ({ log }) => log('a line'),
  hold: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
})
let t: TestEngine
afterEach(() => t.close())

test('one that throws keeps no other from hearing, and no line out of the log', async () => {
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
