// What a home keeps when its clock was wrong once: its history, and the memory of tokens that count once.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { UsedTokens } from '../../lib/daemon/access/used-tokens.ts'
import { Ages } from '../../lib/daemon/home/ages.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { HELLO } from './teams.ts'

const DAY_MS = 86_400_000

let t: TestEngine
beforeEach(async () => {
  t = await testEngine()
})
afterEach(() => t.close())

function ages(): Ages {
  const { store, commit } = t.engine
  return new Ages({ db: store.db, facts: store.facts, commit, lived: () => 0 })
}

test('a run that was made while the clock was ahead does not make the others look old', async () => {
  await t.run(HELLO, { who: 'ada' })
  await t.run(HELLO, { who: 'eve' })
  const { db } = t.engine.store
  db.run(
    'UPDATE runs SET created_at = created_at + ?1, completed_at = completed_at + ?1 WHERE id = (SELECT max(id) FROM runs)',
    [40 * DAY_MS],
  )
  expect(ages().believed).toBeLessThanOrEqual(Date.now())
})

test('a run that ended while the clock was ahead is as old as the next one', async () => {
  const ids: string[] = []
  for (const who of ['ada', 'eve', 'kim']) ids.push((await t.run(HELLO, { who })).run_id)
  const { db } = t.engine.store
  const days = (id: string, n: number) =>
    db.run('UPDATE runs SET created_at = created_at + ?1, completed_at = completed_at + ?1 WHERE id = ?2', [
      n * DAY_MS,
      id,
    ])
  days(ids[0]!, -3)
  days(ids[1]!, 400)
  days(ids[2]!, -1)
  const known = ages()
  const rows = db
    .query<{ row: number; created_at: number; completed_at: number }, []>(
      'SELECT rowid AS row, created_at, completed_at FROM runs ORDER BY rowid',
    )
    .all()
  const ends = rows.map(({ row, completed_at }) => known.endOf(row, completed_at))
  expect(ends).toEqual([rows[0]!.completed_at, rows[2]!.created_at, rows[2]!.completed_at])
  // The last of all is not known to be old.
  days(ids[2]!, 400)
  expect(known.endOf(rows[2]!.row, rows[2]!.completed_at + 400 * DAY_MS)).toBe(known.believed)
})

test('a home without runs knows the time of its last audit entry', () => {
  const { db } = t.engine.store
  const at = Date.now() - 40 * DAY_MS
  db.run("INSERT INTO audit (at, actor, action) VALUES (?, 'local:ada', 'runs/start')", [at])
  expect(ages().believed).toBe(at)
})

test('a token that counts once counts once, also after a clock that was ahead was believed and then corrected', () => {
  const used = new UsedTokens(t.engine.store.db, () => Date.now() + 2 * DAY_MS)
  const until = Date.now() + 60_000
  expect([used.use('j', until), used.use('j', until)]).toEqual([true, false])
})
