// A slot while a run of its trigger has not ended, and how many may start within a time.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { DAY, HOUR, MINUTE, triggerHome } from '../support/triggers.ts'

const HOLD = { inputs: { hold: true } }

test('`skip` names the run that holds, and whom it waits for since when', async () => {
  await using t = await triggerHome()
  await t.add(HOLD)
  await t.later(5 * MINUTE)
  const [{ id }] = (await t.asked()) as [{ id: string }]
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 started', '23T00:10 skipped overlap'])
  const [first, second] = t.firings()
  const { created_at } = t.daemon.engine.store.reviews.get(id)!
  const since = new Date(created_at).toISOString()
  expect(second!.detail).toBe(`run ${first!.run_id} has not ended: review ${id} asks local:ada since ${since}`)
  expect(second!.run_id).toBeNull()
  await t.answer()
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:15 started')
})

test('`queue` starts the newest of those that wait when the run before ends', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'queue' })
  for (let n = 0; n < 4; n++) await t.later(5 * MINUTE)
  const superseded = ['23T00:05 started', '23T00:10 skipped superseded', '23T00:15 skipped superseded']
  expect(t.rows()).toEqual([...superseded, '23T00:20 waiting overlap'])
  expect(t.running()).toBe(1)
  await t.look()
  expect(t.runs()).toHaveLength(1)
  await t.answer()
  await t.later(MINUTE)
  expect(t.rows()).toEqual([...superseded, '23T00:20 started'])
  expect(t.firings()[3]).toMatchObject({ late_ms: 90_000, reason: null, detail: null })
  expect(t.runs()).toHaveLength(2)
})

test('`queue_max` is how many wait, and they start one after the other', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'queue', queue_max: 2 })
  for (let n = 0; n < 4; n++) await t.later(5 * MINUTE)
  const states = () => t.rows().map(row => row.split(' ').slice(1).join(' '))
  expect(states()).toEqual(['started', 'skipped superseded', 'waiting overlap', 'waiting overlap'])
  await t.answer()
  await t.look()
  expect(states()).toEqual(['started', 'skipped superseded', 'started', 'waiting overlap'])
  await t.look()
  expect(t.running()).toBe(1)
  await t.answer()
  await t.look()
  expect(states()).toEqual(['started', 'skipped superseded', 'started', 'started'])
})

test('a queue of what is caught up holds `max`, and the runs follow each other', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, cron: '0 * * * *', overlap: 'queue', catch_up: 'all', max: 3 })
  await t.later(10 * HOUR)
  const missed = '23T01:00..23T07:00 x7 skipped missed'
  expect(t.rows()).toEqual([missed, '23T08:00 started', '23T09:00 waiting overlap', '23T10:00 waiting overlap'])
  for (let n = 0; n < 2; n++) {
    await t.answer()
    await t.look()
    expect(t.running()).toBe(1)
  }
  expect(t.rows()).toEqual([missed, '23T08:00 started', '23T09:00 started', '23T10:00 started'])
})

test('`cancel_running` cancels the run before, and starts when that has ended', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'cancel_running' })
  await t.later(5 * MINUTE)
  await t.asked()
  for (let n = 2; n <= 4; n++) {
    await t.later(5 * MINUTE)
    // Never two at once.
    await until(async () => {
      await t.look()
      expect(t.running()).toBeLessThanOrEqual(1)
      return t.runs().length === n
    }, `run ${n}`)
    await t.asked()
  }
  expect(t.rows()).toEqual(['23T00:05 started', '23T00:10 started', '23T00:15 started', '23T00:20 started'])
  expect(t.runs().map(({ state }) => state)).toEqual(['cancelled', 'cancelled', 'cancelled', 'awaiting_input'])
})

test('a run that a kill kept from being cancelled is cancelled by the next look', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'queue' })
  await t.later(5 * MINUTE)
  await t.asked()
  await t.later(5 * MINUTE)
  // As if the process had died between the firing and the cancel.
  t.daemon.db.run(`UPDATE triggers SET spec = json_set(spec, '$.overlap', 'cancel_running')`)
  await until(async () => {
    await t.look()
    return t.rows()[1] === '23T00:10 started'
  }, 'the second run')
  expect(t.runs()[0]!.state).toBe('cancelled')
})

test('`allow` starts beside the others', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'allow' })
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  await t.asked(3)
  expect(t.running()).toBe(3)
  expect(t.rows().every(row => row.endsWith(' started'))).toBe(true)
})

test('runs of other triggers and of people hold nothing', async () => {
  await using t = await triggerHome()
  await t.add(HOLD)
  await t.add({ ...HOLD, name: 'other' })
  await t.later(5 * MINUTE)
  expect([...t.rows(), ...t.rows('other')]).toEqual(['23T00:05 started', '23T00:05 started'])
})

for (const overlap of ['skip', 'allow', 'queue'] as const) {
  test(`\`at_most\` lets firings wait until the window allows, the oldest first, with \`${overlap}\``, async () => {
    await using t = await triggerHome()
    await t.add({ cron: '*/10 * * * *', at_most: { count: 2, per: '1h' }, overlap })
    for (let n = 0; n < 6; n++) {
      await t.later(10 * MINUTE)
      await t.ended()
    }
    const [started, waits] = [['23T00:10 started', '23T00:20 started'], 'waiting limit']
    const later = ['23T00:30', '23T00:40', '23T00:50', '23T01:00'].map(slot => `${slot} ${waits}`)
    expect(t.rows()).toEqual([...started, ...later])
    expect(t.firings()[2]!.detail).toBe('2 started within 1h')
    // At 01:10:30 the first start is an hour ago, and the oldest waits before the slot of that time.
    await t.later(10 * MINUTE)
    await t.ended()
    await t.look()
    expect(t.rows()).toEqual([...started, '23T00:30 started', ...later.slice(1), `23T01:10 ${waits}`])
    expect(t.firings()[2]!.late_ms).toBe(40 * MINUTE + 30_000)
    for (let n = 0; n < 12; n++) {
      await t.later(10 * MINUTE)
      await t.ended()
    }
    const starts = t.daemon.db
      .query<{ at: number; started_at: number }, []>(
        'SELECT at, started_at FROM firings WHERE started_at IS NOT NULL ORDER BY started_at, seq',
      )
      .all()
    expect(starts.map(({ at }) => at)).toEqual(starts.map(({ at }) => at).sort((one, other) => one - other))
    for (const { started_at } of starts) {
      const within = starts.filter(other => other.started_at > started_at - HOUR && other.started_at <= started_at)
      expect(within.length).toBeLessThanOrEqual(2)
    }
    expect(starts.length).toBeGreaterThanOrEqual(6)
  })
}

test('beyond the most that wait for `at_most`, a slot is skipped', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ at_most: { count: 1, per: '30d' } })
  await t.later(5 * MINUTE)
  t.daemon.db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9999)
     INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, count, variables)
     SELECT 'w' || n, ?, 1, 'w' || n, 0, 0, 'waiting', 'limit', 1, '{}' FROM n`,
    [id],
  )
  await t.later(5 * MINUTE)
  expect(t.firings().at(-1)).toMatchObject({ state: 'waiting', reason: 'limit' })
  await t.later(5 * MINUTE)
  expect(t.firings().at(-1)).toMatchObject({ state: 'skipped', reason: 'limit' })
})

test('a clock that was ahead keeps nothing from starting', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *', at_most: { count: 1, per: '90m' } })
  await t.later(3 * DAY)
  await t.ended()
  await t.later(-3 * DAY)
  await t.later(2 * HOUR)
  await t.ended()
  expect(t.rows().at(-1)).toBe('23T02:00 started')
})

test('a run now is an occasion of its own, and respects `overlap` unless it is forced', async () => {
  await using t = await triggerHome()
  await t.add(HOLD)
  const by = 'local:ada'
  const first = await t.triggers.runNow({ name: 'nightly' }, { force: false, by })
  expect(first).toMatchObject({ state: 'started', manual: { by }, late_ms: 0 })
  expect(first.occasion).toMatch(/^now:/)
  expect(await t.triggers.runNow({ name: 'nightly' }, { force: false, by })).toMatchObject({
    ...{ state: 'skipped', reason: 'overlap', run_id: null, manual: { by } },
  })
  const forced = await t.triggers.runNow({ name: 'nightly' }, { force: true, by })
  expect(forced).toMatchObject({ state: 'started' })
  expect(t.rows()).toEqual(['now started', 'now skipped overlap', 'now started'])
  // The slot sees them.
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:05 skipped overlap')
  const entries = t.daemon.db.query("SELECT actor, target FROM audit WHERE action = 'triggers/run_now'").all()
  expect(entries).toEqual(Array.from({ length: 3 }, () => ({ actor: by, target: 'nightly' })))
})

test('a run now waits in the queue, and no slot supersedes it', async () => {
  await using t = await triggerHome()
  await t.add({ ...HOLD, overlap: 'queue' })
  await t.later(5 * MINUTE)
  const asked = { force: false, by: 'local:ada' }
  expect(await t.triggers.runNow({ name: 'nightly' }, asked)).toMatchObject({ state: 'waiting', reason: 'overlap' })
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  expect(t.rows().filter(row => row.includes('waiting'))).toEqual(['now waiting overlap', '23T00:20 waiting overlap'])
  await t.answer()
  await t.look()
  expect(t.rows()[1]).toBe('now started')
})
