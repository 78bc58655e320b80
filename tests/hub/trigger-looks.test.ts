// A look at triggers of which none is due is one statement that reads indexes, however many triggers and firings there are.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { enabledChains } from '../../lib/hub/chains/ends.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { tick } from '../../lib/hub/triggers/tick.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'
import { statementsOf } from '../support/statements.ts'

const TRIGGERS = Number(process.env.TEST_TRIGGERS ?? 2_000)
const FIRINGS = 10 * TRIGGERS
const PART = 500

let t: RealmTriggerHub
let hub: Hub
beforeAll(async () => {
  t = await realmTriggers()
  hub = createHub({ store: t.hub.store, log: createLog({ write: () => {} }), home: folder() })
}, 120_000)
afterAll(() => t.hub.stop())

/** Schedules of each year, and skipped firings of some of them. */
async function fill(): Promise<void> {
  const { id } = await t.call('add', {
    realm_id: t.hub.realm,
    name: 'one',
    kind: 'schedule',
    team: t.team,
    cron: '@yearly',
  })
  const { triggers, firings } = hub.store
  const [row] = await hub.store.db.select().from(triggers)
  for (let at = 0; at < TRIGGERS; at += PART) {
    const rows = Array.from({ length: PART }, (_, n) => ({ ...row!, id: `t${at + n}`, name: `t${at + n}` }))
    await hub.store.write(tx => tx.insert(triggers).values(rows))
  }
  for (let at = 0; at < FIRINGS; at += PART) {
    const rows = Array.from({ length: PART }, (_, n) => ({
      ...{ id: crypto.randomUUID(), trigger_id: id, revision: 1, occasion: `o${at + n}`, at: at + n, seen_at: at + n },
      ...{ state: 'skipped' as const, reason: 'missed' as const, count: 1, variables: {} },
    }))
    await hub.store.write(tx => tx.insert(firings).values(rows))
  }
}

test('a look of which nothing comes', async () => {
  await fill()
  const statements = await statementsOf(hub.store.db, () => tick(hub))
  expect(statements).toHaveLength(1)
  const [text] = statements as [string]
  if (hub.store.dialect === 'sqlite') {
    using db = new Database(t.hub.database, { readonly: true })
    const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all()
    const scans = plan.map(({ detail }) => detail).filter(detail => /^SCAN (firings|triggers)|TEMP B-TREE/.test(detail))
    // What waits is an index of its own, in which nothing else is.
    expect(scans).toEqual(['SCAN firings USING COVERING INDEX firings_waiting'])
  } else {
    await using sql = new Bun.SQL(t.hub.database, { max: 1 })
    // As the hub's own connections have it.
    await sql.unsafe('SET enable_seqscan = off')
    const plan = (await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${text}`)).map((row: object) => Object.values(row)[0])
    expect(plan.join('\n')).not.toContain('Seq Scan')
    const read = [...plan.join('\n').matchAll(/Scan.*\(actual rows=([0-9]+)/g)].map(([, rows]) => Number(rows))
    expect(Math.max(...read)).toBeLessThanOrEqual(1)
  }
  const began = performance.now()
  for (let n = 0; n < 20; n++) await tick(hub)
  console.log(`a look at ${TRIGGERS} schedules: ${((performance.now() - began) / 20).toFixed(2)} ms`)
}, 120_000)

test('what ends a run looks for chains in an index that has nothing else', async () => {
  const enabled = () => enabledChains(hub, hub.store.db, t.hub.realm)
  const [text] = (await statementsOf(hub.store.db, enabled)) as [string]
  if (hub.store.dialect === 'sqlite') {
    using db = new Database(t.hub.database, { readonly: true })
    const plan = db.query<{ detail: string }, [string]>(`EXPLAIN QUERY PLAN ${text}`).all(t.hub.realm)
    expect(plan.map(({ detail }) => detail)).toEqual(['SEARCH triggers USING INDEX triggers_chains (realm_id=?)'])
  }
  const begun = performance.now()
  for (let n = 0; n < 1_000; n++) await enabled()
  console.log(`a look for chains beside ${TRIGGERS} schedules: ${((performance.now() - begun) / 1_000).toFixed(3)} ms`)
})
