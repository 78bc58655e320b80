// Backfill: slots of the past that were missed start after all, one after the other.

import { expect, test } from 'bun:test'
import { BEGIN, HOUR, MINUTE, triggerHome } from '../support/triggers.ts'

const NIGHTLY = { name: 'nightly' }
const ADA = 'local:ada'

type Home = Awaited<ReturnType<typeof triggerHome>>
const fill = (t: Home, more: object = {}) =>
  t.triggers.backfill(NIGHTLY, {
    ...{ from: BEGIN, to: t.clock.now, most: 100, dryRun: false, yes: false, by: ADA },
    ...more,
  })

/** Ten slots were missed while nothing looked, and the newest started. */
async function missed(fields: object = {}) {
  const t = await triggerHome()
  await t.add({ cron: '0 * * * *', ...fields })
  await t.later(11 * HOUR)
  return t
}

const MISSED = '23T01:00..23T10:00 x10 skipped missed'

test('what was missed starts in its order, and what started does not', async () => {
  await using t = await missed({ inputs: { day: '{{ slot }}' } })
  expect(t.rows()).toEqual([MISSED, '23T11:00 started'])
  const { slots, left } = await fill(t, { from: BEGIN + 7 * HOUR, dryRun: true })
  expect([slots.map(({ local }) => local), left]).toEqual([
    ['2026-11-23T08:00+00:00', '2026-11-23T09:00+00:00', '2026-11-23T10:00+00:00'],
    0,
  ])
  expect(t.rows()).toHaveLength(2)
  await fill(t, { from: BEGIN + 7 * HOUR })
  await t.ended()
  for (let n = 0; n < 3; n++) {
    await t.look()
    await t.ended()
  }
  expect(t.rows().slice(2)).toEqual(['23T08:00 started', '23T09:00 started', '23T10:00 started'])
  const runs = t
    .firings()
    .slice(2)
    .map(({ run_id }) => t.daemon.engine.record(run_id!))
  expect(runs.map(({ inputs }) => inputs!.day)).toEqual(['2026-11-23T08:00Z', '2026-11-23T09:00Z', '2026-11-23T10:00Z'])
  expect(runs[0]!.started_by).toMatchObject({ kind: 'schedule', slot: '2026-11-23T08:00Z', manual: { by: ADA } })
  // They have their rows now.
  expect((await fill(t, { from: BEGIN + 7 * HOUR })).slots).toEqual([])
})

test.each(['skip', 'queue', 'cancel_running', 'allow'])(
  'one after the other, whatever `overlap: %s` says',
  async overlap => {
    await using t = await missed({ overlap, inputs: { hold: true } })
    await t.answer()
    await fill(t, { most: 3 })
    for (let n = 1; n <= 3; n++) {
      await t.look()
      await t.look()
      expect([n, t.running()]).toEqual([n, 1])
      await t.answer()
    }
    await t.look()
    expect(t.rows().slice(2)).toEqual(['23T01:00#2 started', '23T02:00 started', '23T03:00 started'])
    expect(t.runs().map(({ state }) => state)).toEqual(Array(4).fill('completed'))
  },
)

test('slots from before it was added can be filled, and those of the future not', async () => {
  await using t = await triggerHome()
  await t.add({ cron: '*/30 * * * *' })
  const { slots, left } = await fill(t, { from: BEGIN - 2 * HOUR, to: BEGIN + 5 * HOUR, most: 3, dryRun: true })
  expect([slots[0]!.local, slots.length, left]).toEqual(['2026-11-22T22:30+00:00', 3, 1])
})

test('slots that were skipped for another reason stay as they are', async () => {
  await using t = await triggerHome()
  await t.add({ when: 'slot == "never"' })
  await t.later(5 * MINUTE)
  t.triggers.pause(NIGHTLY, null, ADA)
  await t.later(10 * MINUTE)
  t.triggers.resume(NIGHTLY, 'none', ADA)
  expect(t.rows()).toEqual(['23T00:05 skipped when', '23T00:10..23T00:15 x2 skipped paused'])
  expect((await fill(t, { from: BEGIN })).slots).toEqual([])
})

test('a trigger without slots is refused', async () => {
  await using t = await triggerHome()
  await t.triggers.add({ name: 'deploy', kind: 'chain', team: t.team, after: 'build' }, ADA)
  await expect(t.triggers.backfill({ name: 'deploy' }, {} as never)).rejects.toThrow('is a chain')
})
