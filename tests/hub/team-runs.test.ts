// What a hub says of the runs of a team: statistics, and what changed since the last run that completed. Both are of the
// realms that the caller sees.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { statsOfTeam } from '../../lib/hub/reports/team-runs.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runIdAt } from '../support/listed-runs.ts'
import { addRealm } from '../support/many-runs.ts'
import { statementsOf } from '../support/statements.ts'

const DAY = 86_400_000
const today = Math.floor(Date.now() / DAY) * DAY
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
  await addRealm(hub, 'other')
})
afterAll(() => hub.stop())

interface Made {
  at: number
  realm?: string
  team?: string
  state?: string
  took?: number
  lived_ms?: number
  below?: string
  inputs?: object
  version?: string
  daemon_id?: string
  agents?: string[]
  beside?: string
}
let made = 0
async function add(some: readonly Made[]): Promise<string[]> {
  const { runs, phases, largeValues } = hub.store
  const all = some.map(({ at, realm = hub.realm, team = '@a/counted', state = 'completed', took = 0, ...more }) => {
    const { below, agents = [], beside, ...columns } = more
    const run_id = runIdAt(at, ++made)
    const place = { root_run_id: below ?? run_id, parent_run_id: below ?? null, call_path: [team], call_depth: 0 }
    const hasEnded = state !== 'running'
    const times = { created_at: at, started_at: at, completed_at: hasEnded ? at + took : null }
    const run = {
      run_id,
      ...place,
      tree_key: below ? `/${made}` : '',
      realm_id: realm,
      team,
      state,
      inputs: {},
      attempt: 1,
    }
    const large = beside === undefined ? null : { inputs: beside.length }
    return { run: { ...run, ...times, ...(columns as object), beside: large }, agents, beside }
  })
  await hub.store.write(async tx => {
    await tx.insert(runs).values(all.map(({ run }) => run))
    for (const { run, agents, beside } of all) {
      const phase = { run_id: run.run_id, type: 'standard', state: 'completed', attempt: 1, depends_on: [], text: '' }
      for (const [index, agent] of agents.entries())
        await tx.insert(phases).values({ ...phase, index, name: `p${index}`, agent, files: [] })
      if (beside) await tx.insert(largeValues).values({ run_id: run.run_id, owner: '', name: 'inputs', value: beside })
    }
  })
  return all.map(({ run }) => run.run_id)
}

test('runs/stats counts the top runs of a team since a moment, day by day in UTC', async () => {
  const since = today - DAY
  const [top] = await add([
    { at: since, took: 50_000, lived_ms: 100 },
    { at: today - 1, took: 300 },
    { at: today, took: 200 },
    { at: today, state: 'failed', took: 7_000 },
    { at: today, state: 'cancelled', took: 8_000 },
    { at: today, state: 'running' },
    { at: today, team: '@b/counted', took: 9_000 },
    { at: since - 1, took: 10_000 },
    { at: today, realm: 'other', took: 400 },
  ])
  await add([{ at: today, below: top!, took: 11_000 }])
  const own = { runs: 6, completed: 3, failed: 1, p50_ms: 200, p95_ms: 300 }
  const days = [
    { day: dayOf(since), completed: 2, failed: 0 },
    { day: dayOf(today), completed: 1, failed: 1 },
  ]
  const stats = (token: string, body: object) => hub.ok(token, 'runs/stats', { team: '@a/counted', since, ...body })
  expect(await stats(hub.admin, { realm_id: hub.realm })).toEqual({ ...own, days })
  expect(await stats(hub.admin, {})).toMatchObject({ runs: 7, completed: 4, p50_ms: 200, p95_ms: 400 })
  expect(await stats(hub.admin, { team: 'counted' })).toMatchObject({ runs: 8, completed: 5, p95_ms: 9_000 })

  const { token, id } = await hub.account('reader')
  expect(await stats(token, {})).toMatchObject({ runs: 0, p50_ms: null })
  expect((await hub.call(token, 'runs/stats', { team: '@a/counted', realm_id: 'other' })).status).toBe(400)
  expect((await hub.call(token, 'runs/stats', { team: '@a/counted', realm_id: hub.realm })).status).toBe(404)
  const { realmMembers } = hub.store
  await hub.store.write(tx => tx.insert(realmMembers).values({ realm_id: 'other', user_id: id, role: 'member' }))
  expect(await stats(token, {})).toMatchObject({ runs: 1, completed: 1, p50_ms: 400 })
})

test('an index finds the runs of a team in each realm', async () => {
  if (hub.store.dialect !== 'sqlite') return
  using db = new Database(hub.database, { readonly: true })
  for (const where of [{ realm: hub.realm }, { reached: undefined }]) {
    const texts = await statementsOf(hub.store.db, () =>
      statsOfTeam(hub.store, where, { team: '@a/counted', since: today, now: Date.now() }),
    )
    for (const text of texts) {
      const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all()
      const details = plan.map(({ detail }) => detail).join('; ')
      expect(details).toMatch(/SEARCH runs (EXISTS )?USING (COVERING )?INDEX runs_team \(realm_id=\? AND <expr>=\?/)
      expect(details).not.toContain('TEMP B-TREE')
    }
    expect(texts.length).toBeGreaterThan(0)
  }
})

test('teams/history says what differs from the last run before it that completed', async () => {
  const team = '@a/told'
  const large = JSON.stringify({ text: 'x'.repeat(5_000) })
  const ids = await add([
    { at: today, team, inputs: { a: 1 }, version: '1.0.0', daemon_id: 'one', agents: ['exec'] },
    { at: today + 1, team, inputs: { a: 2 }, version: '1.0.0', daemon_id: 'one', agents: ['exec'], state: 'failed' },
    { at: today + 2, team, realm: 'other', inputs: { a: 2 }, version: '1.0.0', daemon_id: 'one', agents: ['exec'] },
    { at: today + 3, team, inputs: { a: 1, b: 2 }, version: '1.1.0', daemon_id: 'two', agents: ['exec', 'git'] },
    { at: today + 4, team, beside: large, version: '1.1.0', daemon_id: 'two', agents: ['git', 'exec'] },
    { at: today + 5, team, beside: large, version: '1.1.0', daemon_id: 'two', agents: ['exec', 'git'] },
    { at: today + 6, team, beside: large.replace('xx', 'yy'), version: '1.1.0', daemon_id: 'two', agents: [] },
  ])
  type Told = { run_id: string; changed: string[]; compared_to: string | null }
  const history = (body: object) => hub.ok(hub.admin, 'teams/history', { team, ...body })
  const { runs, total } = await history({})
  const told: Told[] = runs.toReversed()
  expect(total).toBe(7)
  expect(told.map(({ run_id }) => run_id)).toEqual(ids)
  expect(told.map(({ changed }) => changed)).toEqual([
    [],
    ['inputs.a'],
    [],
    ['version', 'inputs.b', 'agents', 'daemon'],
    ['inputs'],
    [],
    ['inputs', 'agents'],
  ])
  const good = [null, ids[0]!, null, ids[0]!, ids[3]!, ids[4]!, ids[5]!]
  expect(told.map(({ compared_to }) => compared_to)).toEqual(good)
  const { changed, compared_to, ...record } = runs[0]
  expect(record).toEqual((await hub.ok(hub.admin, 'runs/list', { team, limit: 1 })).runs[0])

  const one = await history({ realm_id: hub.realm, limit: 1, upto: ids[3] })
  expect([one.total, one.runs.length, one.runs[0].run_id, one.runs[0].compared_to]).toEqual([3, 1, ids[3], ids[0]])
  expect((await history({ upto: ids[6], team: '@a/none' })).runs).toEqual([])
})

test('teams/history compares nothing that only a daemon knows of a run that none has taken', async () => {
  const team = '@a/waits'
  await add([
    { at: today, team, inputs: { a: 1 }, version: '1.0.0', daemon_id: 'one', agents: ['exec'] },
    { at: today + 1, team, inputs: { a: 2 }, version: '1.0.0', state: 'queued' },
  ])
  const { runs } = await hub.ok(hub.admin, 'teams/history', { team })
  expect(runs[0].changed).toEqual(['inputs.a'])
})
