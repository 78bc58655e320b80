// Lists of runs by state: each run is in the list of the state that it is shown with and in no other, and SQLite finds the
// runs of a state by its index, however many others the realm has.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hubApp } from '../../hub.ts'
import { CRASHED_MS } from '../../lib/hub/access/daemons.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { ENDED_RUN_STATES, HUB_RUN_STATES, RUN_STATES } from '../../lib/wire/states.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { statementsOf } from '../support/statements.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await startTestHub()
  const now = Date.now()
  const { daemons, runs } = hub.store
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const seen = { live: now, silent: now - CRASHED_MS - 60_000 }
  for (const [name, last_seen_at] of Object.entries(seen)) {
    const { daemon_id } = await hub.ok(token, 'daemons/register', { name })
    const [row] = await hub.store.db.select().from(daemons)
    await hub.store.write(tx => tx.insert(daemons).values({ ...row!, id: `${name}-${daemon_id}`, name, last_seen_at }))
    const run = (state: string, at: number) => {
      const run_id = crypto.randomUUID()
      const place = { root_run_id: run_id, call_path: ['@a/t'], call_depth: 0, tree_key: '', team: '@a/t' }
      const made = { realm_id: hub.realm, run_name: `${name} ${state}`, inputs: {}, attempt: 1, created_at: now + at }
      return { run_id, ...place, ...made, state, daemon_id: state === 'queued' ? null : `${name}-${daemon_id}` }
    }
    await hub.store.write(tx => tx.insert(runs).values(RUN_STATES.map(run)))
  }
})
afterAll(() => hub.stop())

test('each run is in the list of the state that it is shown with, and counted there', async () => {
  const all = await hub.ok(hub.admin, 'runs/list', { limit: 100 })
  expect(all.total).toBe(2 * RUN_STATES.length)
  for (const state of HUB_RUN_STATES) {
    const { runs, total } = await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm, state })
    expect(runs).toEqual(all.runs.filter((run: { state: string }) => run.state === state))
    expect(total).toBe(runs.length)
  }
  const crashed = await hub.ok(hub.admin, 'runs/list', { state: 'crashed' })
  expect(crashed.runs.map((run: { run_name: string }) => run.run_name)).toEqual([
    'silent awaiting_input',
    'silent running',
  ])
})

test('SQLite finds the runs of a state in a realm by their index, and sorts those of several states only', async () => {
  if (hub.store.dialect !== 'sqlite') return
  const here = createHub({ store: hub.store, log: createLog({ write: () => {} }), home: folder() })
  const app = hubApp(here)
  using db = new Database(hub.database, { readonly: true })
  for (const state of HUB_RUN_STATES) {
    const body = JSON.stringify({ realm_id: hub.realm, state })
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${hub.admin}` }
    const texts = await statementsOf(hub.store.db, async () => {
      const reply = await app.handle(new Request('http://hub/v1/runs/list', { method: 'POST', headers, body }))
      expect(reply.status).toBe(200)
    })
    const plans = texts
      .filter(text => text.includes('from "runs"'))
      .map(text => db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all())
    expect(plans).toHaveLength(2)
    const [list, count] = plans.map(steps => steps.map(({ detail }) => detail).join('; '))
    const found = /^SEARCH runs USING (COVERING )?INDEX runs_state \(realm_id=\? AND state=\?\)/
    expect(count).toMatch(found)
    if (ENDED_RUN_STATES.includes(state)) expect(count).toContain('COVERING')
    expect(list).toMatch(found)
    // Runs that have crashed are in several states.
    if (state !== 'crashed') expect(list).not.toContain('TEMP B-TREE')
  }
  await here.lastSeen.close()
})
