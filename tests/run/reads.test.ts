// A phase that fails while it only reads has written nothing: it fails, nobody is asked, and it may be tried again.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { type FakeVendor, fakeVendor, halfReply, refusal } from '../../lib/testing/fake-vendor.ts'
import { testEngine } from '../support/engine.ts'
import { type OnePhase, outcomeOf } from '../support/outcome.ts'

let vendor: FakeVendor
beforeEach(() => {
  vendor = fakeVendor({
    'GET /items/:id': () => ({ id: 1 }),
    'POST /search': () => ({ items: [] }),
    'POST /notes': () => ({ id: 7 }),
  })
})
afterEach(() => vendor[Symbol.dispose]())

/** Reads by GET and by POST, then writes; it has no `find`, so that a doubt always asks a person. */
const notes = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Adds notes.',
  settings: Type.Object({ base_url: Type.String() }),
  target: {
    effect: 'once',
    entry: Type.Object({ name: Type.String(), trigger: Type.Optional(Type.Boolean()) }),
    async run({ trigger }, context) {
      const { base_url } = context.settings
      const effect = trigger ? { effect: 'once' as const } : {}
      const item = await context.fetch(`${base_url}/items/1`, { attempts: 1, ...effect })
      if (!item.ok) throw new AgentError('get item 1', { code: 'vendor_error', sent: 'unknown' })
      await item.json()
      const found = await context.fetch(`${base_url}/search`, { method: 'POST', effect: 'read', attempts: 1 })
      if (!found.ok) throw new AgentError('search', { code: 'vendor_error', retryable: true })
      const reply = await context.fetch(`${base_url}/notes`, { method: 'POST' })
      if (!reply.ok) throw new AgentError('add a note', { code: 'vendor_error', sent: 'unknown' })
      return { text: 'added' }
    },
  },
  notify: {
    effect: 'once',
    entry: Type.Object({}),
    async run(_, context) {
      const reply = await context.fetch(`${context.settings.base_url}/items/1`, { attempts: 1 })
      if (!reply.ok) throw new AgentError('get item 1', { code: 'vendor_error', sent: 'unknown' })
      return { text: 'told' }
    },
  },
})

const phase = (entry: object = {}): OnePhase => ({
  agent: notes,
  name: 'notes',
  settings: { base_url: vendor.url },
  phase: { target_entries: [{ name: 'note', ...entry }] },
})
const writes = () => vendor.seen.filter(({ path }) => path === '/notes')

describe('a once entry', () => {
  test.each([
    ['GET', /^GET/, () => refusal(500)],
    ['GET whose reply is cut off', /^GET/, halfReply],
    ['POST that only searches', /search$/, () => refusal(503)],
  ])('whose %s fails has failed, and asks nobody', async (_, request, answer) => {
    vendor.fail(request, answer, { times: 9 })
    expect(await outcomeOf(phase())).toMatchObject({ state: 'failed' })
    expect(writes()).toEqual([])
  })

  test('whose read fails once is written by the next attempt', async () => {
    vendor.fail(/search$/, () => refusal(503))
    const { phase: fields, ...rest } = phase()
    const retry = { attempts: 3, backoff: '1ms' }
    expect(await outcomeOf({ ...rest, phase: { ...fields, retry } })).toMatchObject({ state: 'completed' })
    expect(writes()).toHaveLength(1)
  })

  test.each([
    ['a write', /notes$/, {}],
    ['a GET that starts something', /^GET/, { trigger: true }],
  ])('is in doubt after %s, and a person is asked', async (_, request, entry) => {
    vendor.fail(request, () => refusal(500), { times: 9 })
    expect(await outcomeOf(phase(entry))).toMatchObject({ state: 'awaiting_input' })
  })
})

test('a listener that only read was certainly not delivered', async () => {
  vendor.fail(/^GET/, () => refusal(500), { times: 9 })
  const t = await testEngine({ agents: { notes }, settings: { notes: { base_url: vendor.url } } })
  try {
    const run = await t.run(`
name: "@local/told"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: end, agent: notes, notify: [on_complete] }`)
    expect(t.engine.store.deliveries.of(run.run_id)).toMatchObject([{ state: 'failed' }])
  } finally {
    await t.close()
  }
})
