// What a hub deletes by age.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

const DAY = 86_400_000

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub({ env: { CADRE_KEEP_RUNS_DAYS: '30' } })
})
afterAll(() => hub.stop())

test('a run is kept from when its end was reported, whatever the clock of its daemon says', async () => {
  await hub.addTeam('name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n')
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'one', protocol: 1 })
  const [early, late, old] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const ended = (at: number) => ({ state: 'completed', started_at: at, completed_at: at })
  const changes = [
    ...[runChange(early, ended(1_000)), runChange(late, ended(Date.now() + 400 * DAY))],
    runChange(old, ended(Date.now())),
  ]
  const numbered = changes.map((change, at) => ({ ...change, seq: at + 1 }))
  const body = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes: numbered }
  expect(await hub.ok(token, 'runs/sync', body)).toMatchObject({ acked_seq: 3, rejected: [] })
  const there = async () => (await hub.store.db.select().from(hub.store.runs)).map(({ run_id }) => run_id).sort()
  const { runs } = hub.store
  // One that is older, so that it shows when the others have been passed over.
  await hub.store.write(tx =>
    tx
      .update(runs)
      .set({ kept_since: Date.now() - 2 * DAY })
      .where(eq(runs.run_id, old)),
  )
  await hub.restart({ skew: 29 * DAY })
  await until(async () => !(await there()).includes(old), 'the older run is deleted')
  expect(await there()).toEqual([early, late].sort())
  await hub.restart({ skew: 31 * DAY })
  await until(async () => (await there()).length === 0, 'runs are deleted')
})
