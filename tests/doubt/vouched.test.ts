// A person is asked about one entry in doubt, and says that it is there. The answer is about this entry: the others of
// its phase are sent, and the doubt is over.

import { afterEach, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/cadre.ts'
import type { JsonObject } from '../../lib/json.ts'
import { why } from '../../lib/run/engine.ts'
import { drivenClock } from '../../lib/testing/driven-clock.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { type Fate, lateVendor } from '../support/late-vendor.ts'
import { team } from '../support/scripted.ts'

const engines: TestEngine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

async function begin(fates: Fate[]) {
  const clock = drivenClock()
  const vendor = lateVendor(clock)
  vendor.fates = fates
  const t = await testEngine({ bootClock: clock, settle: null, agents: { vendor: vendor.agent } })
  engines.push(t)
  return { t, vendor }
}

const make = (entries: string[], more: JsonObject = {}) => ({
  name: 'make',
  agent: 'vendor',
  action: 'blind',
  target_entries: entries.map(name => ({ name, title: name })),
  ...more,
})

async function asked({ engine }: TestEngine, runId: string) {
  for (let n = 0; n < 1_000 && engine.record(runId).state !== 'awaiting_input'; n++) await Bun.sleep(2)
  return engine.store.reviews.list({ state: 'pending', limit: 1, offset: 0 }).rows[0]!
}

const toldOf = ({ engine }: TestEngine, id: string) => why(engine.store, id, bundle => engine.bundle(bundle))

test('the other entries of the phase are sent, and the question says so', async () => {
  const { t, vendor } = await begin([{}, { reply: 'lost', lands: 0 }])
  const { run_id } = await t.start(team([make(['one', 'two', 'three', 'four'])]))
  const { id, prompt } = await asked(t, run_id)
  expect(prompt).toBe(
    'two may have been written: HTTP 504\nafter it come three, four: complete and retry go on with them',
  )
  await t.engine.decide(id, { decision: 'complete', by: 'me', values: { id: 'T-2' } })
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(vendor.tickets.map(({ title }) => title)).toEqual(['one', 'two', 'three', 'four'])
  const { data } = t.engine.phases(run_id).phases[0]!
  expect(data).toEqual({
    entries: { one: { id: 'T-1' }, two: { id: 'T-2' }, three: { id: 'T-3' }, four: { id: 'T-4' } },
  })
  expect(toldOf(t, run_id).lines.join('\n')).not.toContain('may or may not')
})

test('the values are the data of a phase whose last entry was in doubt, and nobody doubts it any more', async () => {
  const { t, vendor } = await begin([{ reply: 'lost', lands: 0 }])
  const { run_id } = await t.start(team([make(['one'])]))
  const { id, prompt } = await asked(t, run_id)
  expect(prompt).toBe('one may have been written: HTTP 504')
  await t.engine.decide(id, { decision: 'complete', by: 'me', values: { id: 'T-1' } })
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect([t.engine.phases(run_id).phases[0]!.data, vendor.sends]).toEqual([{ id: 'T-1' }, 1])
  expect(toldOf(t, run_id).written).toMatchObject([{ state: 'done' }])
})

for (const entries of [['one'], ['one', 'two']]) {
  test(`an answer without values is asked for again by a repetition, and ${entries.length} exist in the end`, async () => {
    const { t, vendor } = await begin([{ reply: 'lost', lands: 0 }])
    const read = `phases.make.data.${entries.length > 1 ? 'entries.one.' : ''}id`
    const next = make(['last'], { name: 'next', depends_on: ['make'] })
    next.target_entries[0]!.title = `{{ ${read} }}`
    const { run_id } = await t.start(team([make(entries), next]))
    await t.engine.decide((await asked(t, run_id)).id, { decision: 'complete', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('failed')
    expect(toldOf(t, run_id).next).toContainEqual(['resume', run_id, '--from', 'make'])
    await t.engine.resume(run_id, { from: 'make' })
    await t.engine.decide((await asked(t, run_id)).id, { decision: 'complete', by: 'me', values: { id: 'T-1' } })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(vendor.tickets.map(({ title }) => title)).toEqual([...entries, 'T-1'])
  })
}

test('what a person wants sent again is not when the other system shows it by then', async () => {
  const { t, vendor } = await begin([{ reply: 'lost', lands: 0 }])
  vendor.faults = [new AgentError('HTTP 401')]
  const { run_id } = await t.start(team([make(['one', 'two'], { action: 'create' })]))
  await t.engine.decide((await asked(t, run_id)).id, { decision: 'retry', by: 'me' })
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(vendor.tickets.map(({ title }) => title)).toEqual(['one', 'two'])
})

for (const [what, faults] of [
  ['does not show it', []],
  ['still cannot tell', [new AgentError('HTTP 401')]],
] as const) {
  test(`what a person wants sent again is at once when the other system ${what}`, async () => {
    const { t, vendor } = await begin([{ reply: 'lost', lands: null }])
    vendor.faults = [new AgentError('HTTP 401'), ...faults]
    const { run_id } = await t.start(team([make(['one', 'two'], { action: 'create' })]))
    await t.engine.decide((await asked(t, run_id)).id, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(vendor.tickets.map(({ title }) => title)).toEqual(['one', 'two'])
  })
}

test('a person who is asked because nobody answered can ask again, and the answer is kept', async () => {
  const { t, vendor } = await begin([{ reply: 'lost', lands: 0 }])
  vendor.faults = [new AgentError('HTTP 401')]
  const { run_id } = await t.start(team([make(['one', 'two'], { action: 'create' })]))
  const { id } = await asked(t, run_id)
  expect(toldOf(t, run_id).next).toContainEqual(['why', run_id, '--ask'])
  expect(await t.engine.askAgain(run_id)).toEqual([])
  expect(toldOf(t, run_id).written).toMatchObject([{ state: 'done', id: 'T-1' }])
  await t.engine.decide(id, { decision: 'retry', by: 'me' })
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(vendor.tickets.map(({ title }) => title)).toEqual(['one', 'two'])
})
