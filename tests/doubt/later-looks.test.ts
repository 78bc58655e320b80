// Where an entry was sent again because its absence was concluded by time, both may exist in the end. The other system is
// asked at the end of the run and one settling time later, and `why`, `show` and messages say what exists twice.

import { afterEach, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/cadre.ts'
import type { JsonObject } from '../../lib/json.ts'
import { why } from '../../lib/run/engine.ts'
import { drivenClock } from '../../lib/testing/driven-clock.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { lateVendor } from '../support/late-vendor.ts'
import { team } from '../support/scripted.ts'

const engines: TestEngine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

async function begin(list = true) {
  const home = folder()
  const clock = drivenClock()
  const vendor = lateVendor(clock, { list })
  const open = async (bootClock = clock) => {
    const t = await testEngine({ home, bootClock, settle: null, agents: { vendor: vendor.agent } })
    engines.push(t)
    return t
  }
  const again = async (bootClock = clock) => {
    await engines.pop()!.close()
    return open(bootClock)
  }
  return { t: await open(), clock, vendor, again }
}

const make = (more: JsonObject = {}) => ({
  name: 'make',
  agent: 'vendor',
  action: 'create',
  retry: { attempts: 2, backoff: '1ms' },
  target_entries: [{ name: 'one', title: 'First' }],
  ...more,
})
const writtenOf = ({ engine }: TestEngine, run_id: string) =>
  why(engine.store, run_id, id => engine.bundle(id)).written[0]!
const saidOf = ({ engine }: TestEngine, run_id: string) =>
  why(engine.store, run_id, id => engine.bundle(id)).lines.join('\n')
const looksLeft = ({ db }: TestEngine) =>
  db.query<{ n: number }, []>('SELECT count(*) AS n FROM looks WHERE confirmed = 0').get()!.n

for (const list of [true, false]) {
  test(`a first write that lands after the second is told, with both links, if find returns ${list ? 'all' : 'one'}`, async () => {
    const { t, clock, vendor } = await begin(list)
    vendor.fates = [{ reply: 'lost', lands: null }]
    const { run_id } = await t.start(team([make()]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    await t.engine.untilQuiet()
    expect(writtenOf(t, run_id)).toMatchObject({ state: 'done', id: 'T-2', unconfirmed: true })
    expect(saidOf(t, run_id)).toContain('not yet confirmed')
    // Only now, however slow this machine is, the first one lands.
    vendor.tickets.push({ ...vendor.tickets[0]!, id: 'T-1' })
    // The vendor lists the later one first, or last.
    if (!list) vendor.tickets.sort((a, b) => b.id.localeCompare(a.id))
    await clock.advance(40_000)
    if (!list) vendor.tickets.sort((a, b) => a.id.localeCompare(b.id))
    await clock.advance(21_000)
    await t.engine.untilQuiet()
    expect(writtenOf(t, run_id)).toMatchObject({
      id: 'T-2',
      url: 'http://tickets/T-2',
      copies: [{ id: 'T-1', url: 'http://tickets/T-1' }],
    })
    expect(saidOf(t, run_id)).toContain('make/one (http://tickets/T-2), which arrived twice: also http://tickets/T-1')
    expect([looksLeft(t), vendor.tickets.length]).toEqual([0, 2])
  })
}

test('what exists once is confirmed one settling time after the end, also by the next process', async () => {
  const { t, clock, vendor, again } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make()]))
  expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
  await t.engine.untilQuiet()
  expect(saidOf(t, run_id)).toContain('not yet confirmed')
  const next = await again()
  await clock.advance(59_000)
  expect(writtenOf(next, run_id).unconfirmed).toBe(true)
  await clock.advance(2_000)
  await next.engine.untilQuiet()
  expect(writtenOf(next, run_id)).toEqual(expect.not.objectContaining({ unconfirmed: true }))
  expect(saidOf(next, run_id)).not.toContain('confirmed')
  await clock.advance(60_000 * (2 + 4 + 8) + 1_000)
  await next.engine.untilQuiet()
  expect(next.db.query('SELECT * FROM looks').all()).toEqual([])
})

test('a write that is presumed absent and lands later is found, although nothing was sent again', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: 100_000 }]
  const { run_id } = await t.start(team([make({ retry: { attempts: 1, backoff: '1ms' } })]))
  expect((await clock.until(t.engine.ended(run_id))).state).toBe('failed')
  expect(saidOf(t, run_id)).toContain('make/one, which does not seem to have arrived')
  await clock.advance(61_000)
  await t.engine.untilQuiet()
  expect(writtenOf(t, run_id)).toMatchObject({ state: 'done', id: 'T-1' })
  await t.engine.resume(run_id)
  expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
  expect(vendor.sends).toBe(1)
})

test('a person may ask before it is due, also about what a cancel left in doubt', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: 100_000 }]
  const { run_id } = await t.start(team([make()]))
  while (t.engine.load.slots > 0 || vendor.looks === 0) await Bun.sleep(2)
  await t.engine.cancel(run_id)
  await t.engine.ended(run_id)
  await t.engine.askAgain(run_id)
  expect(writtenOf(t, run_id).state).toBe('unknown')
  await clock.advance(70_000)
  await t.engine.askAgain(run_id)
  expect(writtenOf(t, run_id).state).toBe('presumed')
  await clock.advance(30_000)
  await t.engine.askAgain(run_id)
  expect(writtenOf(t, run_id)).toMatchObject({ state: 'done', id: 'T-1' })
})

test('a look that fails for now is repeated', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: 100_000 }]
  const { run_id } = await t.start(team([make()]))
  expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
  await t.engine.untilQuiet()
  vendor.faults = [1, 2].map(() => new AgentError('HTTP 503', { retryable: true }))
  await clock.advance(600_000)
  await t.engine.untilQuiet()
  expect(writtenOf(t, run_id).copies).toEqual([{ id: 'T-1', url: 'http://tickets/T-1' }])
})

test('a look that failed for now and then succeeded is followed by the next one, and not before its time', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make()]))
  await clock.until(t.engine.ended(run_id))
  await t.engine.untilQuiet()
  await clock.advance(61_000)
  vendor.faults = [new AgentError('HTTP 503', { retryable: true })]
  await clock.advance(121_000)
  const before = vendor.looks
  await Promise.race([clock.advance(180_000), Bun.sleep(3_000)])
  expect(vendor.looks - before).toBe(1)
}, 30_000)

test('after another boot what was sent again is looked for as before', async () => {
  const { t, clock, vendor, again } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make()]))
  await clock.until(t.engine.ended(run_id))
  await t.engine.untilQuiet()
  const booted = drivenClock()
  const next = await again(booted)
  vendor.tickets.push({ ...vendor.tickets[0]!, id: 'T-1' })
  await booted.advance(61_000)
  await next.engine.untilQuiet()
  expect(writtenOf(next, run_id).copies).toEqual([{ id: 'T-1', url: 'http://tickets/T-1' }])
})

test('a person who asks confirms what no look could', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make()]))
  await clock.until(t.engine.ended(run_id))
  await t.engine.untilQuiet()
  vendor.faults = [1, 2].map(() => new AgentError('HTTP 401'))
  await clock.advance(3_600_000)
  await t.engine.untilQuiet()
  expect(vendor.faults).toHaveLength(1)
  const [unasked] = await t.engine.askAgain(run_id)
  expect(unasked).toMatchObject({ runId: run_id, entry: 'one', reason: 'HTTP 401' })
  expect(saidOf(t, run_id)).toContain('not yet confirmed')
  expect(await t.engine.askAgain(run_id)).toEqual([])
  expect(saidOf(t, run_id)).not.toContain('confirmed')
})

test('a person who asks in vain spends none of the looks, and brings none forward', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make()]))
  await clock.until(t.engine.ended(run_id))
  await t.engine.untilQuiet()
  await clock.advance(30_000)
  vendor.faults = [new AgentError('HTTP 401')]
  await t.engine.askAgain(run_id)
  await t.engine.askAgain(run_id)
  expect(writtenOf(t, run_id).unconfirmed).toBe(true)
  await clock.advance(31_000)
  await t.engine.untilQuiet()
  expect(writtenOf(t, run_id)).toEqual(expect.not.objectContaining({ unconfirmed: true }))
})

test('what a process that was killed had sent can be asked for after a cancel', async () => {
  const { t, clock, vendor, again } = await begin()
  const { run_id } = await t.start(team([make()]))
  await t.engine.ended(run_id)
  // What a kill -9 between the request and its reply leaves.
  t.db.run("UPDATE runs SET state = 'running', completed_at = NULL")
  t.db.run("UPDATE phases SET state = 'running', completed_at = NULL, data = NULL")
  t.db.run("UPDATE receipts SET state = 'sent', result = NULL, external_id = NULL, external_url = NULL")
  vendor.tickets[0]!.hidden = 1
  const next = await again()
  while (vendor.looks === 0) await Bun.sleep(2)
  await next.engine.cancel(run_id)
  await next.engine.ended(run_id)
  expect(writtenOf(next, run_id).state).toBe('unknown')
  await clock.advance(100_000)
  await next.engine.askAgain(run_id)
  expect(writtenOf(next, run_id)).toMatchObject({ state: 'done', id: 'T-1' })
})

test('the message of the end says what exists twice by then', async () => {
  const { t, clock, vendor } = await begin()
  const told: string[] = []
  vendor.told = message => void told.push(message)
  vendor.fates = [{ reply: 'lost', lands: 60_500 }, { lands: 0 }, { reply: 'lost', lands: 1_500 }]
  const phases = [
    make(),
    make({ name: 'later', target_entries: [{ name: 'two', title: 'Second' }], depends_on: ['make'] }),
    { name: 'tell', agent: 'vendor', notify: ['on_complete'] },
    { name: 'own', agent: 'vendor', notify: { on_complete: { message: 'All done.' } } },
  ]
  const { run_id } = await t.start(team(phases))
  expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
  const twice = 'make/one (http://tickets/T-2) arrived twice: also http://tickets/T-1'
  expect(told).toEqual([expect.stringMatching(/completed\n/), `All done.\n${twice}`])
  expect(told[0]).toEndWith(`\n${twice}`)
})

test('entries that may hold secrets are not readable in the database', async () => {
  const { t, clock, vendor } = await begin()
  vendor.fates = [{ reply: 'lost', lands: null }]
  const { run_id } = await t.start(team([make({ target_entries: [{ name: 'one', title: 'hush-hush' }] })]))
  await clock.until(t.engine.ended(run_id))
  const [row] = t.db.query<{ call: Uint8Array }, []>('SELECT call FROM looks').all()
  expect(Buffer.from(row!.call).toString('latin1')).not.toContain('hush-hush')
})
