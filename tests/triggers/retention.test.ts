// How long firings and removed triggers are kept.

import { expect, test } from 'bun:test'
import { RunRetention } from '../../lib/daemon/home/chores/retention.ts'
import { change, forgetAges } from '../support/aged-home.ts'
import { DAY, MINUTE, type TriggerHome, triggerHome } from '../support/triggers.ts'

const sweep = (t: TriggerHome) =>
  new RunRetention(t.daemon, { days: 30, auditDays: 400, bytes: null }).deleteOld(new AbortController().signal)

const countOf = ({ daemon }: TriggerHome, where = '1'): number =>
  daemon.db.query<{ n: number }, []>(`SELECT count(*) AS n FROM firings WHERE ${where}`).get()!.n

/** Skipped firings of a trigger that were seen so many days ago. */
function fill({ daemon }: TriggerHome, id: string, count: number, days: number, state = 'skipped'): void {
  daemon.db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
     INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, count, variables)
     SELECT ?2 || ?4 || ?3 || n, ?2, 1, ?4 || ?3 || '-' || n, ?5, ?5, ?4, 'missed', 1, '{}' FROM n`,
    [count, id, days, state, Date.now() - days * DAY],
  )
}

test('old firings are deleted in parts, but the newest hundred of each trigger and what waits', async () => {
  const first = await triggerHome()
  const { id } = await first.add()
  const quiet = (await first.add({ name: 'quiet' })).id
  fill(first, id, 1, 40, 'waiting')
  fill(first, id, 1_200, 40)
  fill(first, id, 150, 20)
  fill(first, quiet, 130, 40)
  await first.close()
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  expect(countOf(t, `trigger_id = '${id}' AND state = 'skipped'`)).toBe(150)
  expect(countOf(t, `state = 'waiting'`)).toBe(1)
  expect(countOf(t, `trigger_id = '${quiet}'`)).toBe(100)
})

test('firings that count for `at_most` stay as long as they count', async () => {
  const first = await triggerHome()
  const { id } = await first.add({ at_most: { count: 500, per: '60d' } })
  fill(first, id, 200, 70)
  fill(first, id, 200, 40)
  await first.close()
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  expect(countOf(t)).toBe(200)
})

test('how a run ended is kept for as long as a firing of it is', async () => {
  const first = await triggerHome()
  const chain = { kind: 'chain', team: first.team, after: 'build', name: 'follows' } as const
  const { id } = await first.triggers.add(chain, 'local:ada')
  first.daemon.db.run("INSERT INTO run_ends (id, run) VALUES (1, '{}'), (2, '{}')")
  fill(first, id, 150, 40)
  first.daemon.db.run('UPDATE firings SET end_id = iif(seq <= 10, 1, 2)')
  await first.close()
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  expect(countOf(t)).toBe(100)
  expect(t.daemon.db.query('SELECT id FROM run_ends').all()).toEqual([{ id: 2 }])
})

test('a hook recognises deliveries for its own days, and keeps bodies for others', async () => {
  const first = await triggerHome()
  const hook = { kind: 'hook', team: first.team, scheme: 'github', secret: 'the secret of this hook' } as const
  const long = await first.triggers.add({ ...hook, name: 'long', keep_days: 60 }, 'local:ada')
  const short = await first.triggers.add({ ...hook, name: 'short', keep_days: 3 }, 'local:ada')
  for (const { id } of [long, short]) {
    fill(first, id, 200, 70)
    fill(first, id, 200, 40)
  }
  first.daemon.db.run("INSERT INTO hook_bodies SELECT id, x'00', ? + seen_at FROM firings", [50 * DAY])
  await first.close()
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  expect([countOf(t, `trigger_id = '${long.id}'`), countOf(t, `trigger_id = '${short.id}'`)]).toEqual([200, 100])
  expect(countOf(t, 'id IN (SELECT firing_id FROM hook_bodies)')).toBe(300)
  expect(t.daemon.db.query<{ n: number }, []>('SELECT count(*) AS n FROM hook_bodies').get()!.n).toBe(300)
})

test('the firing of a run stays as long as the run', async () => {
  const first = await triggerHome()
  await first.add({ inputs: { hold: true }, overlap: 'allow' })
  await first.later(5 * MINUTE)
  await first.later(5 * MINUTE)
  await first.asked(2)
  await first.answer()
  const { id } = first.triggers.find({ name: 'nightly' })
  fill(first, id, 200, 40)
  await first.close()
  change(first.home, 'UPDATE firings SET seen_at = ?', Date.now() - 40 * DAY)
  change(first.home, 'UPDATE runs SET completed_at = ? WHERE completed_at IS NOT NULL', Date.now() - 40 * DAY)
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  // The run that has ended was deleted, and the one that still asks holds the schedule.
  expect(t.rows().filter(row => row.includes('started'))).toEqual(['23T00:10 started'])
  expect(t.triggers.tables.firings.openRuns(id)).toHaveLength(1)
})

test('a removed trigger goes with its last firing', async () => {
  const first = await triggerHome()
  const [old, young, none] = [
    await first.add({ name: 'a' }),
    await first.add({ name: 'b' }),
    await first.add({ name: 'c' }),
  ]
  fill(first, old.id, 20, 40)
  fill(first, young.id, 20, 20)
  for (const name of ['a', 'b', 'c']) first.triggers.remove({ name }, 'local:ada')
  await first.add()
  await first.close()
  forgetAges(first.home)
  await using t = await triggerHome(first.home)
  await sweep(t)
  const left = t.daemon.db.query<{ name: string }, []>('SELECT name FROM triggers ORDER BY name').all()
  expect(left.map(({ name }) => name)).toEqual(['b', 'nightly'])
  expect(countOf(t)).toBe(20)
  expect(none.name).toBe('c')
})

test('firings of a clock that was behind are as old as they are', async () => {
  const first = await triggerHome()
  const { id } = await first.add()
  fill(first, id, 300, 400)
  await first.close()
  // The home has noted no firing yet at any time that is long enough ago.
  forgetAges(first.home)
  change(first.home, "UPDATE meta SET value = json_set(value, '$.marks[0].firing', 0) WHERE key = 'ages'")
  await using t = await triggerHome(first.home)
  await sweep(t)
  expect(countOf(t)).toBe(300)
})
