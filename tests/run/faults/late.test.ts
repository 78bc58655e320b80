// Tasks end whenever they end: after their run was cancelled and resumed, after their phase asks a person, after the
// run was deleted. A result that nobody awaits any more changes nothing, and leaves nothing.

import { afterEach, expect, test } from 'bun:test'
import { existsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deleteTree } from '../../../lib/daemon/runs/delete-tree.ts'
import type { RunId } from '../../../lib/files/run-id.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { dataOf, phaseOf, questions, rowsOf, subRunOf } from '../../support/home.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { act, scripted, team } from '../../support/scripted.ts'

/** Bytes of a file whose check takes longer than a cancel. */
const LARGE = 600_000_000

let held = Promise.withResolvers<void>()
let lists = 0
let made = 0
const { agents, calls } = scripted({
  list: async () => {
    if (++lists === 1) return { list: Array.from({ length: 8_000 }, (_, n) => n) }
    await held.promise
    return { list: [1, 2, 3] }
  },
  make: ({ workspace }) => {
    const file = `made-${++made}.bin`
    writeFileSync(join(workspace, file), file)
    if (made === 1) truncateSync(join(workspace, file), LARGE)
    return { file }
  },
  ok: () => ({}),
})
let home: string
let t: TestEngine
afterEach(async () => {
  held.resolve()
  held = Promise.withResolvers()
  await t.close()
  checkInvariants(home)
  calls.length = 0
  made = 0
})
const open = async () => {
  home = folder()
  t = await testEngine({ home, agents })
}
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')
/** A key that takes its time, so that the items are being evaluated when something else comes. */
const slowKey = (key: string) => `[1, 2, 3, 4, 5, 6, 7, 8, 9].map(n, string(n)).join('-') + ${key}`

test('items that were being evaluated for a cancelled attempt are not those of the resumed run', async () => {
  await open()
  const each = { name: 'each', type: 'map', items: '{{ phases.a.data.list }}', key: `{{ ${slowKey('string(item)')} }}` }
  const { run_id } = await t.start({
    'team.yml': team([act('a', 'list'), { ...each, depends_on: ['a'], team: './child' }]),
    'child/team.yml': team([act('work', 'ok')]),
  })
  await until(() => phaseOf(t, run_id, 'each').state === 'running', 'the map')
  await t.engine.cancel(run_id)
  expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
  await t.engine.resume(run_id, { from: 'a' })
  // The old evaluation takes less than this.
  await Bun.sleep(1_500)
  expect([phaseOf(t, run_id, 'a').state, phaseOf(t, run_id, 'each').state]).toEqual(['running', 'pending'])
  expect(calls).not.toContain('ok')
  held.resolve()
  expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  expect(dataOf(t, run_id, 'each')).toMatchObject({ total: 3, completed: 3 })
})

test.each(['last', '0'])(
  'a map that asks because its time is over asks once, whatever its items are (%s)',
  async key => {
    await open()
    const items = Array.from({ length: 12_000 }, (_, n) => n)
    // A limit that rings late, because the thread was held up, waits 200 ms for a result. The evaluation takes 700.
    const effort = `([${items.slice(0, 200)}].map(n, string(n)).size() > 0 ? '' : 'never') + `
    const last = key === 'last' ? `'last'` : `${effort}'0'`
    const each = { name: 'each', type: 'map', items, key: `{{ item == 11999 ? ${last} : ${effort}string(item) }}` }
    const { run_id } = await t.start({
      'team.yml': team([{ ...each, team: './child', timeout: '5ms', on_failure: 'escalate' }]),
      'child/team.yml': team([act('work', 'ok', { when: 'false' })]),
    })
    const [question] = await questions(t)
    expect(phaseOf(t, run_id, 'each')).toMatchObject({ state: 'awaiting_input', error: { code: 'timeout' } })
    await Bun.sleep(1_500)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'awaiting_input', error: null })
    await t.engine.decide(question!.id, { decision: 'skip', by: 'me' })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  },
)

const output = { name: 'out', type: 'file', value: '{{ phases.make.data.file }}' }
const DOWN = {
  'team.yml': team([{ name: 'down', type: 'team', team: './child' }]),
  'child/team.yml': team([act('make', 'make')], { outputs: [output] }),
}

/** Cancels a run while the file outputs of its only attempt are being checked. */
async function cancelChecking(files: Parameters<TestEngine['start']>[0]): Promise<RunId> {
  await open()
  const { run_id } = await t.start(files, {}, { workspace: folder() })
  await until(() => rowsOf(home, "SELECT 1 FROM phases WHERE state = 'completed'").length === 1, 'the phase')
  await t.engine.cancel(run_id)
  expect(await ended(run_id)).toMatchObject({ state: 'cancelled' })
  return run_id
}

test('a resumed sub-run hands over what it has made, not what the cancelled attempt had', async () => {
  const runId = await cancelChecking(DOWN)
  await t.engine.resume(runId, { from: 'down' })
  expect(await ended(runId)).toMatchObject({ state: 'completed' })
  expect(t.engine.record(subRunOf(t, runId, 'down')).outputs).toEqual({ out: 'made-2.bin' })
  expect(phaseOf(t, runId, 'down')).toMatchObject({ data: { out: 'files/down/made-2.bin' }, files: [{ bytes: 10 }] })
})

test('a resumed run does not fail for a file that only the cancelled attempt named', async () => {
  const value = "{{ phases.make.data.file == 'made-1.bin' ? 'missing.bin' : 'made-2.bin' }}"
  const outputs = [output, { name: 'more', type: 'file', value }]
  const runId = await cancelChecking({ 'team.yml': team([act('make', 'make')], { outputs }) })
  await t.engine.resume(runId, { from: 'make' })
  expect(await ended(runId)).toMatchObject({ state: 'completed', error: null })
})

test('a deleted run leaves no files, although they were being handed over when it was cancelled', async () => {
  const runId = await cancelChecking(DOWN)
  await deleteTree(t.engine, runId)
  const stateDir = t.engine.stateDir(runId)
  expect(existsSync(stateDir)).toBe(false)
  // The engine closes when nothing works on files any more.
  await t.close()
  expect(existsSync(stateDir)).toBe(false)
})
