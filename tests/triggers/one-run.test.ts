// One occasion starts one run, however often it comes and whoever fires it again, unless a person asks for another.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Changed } from '../../lib/firing/changes.ts'
import { rowsOf } from '../support/home.ts'
import { type HookHome, hookHome, post } from '../support/hooks.ts'
import { BEGIN, HOUR, triggerHome } from '../support/triggers.ts'

const ADA = 'local:ada'
const NIGHTLY = { name: 'nightly' }
const LONG = 'a-secret-that-nobody-guesses'
const GOOD = '{"n":"x"}'
const ONCE = { again: false, by: ADA }
const AGAIN = { again: true, by: ADA }

/** A hook with a delivery `g-1` that it refused, and would take now. */
async function refused(t: HookHome, ids = ['g-1']): Promise<{ url: string; firing: string }> {
  const { url } = await t.addHook({ inputs: { day: '{{ body.m }}' } })
  for (const id of ids) expect((await t.send(url, GOOD, id)).body.data.state).toBe('refused')
  await t.triggers.update(NIGHTLY, { inputs: { day: '{{ body.n }}' } }, undefined, ADA)
  return { url, firing: t.firings()[0]!.id }
}

/** The runs that deliveries have started, one each. */
const deliveriesOf = (t: HookHome) =>
  t.runs().map(({ id }) => (t.daemon.engine.record(id).started_by as { delivery?: string }).delivery)

test('a delivery that started keeps its run while it comes again with bodies that cannot be read', async () => {
  await using t = await hookHome()
  const ids = Array.from({ length: 12 }, (_, n) => `g-${n}`)
  const { url } = await refused(t, ids)
  for (const id of ids) {
    const bad = Array.from({ length: 10 }, async (_, n) => {
      await Bun.sleep(n)
      return t.send(url, '{bad', id)
    })
    const [good] = await Promise.all([t.send(url, GOOD, id), ...bad])
    expect(good!.body.data).toMatchObject({ state: 'started' })
    const after = await t.send(url, GOOD, id)
    expect(after.body.data).toMatchObject({ run_id: good!.body.data.run_id, duplicate: true })
  }
  expect(deliveriesOf(t).sort()).toEqual(ids.sort())
})

test('a firing is settled only in the state in which it was read, and what started is final', async () => {
  await using t = await hookHome()
  const { url } = await t.addHook()
  await t.send(url, GOOD, 'g-1')
  const { firings } = t.triggers.tables
  const [started] = t.firings()
  const firing = firings.get(started!.id)!
  const overwritten = { ...firing, state: 'refused', reason: 'body' } as const
  expect(() => firings.settle(overwritten, 'refused')).toThrow(Changed)
  expect(() => firings.settle(overwritten, 'started')).toThrow('final')
  using db = new Database(join(t.home, 'daemon.db'))
  for (const change of ["state = 'waiting'", 'run_id = NULL', "run_id = 'other'"]) {
    expect(() => db.run(`UPDATE firings SET ${change}`)).toThrow('final')
  }
  expect(firings.get(firing.id)).toEqual(firing)
})

test('a refused delivery that a person fired again starts no second run by itself', async () => {
  await using t = await hookHome()
  const { url, firing } = await refused(t)
  const first = await t.triggers.refire(firing, ONCE)
  expect(first).toMatchObject({ occasion: 'g-1#2', state: 'started' })
  expect(t.triggers.refire(firing, ONCE)).rejects.toThrow(first.run_id!)
  const repeated = await t.send(url, GOOD, 'g-1')
  expect(repeated.body.data).toMatchObject({ delivery: 'g-1', run_id: first.run_id, duplicate: true })
  expect(t.of()).toEqual(['g-1 refused expression ×2', 'g-1#2 started ×null'])
  expect(await t.triggers.refire(firing, AGAIN)).toMatchObject({ occasion: 'g-1#3', state: 'started' })
  expect(t.runs()).toHaveLength(2)
})

test('many who fire it again at once start one run, or one each where they ask for another', async () => {
  await using t = await hookHome()
  const { url, firing } = await refused(t)
  const all = await Promise.allSettled([
    ...[1, 2, 3, 4].map(() => t.triggers.refire(firing, ONCE)),
    t.send(url, GOOD, 'g-1'),
  ])
  const refires = all.slice(0, 4)
  const codes = refires.flatMap(each => (each.status === 'rejected' ? [each.reason.code] : []))
  expect([...new Set(codes)]).toEqual(['conflict'])
  expect(t.runs()).toHaveLength(1)
  const wanted = await Promise.all([1, 2, 3, 4].map(() => t.triggers.refire(firing, AGAIN)))
  expect(wanted.map(({ state }) => state)).toEqual(Array(4).fill('started'))
  expect(new Set(wanted.map(({ occasion }) => occasion)).size).toBe(4)
  expect(t.runs()).toHaveLength(5)
})

test('one that waits holds its occasion as one that started does', async () => {
  await using t = await hookHome()
  const { url, firing } = await refused(t)
  await t.triggers.update(NIGHTLY, { at_most: { count: 1, per: '1h' } }, undefined, ADA)
  await t.send(url, GOOD, 'g-2')
  const waits = await t.triggers.refire(firing, ONCE)
  expect(waits.state).toBe('waiting')
  expect(t.triggers.refire(firing, ONCE)).rejects.toThrow('waits to start')
  expect((await t.send(url, GOOD, 'g-1')).body.data).toMatchObject({ state: 'waiting', duplicate: true })
})

test('what a person fired again is not taken for the newest of its body', async () => {
  await using t = await hookHome()
  const { url } = await t.addHook({ scheme: 'bearer', secret: LONG, dedup: 'body' })
  const sent = () => post(url, GOOD, { authorization: `Bearer ${LONG}`, 'content-type': 'application/json' })
  await sent()
  t.clock.now += HOUR
  const { firing } = (await sent()).body.data
  await t.triggers.refire(firing, AGAIN)
  t.clock.now += HOUR
  expect((await sent()).body.data.state).toBe('started')
  const names = t.firings().map(({ occasion }) => occasion.replace(/^[^~]*/, ''))
  expect(names).toEqual(['', '~2', '~2#2', '~3'])
})

test('a slot that was filled later is not started by its missed row, nor the other way round', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '0 * * * *' })
  await t.later(3 * HOUR)
  const [row] = t.firings()
  expect(row).toMatchObject({ state: 'skipped', reason: 'missed', count: 2 })
  const fill = () =>
    t.triggers.backfill(NIGHTLY, {
      ...{ from: BEGIN, to: t.clock.now, most: 1, dryRun: false, yes: false, by: ADA },
    })
  await fill()
  expect(t.triggers.refire(row!.id, ONCE)).rejects.toThrow('waits to start')
  await t.look()
  await t.ended()
  expect(t.triggers.refire(row!.id, ONCE)).rejects.toThrow('started run')
  await t.triggers.refire(row!.id, AGAIN)
  await t.ended()
  expect((await fill()).slots.map(({ local }) => local)).toEqual(['2026-11-23T02:00+00:00'])
  expect(
    rowsOf(t.home, "SELECT 1 FROM firings WHERE occasion LIKE '2026-11-23T01:00Z%' AND state = 'started'"),
  ).toHaveLength(2)
})

test('the firings of an occasion are found by the key', async () => {
  await using t = await triggerHome()
  const statement = `EXPLAIN QUERY PLAN SELECT id FROM firings WHERE trigger_id = 'a' AND occasion BETWEEN 'b' AND 'b#9' ORDER BY seq`
  const [plan] = rowsOf<{ detail: string }>(t.home, statement)
  expect(plan!.detail).toContain('trigger_id=? AND occasion>? AND occasion<?')
})
