// A write whose reply was lost is in doubt, and stays so until something proves it away: the other system shows it, or
// still does not when the settling time is over. Nobody sends it again before.

import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentError } from '../../lib/agent/cadre.ts'
import type { JsonObject } from '../../lib/json.ts'
import { drivenClock } from '../../lib/testing/driven-clock.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { lateVendor } from '../support/late-vendor.ts'
import { act, scripted, team } from '../support/scripted.ts'

const engines: TestEngine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

async function begin(options: Parameters<typeof testEngine>[0] & { settles?: string } = {}) {
  const { settles, ...more } = options
  const clock = drivenClock()
  const vendor = lateVendor(clock, settles === undefined ? {} : { settles })
  const t = await testEngine({
    bootClock: clock,
    settle: null,
    ...more,
    agents: { vendor: vendor.agent, ...more.agents },
  })
  engines.push(t)
  return { t, clock, vendor }
}

const make = (more: JsonObject = {}) => ({
  name: 'make',
  agent: 'vendor',
  action: 'create',
  target_entries: [{ name: 'one', title: 'First' }],
  ...more,
})
const RETRY = { retry: { attempts: 2, backoff: '1ms' } }
const receipts = ({ engine }: TestEngine, run_id: string) => engine.store.receipts.of(run_id, 0)
const phaseOf = ({ engine }: TestEngine, run_id: string, n = 0) => engine.phases(run_id).phases[n]!

async function reached(condition: () => boolean) {
  for (let n = 0; n < 1_000 && !condition(); n++) await Bun.sleep(2)
  expect(condition()).toBe(true)
}

describe('a write that lands after the answer', () => {
  for (const lands of [100, 4_000, 30_000, 59_000]) {
    test(`${lands} ms later is found, and is not sent again`, async () => {
      const { t, clock, vendor } = await begin()
      vendor.fates = [{ reply: 'lost', lands }]
      const { run_id } = await t.start(team([make(RETRY)]))
      expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
      expect(vendor.tickets.map(({ id }) => id)).toEqual(['T-1'])
      expect(receipts(t, run_id)).toMatchObject([{ state: 'done', external_id: 'T-1' }])
    })
  }

  test('is found although the search lags some looks', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 2_000, hidden: 3 }]
    const { run_id } = await t.start(team([make(RETRY)]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(vendor.sends).toBe(1)
  })

  test('after the settling time is found by the look before it would be sent again', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 90_000 }]
    const { run_id } = await t.start(team([make()]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('failed')
    expect(clock.now()).toBe(60_000)
    expect(receipts(t, run_id)).toMatchObject([{ state: 'presumed', attempt: 1, presumed_at: expect.any(Number) }])
    await clock.advance(3_600_000)
    await t.engine.resume(run_id)
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(vendor.tickets.map(({ id }) => id)).toEqual(['T-1'])
  })

  test('never is sent again after the settling time, and not before', async () => {
    const { t, clock, vendor } = await begin({ settles: '5m' })
    vendor.fates = [{ reply: 'lost', lands: null }]
    const { run_id } = await t.start(team([make(RETRY)]))
    await reached(() => vendor.looks > 0)
    await clock.advance(299_000)
    expect(vendor.sends).toBe(1)
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(clock.now()).toBe(300_000)
    expect(vendor.tickets.map(({ id }) => id)).toEqual(['T-2'])
  })

  test('the setting replaces the time of every action', async () => {
    const { t, clock, vendor } = await begin({ settles: '5m', settle: 2_000 })
    vendor.fates = [{ reply: 'lost', lands: null }]
    const { run_id } = await t.start(team([make(RETRY)]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(clock.now()).toBe(2_000)
  })

  test('a refusal of what is sent again does not make the first one certain', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 200_000 }, { reply: 'refused' }]
    const { run_id } = await t.start(team([make(RETRY)]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('failed')
    expect(receipts(t, run_id)).toMatchObject([{ state: 'presumed' }])
    await clock.advance(200_000)
    await t.engine.resume(run_id)
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(vendor.tickets.map(({ id }) => id)).toEqual(['T-1'])
  })

  test('a look-up that sees every write at once is believed at once', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: null }]
    const { run_id } = await t.start(team([make({ action: 'sure', ...RETRY })]))
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect([clock.now(), vendor.looks, vendor.sends]).toEqual([0, 1, 2])
  })

  test('two that carry the mark are both kept, whatever order the vendor lists them in', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [
      { reply: 'lost', lands: 70_000 },
      { reply: 'lost', lands: 20_000 },
    ]
    const { run_id } = await t.start(team([make({ retry: { attempts: 3, backoff: '1ms' } })]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(vendor.tickets).toHaveLength(1)
    await clock.advance(61_000)
    await t.engine.untilQuiet()
    const [receipt] = receipts(t, run_id)
    const ids = [receipt!.external_id, ...JSON.parse(receipt!.copies ?? '[]').map(({ id }: { id: string }) => id)]
    expect(ids.toSorted()).toEqual(vendor.tickets.map(({ id }) => id).toSorted())
  })
})

describe('while it settles', () => {
  test('the phase is running, says what it waits for, and gives its slot back', async () => {
    const { t, clock, vendor } = await begin({ slots: 1 })
    vendor.fates = [{ reply: 'lost', lands: 30_000 }]
    const { run_id } = await t.start(team([make({ target_entries: [1, 2].map(n => ({ name: `e${n}`, title: 'x' })) })]))
    await reached(() => t.engine.load.slots === 0)
    const { state, waiting } = phaseOf(t, run_id)
    expect([state, t.engine.record(run_id).state]).toEqual(['running', 'running'])
    expect(waiting).toEqual({ reason: 'asks vendor whether e1 was written', until: expect.any(Number) })
    expect(waiting!.until! - Date.now()).toBeGreaterThan(50_000)
    expect((await t.run(team([make()]))).state).toBe('completed')
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect([t.engine.load.slots, vendor.sends]).toEqual([0, 3])
  })

  test('it goes on only with a slot', async () => {
    const done = Promise.withResolvers<void>()
    const { agents } = scripted({ hold: () => done.promise })
    const { t, clock, vendor } = await begin({ slots: 1, agents })
    vendor.fates = [{ reply: 'lost', lands: 500 }]
    const { run_id } = await t.start(team([make({ target_entries: [1, 2].map(n => ({ name: `e${n}`, title: 'x' })) })]))
    await reached(() => t.engine.load.slots === 0)
    const other = await t.start(team([act('p', 'hold')]))
    await reached(() => t.engine.load.slots === 1)
    await clock.advance(60_000)
    expect([vendor.sends, t.engine.load.slots]).toEqual([1, 1])
    done.resolve()
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect((await t.engine.ended(other.run_id)).state).toBe('completed')
    expect([vendor.sends, t.engine.load.slots]).toEqual([2, 0])
  })

  test('it keeps its place of the concurrency of its team and of a map', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 30_000 }]
    const one = team([make()], { name: '@local/one', concurrency: 1 })
    const each = { name: 'each', type: 'map', items: ['a', 'b'], key: '{{ item }}', team: './one', concurrency: 1 }
    const { run_id } = await t.start({ 'team.yml': team([each]), 'one/team.yml': one })
    await reached(() => t.engine.load.slots === 0)
    await clock.advance(5_000)
    expect(vendor.sends).toBe(1)
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect(vendor.sends).toBe(2)

    vendor.fates = [{ reply: 'lost', lands: 30_000 }]
    const between = team([{ name: 'down', type: 'team', team: '../two' }])
    const deep = await t.start({ 'team.yml': team([each]), 'one/team.yml': between, 'two/team.yml': one })
    await reached(() => t.engine.load.slots === 0)
    await clock.advance(5_000)
    expect(vendor.sends).toBe(3)
    expect((await clock.until(t.engine.ended(deep.run_id))).state).toBe('completed')
    expect(vendor.sends).toBe(4)

    vendor.fates = [{ reply: 'lost', lands: 30_000 }]
    const two = await t.start(team([make(), make({ name: 'other' })], { concurrency: 1 }))
    await reached(() => t.engine.load.slots === 0)
    await clock.advance(5_000)
    expect(vendor.sends).toBe(5)
    expect((await clock.until(t.engine.ended(two.run_id))).state).toBe('completed')
  })

  test('it counts in no timeout: neither of the attempt, nor of the team, nor of the phase above', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 30_000 }]
    const sub = team([make({ timeout: '300ms' })], { name: '@local/sub', timeout: '300ms' })
    const above = team([{ name: 'below', type: 'team', team: './sub', timeout: '300ms' }], { timeout: '300ms' })
    const { run_id } = await t.start({ 'team.yml': above, 'sub/team.yml': sub })
    await reached(() => vendor.looks > 0 && t.engine.load.slots === 0)
    await Bun.sleep(700)
    expect(t.engine.record(run_id).state).toBe('running')
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
  })

  test('what is sent again after it has the time that is left', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [
      { reply: 'lost', lands: null },
      { reply: 'hung', lands: null },
    ]
    const { run_id } = await t.start(team([make({ ...RETRY, timeout: '300ms' })]))
    await clock.until(reached(() => vendor.sends === 2))
    await reached(() => receipts(t, run_id)[0]?.state === 'unknown')
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('failed')
  })

  test('a cancel ends it and keeps the receipt in doubt; a resume asks on', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: 50_000 }]
    const { run_id } = await t.start(team([make(RETRY)]))
    await reached(() => t.engine.load.slots === 0)
    await clock.advance(10_000)
    await t.engine.cancel(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('cancelled')
    expect(receipts(t, run_id)).toMatchObject([{ state: 'unknown' }])
    await t.engine.resume(run_id)
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect([vendor.sends, clock.now()]).toEqual([1, expect.any(Number)])
    expect(clock.now()).toBeLessThanOrEqual(60_000)
  })
})

describe('over a restart', () => {
  for (const [what, isSame] of [
    ['in the same boot the time down counts', true],
    ['after another boot the settling time begins anew', false],
  ] as const) {
    test(`${what}, and the wall clock does not`, async () => {
      const home = folder()
      const { t, clock, vendor } = await begin({ home })
      vendor.fates = [{ reply: 'lost', lands: null }]
      const { run_id } = await t.start(team([make(RETRY)]))
      await reached(() => t.engine.load.slots === 0)
      await clock.advance(20_000)
      await engines.pop()!.close()
      await clock.advance(25_000)
      const bootClock = isSame ? clock : drivenClock(clock.now())
      const next = await testEngine({
        home,
        bootClock,
        settle: null,
        agents: { vendor: vendor.agent },
        now: () => Date.now() + 86_400_000,
      })
      engines.push(next)
      expect((await bootClock.until(next.engine.ended(run_id))).state).toBe('completed')
      expect([bootClock.now(), vendor.sends]).toEqual([isSame ? 60_000 : 105_000, 2])
    })
  }

  test('what was being sent when the process was killed is in doubt', async () => {
    const home = folder()
    const { t, clock, vendor } = await begin({ home })
    const { run_id } = await t.start(team([make(RETRY)]))
    await t.engine.ended(run_id)
    // What a kill -9 between the request and its reply leaves.
    t.db.run("UPDATE runs SET state = 'running', completed_at = NULL")
    t.db.run("UPDATE phases SET state = 'running', completed_at = NULL, data = NULL")
    t.db.run("UPDATE receipts SET state = 'sent', result = NULL, external_id = NULL")
    vendor.tickets[0]!.hidden = 3
    await engines.pop()!.close()
    const next = await testEngine({ home, bootClock: clock, settle: null, agents: { vendor: vendor.agent } })
    engines.push(next)
    expect((await clock.until(next.engine.ended(run_id))).state).toBe('completed')
    expect([vendor.sends, vendor.tickets.length]).toEqual([1, 1])
  })
})

describe('who cannot be asked', () => {
  const away = () => new AgentError('HTTP 503', { retryable: true })

  test('for now is asked again until the settling time is over, and then a person is, whatever on_failure says', async () => {
    const { t, clock, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: null }]
    vendor.faults = Array.from({ length: 99 }, away)
    const { run_id } = await t.start(team([make({ on_failure: 'continue' })]))
    await reached(() => t.engine.load.slots === 0)
    await clock.advance(59_000)
    expect(t.engine.record(run_id).state).toBe('running')
    await clock.advance(2_000)
    await reached(() => t.engine.record(run_id).state === 'awaiting_input')
    expect(receipts(t, run_id)).toMatchObject([{ state: 'unknown' }])
    expect(vendor.sends).toBe(1)
  })

  test('at least three times, however short the settling time is', async () => {
    const { t, clock, vendor } = await begin({ settle: 1 })
    vendor.fates = [{ reply: 'lost', lands: 0 }]
    vendor.faults = [away(), away()]
    const { run_id } = await t.start(team([make()]))
    expect((await clock.until(t.engine.ended(run_id))).state).toBe('completed')
    expect([vendor.sends, vendor.looks]).toEqual([1, 3])
  })

  test('at all leaves a person, whatever on_failure says; the person is proof', async () => {
    const { t, vendor } = await begin()
    vendor.fates = [{ reply: 'lost', lands: null }]
    const { run_id } = await t.start(team([make({ action: 'blind', on_failure: 'continue' })]))
    await reached(() => t.engine.record(run_id).state === 'awaiting_input')
    const [review] = t.engine.store.reviews.list({ state: 'pending', limit: 1, offset: 0 }).rows
    await t.engine.decide(review!.id, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(vendor.tickets.map(({ id }) => id)).toEqual(['T-2'])
  })
})

test('what needs no receipt pays nothing: not one statement about receipts or looks', async () => {
  const { agents } = scripted({ read: () => 1 })
  const { t } = await begin({ agents })
  const asked: string[] = []
  const query = t.db.query.bind(t.db)
  t.db.query = ((sql: string) => {
    if (/receipts|looks/.test(sql)) asked.push(sql)
    return query(sql)
  }) as typeof t.db.query
  const tell = { name: 'tell', agent: 'vendor', notify: ['on_complete'] }
  expect((await t.run(team([act('p', 'read'), tell]))).state).toBe('completed')
  await t.engine.untilQuiet()
  expect(asked).toEqual([])
  expect((await t.run(team([make()]))).state).toBe('completed')
  expect(asked.filter(sql => sql.includes('looks'))).toEqual([])
  expect(asked.length).toBeGreaterThan(0)
})

test('only the table of receipts removes one', () => {
  const lib = join(import.meta.dir, '../../lib')
  const files = readdirSync(lib, { recursive: true, withFileTypes: true }).filter(
    entry => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.parentPath.includes('/hub'),
  )
  const removing = files.filter(({ parentPath, name }) =>
    /DELETE FROM receipts|REPLACE INTO receipts/i.test(readFileSync(join(parentPath, name), 'utf8')),
  )
  expect(removing.map(({ name }) => name)).toEqual(['receipts.ts'])
})

test('what a process, a gate or exec ended with is no proof: a once command that fails asks a person', async () => {
  const { t } = await begin()
  for (const status of [1, 255]) {
    const command = { name: 'c', run: `exit ${status}`, effect: 'once' }
    for (const phase of [
      { name: 'p', agent: 'exec', on_failure: 'continue', commands: [command] },
      { name: 'p', type: 'gate', on_failure: 'continue', commands: [command] },
    ]) {
      const { run_id } = await t.start(team([phase]))
      await reached(() => t.engine.record(run_id).state === 'awaiting_input')
      expect(t.engine.record(run_id).reason).toBe('unknown')
      await t.engine.cancel(run_id)
      await t.engine.ended(run_id)
    }
  }
})

test('the question about one command of several says what becomes of the others', async () => {
  const { t } = await begin()
  const once = (name: string, run: string) => ({ name, run, effect: 'once' })
  const commands = [{ name: 'build', run: ':' }, once('a', ':'), once('b', 'exit 3'), once('c', ':')]
  const { run_id } = await t.start(team([{ name: 'p', agent: 'exec', commands }]))
  await reached(() => t.engine.record(run_id).state === 'awaiting_input')
  const [review] = t.engine.store.reviews.list({ state: 'pending', limit: 1, offset: 0 }).rows
  expect(review!.prompt).toBe(
    'what phase p writes may have been written: command b exited with code 3 (retry runs a again, complete leaves out c)',
  )
  await t.engine.cancel(run_id)
  await t.engine.ended(run_id)
})
