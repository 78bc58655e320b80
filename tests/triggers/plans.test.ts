// No look at triggers reads a table: the statements of a look, of a start and of the sweep are searches of an index,
// however many triggers and firings there are.

import { expect, test } from 'bun:test'
import { RunRetention } from '../../lib/daemon/home/chores/retention.ts'
import { change, forgetAges } from '../support/aged-home.ts'
import { folder } from '../support/folder.ts'
import { DAY, MINUTE, type TriggerHome, triggerHome } from '../support/triggers.ts'

/** The steps of the statements about triggers and firings that `work` makes, but searches of an index. */
async function readsOf({ daemon: { db } }: TriggerHome, work: () => Promise<unknown>): Promise<string[]> {
  const texts = new Set<string>()
  const query = db.query.bind(db)
  db.query = ((text: string) => {
    texts.add(text)
    return query(text)
  }) as typeof db.query
  await work()
  db.query = query
  const ours = [...texts].filter(text => /\b(firings|triggers)\b/.test(text) && !/^\s*INSERT/.test(text))
  expect(ours.length).toBeGreaterThan(2)
  return ours.flatMap(text =>
    query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`)
      .all()
      .map(({ detail }) => detail)
      .filter(detail => /^SCAN|TEMP B-TREE/.test(detail)),
  )
}

/** What waits is an index of its own, in which nothing else is. */
const WAITING = 'SCAN firings USING COVERING INDEX firings_waiting'
/** Those that a team.yml declares: they are few, and looked at every 30 s. */
const DECLARED = 'SCAN triggers USING INDEX triggers_declared'
/** The runs that have not ended. */
const OPEN = 'SCAN runs USING INDEX runs_open'

test('a look at schedules of which none is due', async () => {
  await using t = await triggerHome()
  await t.add()
  expect(await readsOf(t, t.look)).toEqual([WAITING, DECLARED])
})

test('a look that starts, skips, queues and catches up', async () => {
  await using t = await triggerHome()
  const fields = { inputs: { hold: true }, cron: '0 * * * *' }
  await t.add({ ...fields, overlap: 'queue', catch_up: 'all' })
  await t.add({ ...fields, name: 'skips' })
  await t.add({ ...fields, name: 'limited', overlap: 'allow', at_most: { count: 1, per: '1d' } })
  const work = async () => {
    for (const ms of [DAY, 60 * MINUTE, -DAY, 60 * MINUTE]) await t.later(ms)
  }
  expect(await readsOf(t, work)).toEqual([WAITING, DECLARED, OPEN])
})

test('the sweep of old firings', async () => {
  const home = folder()
  const first = await triggerHome(home)
  await first.add()
  await first.add({ name: 'gone' })
  for (let n = 0; n < 3; n++) await first.later(5 * MINUTE)
  first.triggers.remove({ name: 'gone' }, 'local:ada')
  await first.close()
  change(home, 'UPDATE firings SET seen_at = 0')
  forgetAges(home)
  await using t = await triggerHome(home)
  const retention = new RunRetention(t.daemon, { days: 30, auditDays: 400, bytes: null })
  const reads = await readsOf(t, () => retention.deleteOld(new AbortController().signal))
  // Triggers are few; the last number of firings is read from the end of their table.
  for (const read of reads) expect(read).toMatch(/^SCAN (triggers|json_each)|^SEARCH (firings|run_ends)/)
})
