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
import { runIdAt } from '../support/listed-runs.ts'
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
      const run_id = runIdAt(now + at, name === 'live' ? 0 : 1)
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
  for (const state of HUB_RUN_STATES) {
    const { count, list } = await plansOf({ realm_id: hub.realm, state })
    const found = /^(CO-ROUTINE some; )?SEARCH runs USING (COVERING )?INDEX runs_state \(realm_id=\? AND state=\?\)/
    expect(count).toMatch(found)
    if (ENDED_RUN_STATES.includes(state)) expect(count).toContain('COVERING')
    expect(list).toMatch(found)
    // Runs that have crashed are in several states.
    if (state !== 'crashed') expect(list).not.toContain('TEMP B-TREE')
  }
})

test('SQLite counts the runs of a team and of a starter by an index alone, and lists them in its order', async () => {
  if (hub.store.dialect !== 'sqlite') return
  const indexes: [object, string][] = [
    [{ team: 't' }, 'runs_team (realm_id=? AND <expr>=?)'],
    [{ started_by: 'schedule' }, 'runs_started_by'],
    [{ started_by: 'unknown' }, 'runs_started_by'],
    [{ started_by: 'schedule:nightly' }, 'runs_started_by_name (realm_id=? AND <expr>=? AND starter_name=?)'],
  ]
  for (const [filter, index] of indexes) {
    const { count, list } = await plansOf({ realm_id: hub.realm, ...filter })
    expect(count).toStartWith(`CO-ROUTINE some; SEARCH runs USING COVERING INDEX ${index}`)
    expect(list).toStartWith(`SEARCH runs USING INDEX ${index}`)
    expect(list).not.toContain('TEMP B-TREE')
  }
  const { list } = await plansOf({ realm_id: hub.realm, team: '@a/t' })
  expect(list).toStartWith('SEARCH runs USING INDEX runs_team')
})

/** How SQLite reads the list of runs that `body` asks for, and how it counts them. */
async function plansOf(body: object): Promise<{ count: string; list: string }> {
  const here = createHub({ store: hub.store, log: createLog({ write: () => {} }), home: folder() })
  const app = hubApp(here)
  using db = new Database(hub.database, { readonly: true })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${hub.admin}` }
  const texts = await statementsOf(hub.store.db, async () => {
    const request = new Request('http://hub/v1/runs/list', { method: 'POST', headers, body: JSON.stringify(body) })
    expect((await app.handle(request)).status).toBe(200)
  })
  await here.lastSeen.close()
  const plans = texts
    .filter(text => text.includes('from "runs"'))
    .map(text => db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all())
  expect(plans).toHaveLength(2)
  const [count, list] = plans.map(steps => steps.map(({ detail }) => detail).join('; '))
  return { count: count!, list: list! }
}

test('SQLite reads only the newest runs of each realm for a list of all realms', async () => {
  if (hub.store.dialect !== 'sqlite') return
  const { list } = await plansOf({ limit: 1 })
  expect(list).toMatch(/^SEARCH runs USING INDEX runs_realm \(realm_id=\? AND run_id>\?\)/)
  const state = await plansOf({ limit: 1, state: 'completed' })
  expect(state.list).toMatch(/^SEARCH runs USING INDEX runs_state \(realm_id=\? AND state=\? AND run_id>\?\)/)
})

test('the pages of a list of all realms are the runs of every realm, newest first, whatever is asked for', async () => {
  const { realms, runs } = hub.store
  const [first] = await hub.store.db.select().from(realms)
  const counts = [40, 9, 1, 0]
  const made = counts.flatMap((count, realm) => Array.from({ length: count }, (_, n) => ({ realm, n })))
  const rows = made.map(({ realm, n }, at) => {
    // The smaller realms are at the beginning, in the middle and at the end.
    const run_id = runIdAt(
      1_600_000_000_000 + (realm === 1 ? 20_500 + n : realm === 2 ? 90_000 : n * 1_000),
      at % 1_000,
    )
    const place = {
      root_run_id: run_id,
      call_path: ['@a/t'],
      call_depth: 0,
      tree_key: '',
      team: n % 3 ? '@a/many' : '@a/few',
    }
    const run = { inputs: {}, attempt: 1, created_at: n, completed_at: n, state: n % 2 ? 'completed' : 'failed' }
    return { run_id, ...place, ...run, realm_id: `realm-${realm}` }
  })
  await hub.store.write(async tx => {
    await tx.insert(realms).values(counts.map((_, n) => ({ ...first!, id: `realm-${n}`, slug: `several-${n}` })))
    await tx.insert(runs).values(rows)
  })
  type Listed = { run_id: string; state: string; team: string }
  const { runs: all } = await hub.ok(hub.admin, 'runs/list', { limit: 100 })
  const sorted = all.toSorted((a: Listed, b: Listed) => (a.run_id < b.run_id ? 1 : -1))
  expect(all).toEqual(sorted)
  expect(all).toHaveLength(rows.length + 2 * RUN_STATES.length)
  const middle: string = all[Math.floor(all.length / 2)].run_id
  const filters: [object, (run: Listed) => boolean][] = [
    [{}, () => true],
    [{ state: 'completed' }, run => run.state === 'completed'],
    [{ state: 'running' }, run => run.state === 'running'],
    [{ state: 'crashed' }, run => run.state === 'crashed'],
    [{ team: 'few' }, run => run.team === '@a/few'],
    [{ root_only: true, search: '@a/many' }, run => run.team === '@a/many'],
    [{ team: '@a/none' }, () => false],
    [{ upto: middle, state: 'failed' }, run => run.run_id <= middle && run.state === 'failed'],
    [{ newer_than: middle }, run => run.run_id > middle],
  ]
  for (const [filter, isListed] of filters) {
    const expected = all.filter(isListed)
    for (const limit of [1, 7, 50]) {
      for (let offset = 0; offset <= expected.length + limit; offset += limit) {
        const listed = await hub.ok(hub.admin, 'runs/list', { ...filter, limit, offset })
        expect(listed).toEqual({ runs: expected.slice(offset, offset + limit), total: expected.length })
      }
    }
  }
})
