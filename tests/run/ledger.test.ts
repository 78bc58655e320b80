import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { runPhases, why } from '../../lib/run/engine.ts'
import { within } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'

/** An outside that counts what reaches it, and can lose its reply. */
const FRESH = {
  slow: 0,
  /** It cuts the first request off, and carries it out once it has been asked about it. */
  late: false,
  lose: false,
  hang: false,
  refuse: 0,
  canTell: true,
  broken: false,
  /** How often it was asked for a write. */
  asked: 0,
  /** It never answers when it is asked. */
  mute: false,
  /** It answers even a caller that has gone. */
  patient: false,
}
const outside = { ...FRESH, written: [] as string[] }
let carryOut = () => {}

const vendor = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes tickets that nobody wants twice.',
  settings: Type.Object({}),
  actions: {
    create: {
      direction: 'target',
      effect: 'once',
      entry: Type.Object({ name: Type.String(), title: Type.String() }),
      async run({ title }, context) {
        if (outside.refuse > 0) {
          outside.refuse--
          throw new AgentError('not now', { code: 'rate_limited', retryable: true, sent: 'no' })
        }
        const write = () => void outside.written.push(`${title} ${context.key}`)
        if (outside.late) {
          outside.late = false
          carryOut = write
          throw new AgentError('connection reset', { retryable: true })
        }
        if (outside.slow > 0) {
          setTimeout(write, outside.slow)
          outside.slow = 0
          throw new AgentError('connection reset', { retryable: true })
        }
        write()
        if (outside.hang) {
          await new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(new Error('stopped'))))
        }
        if (outside.lose) {
          outside.lose = false
          throw new AgentError('connection reset', { retryable: true })
        }
        return { text: title, data: { title }, external: { id: 'T-1', url: 'http://tickets/T-1' } }
      },
      async find({ title }, context) {
        outside.asked++
        if (!outside.patient) context.signal.throwIfAborted()
        if (outside.mute) await new Promise(() => {})
        if (!outside.canTell) throw new AgentError('cannot be asked')
        const found = outside.written.includes(`${title} ${context.key}`)
        carryOut()
        carryOut = () => {}
        return found ? { text: title, data: { title, found: true }, external: { id: 'T-1' } } : null
      },
    },
    check: {
      direction: 'source',
      effect: 'read',
      entry: Type.Object({ name: Type.String() }),
      async run() {
        if (outside.broken) throw new AgentError('broken')
        return { text: 'fine', data: {} }
      },
    },
  },
  notify: {
    effect: 'once',
    entry: Type.Object({ message: Type.Optional(Type.String()) }),
    async run({ message }, context) {
      outside.written.push(`${context.event!.name}: ${message ?? context.event!.message}`)
      return { text: 'told' }
    },
  },
})

let t: TestEngine
beforeEach(async () => {
  Object.assign(outside, FRESH, { written: [] })
  t = await testEngine({ agents: { vendor } })
})
afterEach(() => t.close())

const team = (extra = '') => `
name: "@local/tickets"
version: 1.0.0
phases:
  - { name: make, agent: vendor, action: create, retry: { attempts: 3, backoff: 1ms }, target_entries: [{ name: one, title: First }, { name: two, title: Second }] }
  - { name: check, agent: vendor, action: check, depends_on: [make], sources: [{ name: x }] }
${extra}`

const phasesOf = (runId: string) => runPhases(t.engine.store, runId, id => t.engine.bundle(id)).phases
const pending = () => t.engine.store.reviews.list({ state: 'pending', limit: 10, offset: 0 }).rows

async function until(condition: () => boolean) {
  for (let n = 0; n < 400 && !condition(); n++) await Bun.sleep(5)
  expect(condition()).toBe(true)
}

describe('once entries', () => {
  test('a definite refusal is tried again; each entry is written once, with the same key', async () => {
    outside.refuse = 2
    const run = await t.run(team())
    expect(run.state).toBe('completed')
    expect(outside.written.map(line => line.split(' ')[0])).toEqual(['First', 'Second'])
    expect(t.engine.store.receipts.of(run.run_id, 0)).toMatchObject([
      { entry: 'one', state: 'done', external_id: 'T-1', external_url: 'http://tickets/T-1' },
      { entry: 'two', state: 'done' },
    ])
  })

  test('after a lost reply the other system is asked, and the write is found', async () => {
    outside.lose = true
    const run = await t.run(team())
    expect(run.state).toBe('completed')
    expect(outside.written).toHaveLength(2)
    expect(phasesOf(run.run_id)[0]!.data).toMatchObject({ entries: { one: { found: true }, two: { title: 'Second' } } })
  })

  test('a system that still processes the request is asked a second time before anything is sent again', async () => {
    outside.late = true
    const run = await t.run(team())
    expect(run.state).toBe('completed')
    expect(outside.written.map(line => line.split(' ')[0]).sort()).toEqual(['First', 'Second'])
    expect(phasesOf(run.run_id)[0]!.data).toMatchObject({ entries: { one: { found: true } } })
  })

  test('if the other system cannot tell, a person is asked: retry, skip, complete or fail', async () => {
    for (const [decision, state, after] of [
      ['retry', 'completed', 'completed'],
      ['complete', 'completed', 'completed'],
      ['skip', 'skipped', 'completed'],
      ['fail', 'failed', 'skipped'],
    ] as const) {
      Object.assign(outside, { written: [], lose: true, canTell: false })
      const { run_id } = await t.start(team())
      await until(() => pending().length === 1)
      expect(t.engine.record(run_id)).toMatchObject({ state: 'awaiting_input', reason: 'unknown' })
      expect(pending()[0]).toMatchObject({ kind: 'escalation', reason: 'unknown', entries: '["one"]' })
      await expect(t.engine.decide(pending()[0]!.id, { decision: 'approve', by: 'me' })).rejects.toMatchObject({
        code: 'invalid_request',
      })
      const { id } = pending()[0]!
      await t.engine.decide(id, { decision, by: 'me', values: { n: 1 } })
      await expect(t.engine.decide(id, { decision, by: 'me' })).rejects.toMatchObject({ code: 'invalid_state' })
      await t.engine.ended(run_id)
      expect(phasesOf(run_id).map(phase => phase.state)).toEqual([state, after])
      const keys = outside.written.filter(line => line.startsWith('First'))
      expect(new Set(keys).size).toBe(1)
      expect(keys).toHaveLength(decision === 'retry' ? 2 : 1)
    }
  })

  test('after a time-out the other system is asked, outside the time of the attempt', async () => {
    outside.hang = true
    const run = await t.run(`
name: "@local/slow"
version: 1.0.0
phases:
  - { name: make, agent: vendor, action: create, timeout: 20ms, target_entries: [{ name: one, title: First }] }
`)
    expect(run.state).toBe('completed')
    expect(outside.written).toHaveLength(1)
    expect(phasesOf(run.run_id)[0]!.data).toMatchObject({ found: true })
  })

  test('a cancel ends the question to a system that does not answer, even after a time-out', async () => {
    Object.assign(outside, { hang: true, mute: true })
    const { run_id } = await t.start(`
name: "@local/slow"
version: 1.0.0
phases:
  - { name: make, agent: vendor, action: create, timeout: 20ms, target_entries: [{ name: one, title: First }] }
`)
    await until(() => outside.asked > 0)
    await t.engine.cancel(run_id)
    expect(await within(t.engine.ended(run_id), 'the cancelled run', 5_000)).toMatchObject({ state: 'cancelled' })
    expect(t.engine.store.receipts.of(run_id, 0)).toMatchObject([{ entry: 'one', state: 'unknown' }])
  })

  test('a cancel before the other system has settled leaves the write in doubt', async () => {
    await t.close()
    t = await testEngine({ agents: { vendor }, settle: 60_000 })
    Object.assign(outside, { slow: 600_000, patient: true })
    const { run_id } = await t.start(`
name: "@local/slow"
version: 1.0.0
phases: [{ name: make, agent: vendor, action: create, target_entries: [{ name: one, title: First }] }]
`)
    await until(() => outside.asked > 0)
    await t.engine.cancel(run_id)
    expect(await within(t.engine.ended(run_id), 'the cancelled run', 5_000)).toMatchObject({ state: 'cancelled' })
    expect(t.engine.store.receipts.of(run_id, 0)).toMatchObject([{ entry: 'one', state: 'unknown' }])
  })

  test('an attempt that is not the live one opens no receipt', async () => {
    Object.assign(outside, { lose: true, canTell: false })
    const { run_id } = await t.start(team())
    await until(() => pending().length === 1)
    await t.engine.decide(pending()[0]!.id, { decision: 'retry', by: 'me' })
    await t.engine.ended(run_id)
    const { store } = t.engine
    store.db.run("UPDATE phases SET state = 'running', completed_at = NULL WHERE position = 0")
    const late = { runId: run_id, position: 0, entry: 'late' }
    const moment = { boot: 'this', at: 0 }
    expect(store.receipts.send(late, 1, 0, moment)).toBe(false)
    expect(store.receipts.send(late, 2, 0, moment)).toBe(true)
    expect(store.receipts.send(late, 2, 0, moment)).toBe(false)
  })

  test('after a crash the entry is found or a person is asked; it is never sent again', async () => {
    for (const canTell of [true, false]) {
      Object.assign(outside, { written: [], canTell })
      const first = await testEngine({ agents: { vendor }, home: `${t.home}/${canTell}` })
      const run = await first.start(team())
      // What a kill -9 between the reply and its record leaves: the receipt says `sent`, the phase `running`.
      await first.engine.ended(run.run_id)
      first.engine.store.db.run("UPDATE runs SET state = 'running', completed_at = NULL")
      first.engine.store.db.run("UPDATE phases SET state = 'running', completed_at = NULL WHERE position = 0")
      first.engine.store.db.run("UPDATE phases SET state = 'pending', completed_at = NULL WHERE position = 1")
      first.engine.store.db.run("UPDATE receipts SET state = 'sent', result = NULL WHERE entry = 'two'")
      await first.close()
      const second = await testEngine({ agents: { vendor }, home: `${t.home}/${canTell}` })
      if (canTell) expect((await second.engine.ended(run.run_id)).state).toBe('completed')
      else {
        await until(() => second.engine.record(run.run_id).state === 'awaiting_input')
        expect(why(second.engine.store, run.run_id, id => second.engine.bundle(id)).lines.join('\n')).toContain(
          'may or may not have arrived',
        )
        // A plan names what is known to have arrived; what is in doubt is asked for.
        await second.engine.cancel(run.run_id)
        await second.engine.ended(run.run_id)
        expect(second.engine.planResume(run.run_id)).toMatchObject({
          repeated: [{ phase: 'make' }, { phase: 'check' }],
          writes: [
            { entry: 'one', fate: 'skipped' },
            { entry: 'two', fate: 'asked' },
          ],
        })
      }
      expect(outside.written).toHaveLength(2)
      await second.close()
    }
  })
})

describe('resume', () => {
  test('repeats what did not complete, under the same run id, and writes nothing twice', async () => {
    outside.broken = true
    const failed = await t.run(team())
    expect(failed.state).toBe('failed')
    expect(why(t.engine.store, failed.run_id, id => t.engine.bundle(id))).toMatchObject({
      chain: [{ phase: 'check', error: { message: 'broken' } }],
      written: [{ phase: 'make', entry: 'one', state: 'done' }, { entry: 'two' }],
    })
    outside.broken = false
    expect(t.engine.planResume(failed.run_id)).toMatchObject({
      run_id: failed.run_id,
      kept: [{ phase: 'make', state: 'completed' }],
      repeated: [{ phase: 'check', state: 'failed', whole: false, runs: null }],
      writes: [
        { entry: 'one', fate: 'kept' },
        { entry: 'two', fate: 'kept' },
      ],
    })
    await t.engine.resume(failed.run_id)
    expect(await t.engine.ended(failed.run_id)).toMatchObject({ state: 'completed', attempt: 2, error: null })
    expect(phasesOf(failed.run_id).map(phase => phase.attempt)).toEqual([1, 2])
    await expect(t.engine.resume(failed.run_id)).rejects.toMatchObject({ code: 'invalid_state' })
    await t.engine.resume(failed.run_id, { from: 'make' })
    expect((await t.engine.ended(failed.run_id)).state).toBe('completed')
    expect(phasesOf(failed.run_id).map(phase => phase.attempt)).toEqual([2, 3])
    expect(outside.written).toHaveLength(2)
  })

  test('a write that has no address is named by its id', async () => {
    Object.assign(outside, { broken: true, lose: true })
    const failed = await t.run(team())
    const { lines } = why(t.engine.store, failed.run_id, id => t.engine.bundle(id))
    expect(lines.at(-1)).toBe('Written outside: make/one (T-1); make/two (http://tickets/T-1).')
  })

  test('only the failed items of a map run again', async () => {
    const files = {
      'team.yml': `
name: "@local/each"
version: 1.0.0
phases:
  - { name: each, type: map, items: [a, b, c], key: "{{ item }}", team: ./one, inputs: { v: "{{ item }}" }, on_item_failure: continue, on_failure: continue }
  - { name: check, agent: vendor, action: check, depends_on: [each], sources: [{ name: x }] }
`,
      'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }]
phases:
  - { name: make, agent: vendor, action: create, target_entries: [{ name: t, title: "{{ inputs.v }}" }] }
  - { name: check, agent: vendor, action: check, depends_on: [make], sources: [{ name: x }] }
`,
    }
    outside.broken = true
    const failed = await t.run(files)
    expect(failed.state).toBe('failed')
    const before = phasesOf(failed.run_id)[0]!.sub_runs
    expect(before.map(run => run.state)).toEqual(['failed', 'failed', 'failed'])
    outside.broken = false
    await t.engine.resume(failed.run_id, { from: 'each' })
    expect((await t.engine.ended(failed.run_id)).state).toBe('completed')
    const after = phasesOf(failed.run_id)[0]!.sub_runs
    expect(after).toEqual(before.map(run => ({ ...run, state: 'completed' })))
    expect(outside.written).toHaveLength(3)
  })
})

describe('gates and listeners', () => {
  const gated = `
name: "@local/gated"
version: 1.0.0
phases:
  - { name: down, type: team, team: ./sub }
  - { name: tell, agent: vendor, notify: [on_start, on_escalate, on_complete, on_fail] }
`
  const sub = `
name: "@local/sub"
version: 1.0.0
phases:
  - name: approve
    type: gate
    commands: [{ name: c, run: "true" }]
    review: { prompt: "Publish {{ run.id }}?", reviewers: [any] }
`
  test('a waiting sub-run makes its parents wait; an approval lets all continue; events are delivered', async () => {
    const { run_id } = await t.start({ 'team.yml': gated, 'sub/team.yml': sub })
    await until(() => pending().length === 1)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'awaiting_input', reason: 'review' })
    expect(pending()[0]).toMatchObject({ kind: 'gate', prompt: expect.stringContaining('Publish') })
    await t.engine.decide(pending()[0]!.id, { decision: 'approve', by: 'me', values: { ok: true } })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(outside.written.map(line => line.split(':')[0])).toEqual(['on_start', 'on_escalate', 'on_complete'])
    expect(outside.written[2]).toContain(`@local/gated: run ${run_id} completed`)
    expect(phasesOf(run_id).map(phase => phase.name)).toEqual(['down'])
  })

  test('a rejection fails the gate; cancel ends a wait', async () => {
    const rejected = await t.start({ 'team.yml': sub })
    await until(() => pending().length === 1)
    await t.engine.decide(pending()[0]!.id, { decision: 'reject', by: 'me', comment: 'no' })
    expect(await t.engine.ended(rejected.run_id)).toMatchObject({
      state: 'failed',
      reason: 'rejected',
      error: { message: 'rejected by me: no' },
    })
    const cancelled = await t.start({ 'team.yml': gated, 'sub/team.yml': sub })
    await until(() => pending().length === 1)
    await t.engine.cancel(cancelled.run_id)
    expect((await t.engine.ended(cancelled.run_id)).state).toBe('cancelled')
    expect(pending()).toEqual([])
  })
})
