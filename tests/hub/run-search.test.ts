// Searches for runs: what they find, by the index and without it, and how the texts of older runs come into the index.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { openStore } from '../../db/hub/open-store.ts'
import { isLive } from '../../db/hub/run-tables.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { addTexts, findTexts } from '../../lib/hub/reports/run-texts.ts'
import { MOST_COUNTED } from '../../lib/wire/budget.ts'
import { ENDED_RUN_STATES, RUN_STATES } from '../../lib/wire/states.ts'
import { AGAIN, freshPostgres, startTestHub, type TestHub } from '../support/hub.ts'
import { runIdAt } from '../support/listed-runs.ts'
import { addRealm } from '../support/many-runs.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
  await addRealm(hub, 'other')
})
afterAll(() => hub.stop())

const EVERYWHERE = { reached: undefined }
let made = 0

function row(run_name: string | null, team = '@a/t', realm_id = hub.realm, state = 'completed') {
  const run_id = runIdAt(1_700_000_000_000, ++made)
  const place = { root_run_id: run_id, call_path: [team], call_depth: 0, tree_key: '' }
  return { run_id, ...place, team, realm_id, run_name, state, inputs: {}, attempt: 1, created_at: 1 }
}

const insert = (rows: ReturnType<typeof row>[]) => hub.store.write(tx => tx.insert(hub.store.runs).values(rows))
const search = (text: string, body: object = {}) =>
  hub.ok(hub.admin, 'runs/list', { search: text, limit: 100, ...body })
const idsOf = ({ runs }: { runs: { run_id: string }[] }) => runs.map(({ run_id }) => run_id)
const isIndexed = async (text: string) => (await findTexts(hub.store, EVERYWHERE, text)) !== null

/** Each text, and whether a run is found by it. */
const TEXTS = [
  ...[
    'nightly',
    'NIGHTLY',
    'ghtly "1',
    `it's`,
    '100%',
    'a_b',
    '\\d+',
    'größe',
    'Größe',
    '日本語の',
    '@a/many',
    '/many',
  ],
  ...['no such', 'nightly@a', '"', "''", '* OR *', 'nigh tly', '-0000-', '%%%', '___', 'ni', 'ü'],
]

test('a search finds the same by the index as it does without, newest first', async () => {
  const names = ['Nightly "1"', `it's 100% a_b`, 'x\\d+ größe', '日本語の名前', null, 'night', 'ly', 'nigh  tly']
  const rows = names.flatMap((name, at) => [row(name, at % 2 ? '@a/many' : '@a/t'), row(name, '@b/few', 'other')])
  await insert(rows)
  for (const text of TEXTS) {
    const folded = text.toLowerCase()
    const isFound = ({ run_name, team, run_id }: (typeof rows)[number]) =>
      [run_name ?? '', team, run_id].some(each => each.toLowerCase().includes(folded))
    for (const realm_id of [undefined, hub.realm]) {
      const expected = rows.filter(each => isFound(each) && (realm_id ?? each.realm_id) === each.realm_id)
      const found = await search(text, { ...(realm_id && { realm_id }) })
      expect([text, idsOf(found)]).toEqual([text, expected.map(({ run_id }) => run_id).reverse()])
      expect(found.total).toBe(expected.length)
    }
  }
  expect(await isIndexed('nightly')).toBe(true)
  const page = await search('@a/', { limit: 2, offset: 1, state: 'completed' })
  expect([page.total, idsOf(page)]).toEqual([
    8,
    rows
      .filter(({ team }) => team.startsWith('@a/'))
      .map(({ run_id }) => run_id)
      .reverse()
      .slice(1, 3),
  ])
})

test('a search of a member has nothing of a realm that the member does not see', async () => {
  const [own, foreign] = [row('shared word'), row('shared word', '@a/t', 'other')]
  await insert([own, foreign])
  const { token, id } = await hub.account('searcher')
  expect((await hub.ok(token, 'runs/list', { search: 'shared word' })).total).toBe(0)
  const { realmMembers } = hub.store
  await hub.store.write(tx => tx.insert(realmMembers).values({ realm_id: 'other', user_id: id, role: 'member' }))
  expect(idsOf(await hub.ok(token, 'runs/list', { search: 'shared word' }))).toEqual([foreign.run_id])
})

test('a run is found by the name that it has now, and no more when it is deleted', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
  await hub.addTeam('name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n')
  const [run_id, epoch] = [crypto.randomUUID(), crypto.randomUUID()]
  for (const [at, run_name] of ['first name', 'second name'].entries()) {
    const changes = [{ seq: at + 1, ...runChange(run_id, { run_name }) }]
    expect((await hub.ok(token, 'runs/sync', { daemon_id, epoch, from_seq: at + 1, changes })).rejected).toEqual([])
    expect(idsOf(await search(run_name))).toEqual([run_id])
  }
  expect((await search('first name')).total).toBe(0)
  await hub.store.write(tx => tx.delete(hub.store.runs).where(eq(hub.store.runs.run_id, run_id)))
  expect((await search('second name')).total).toBe(0)
  expect((await findTexts(hub.store, EVERYWHERE, 'second name'))!.count).toBe(0)
})

/** Statements that no hub makes. */
async function execute(...texts: string[]): Promise<void> {
  if (hub.store.dialect === 'sqlite') {
    using db = new Database(hub.database)
    db.run('PRAGMA busy_timeout = 5000')
    for (const text of texts) db.run(text)
    return
  }
  const client = new Bun.SQL(hub.database, { max: 1 })
  for (const text of texts) await client.unsafe(text)
  await client.close()
}

test('until the texts of older runs are indexed a search reads the runs, and then the index has all', async () => {
  const older = Array.from({ length: 130 }, (_, n) => row(`older ${n}`, '@a/t', n % 3 ? hub.realm : 'other'))
  await insert(older)
  expect((await findTexts(hub.store, EVERYWHERE, 'older'))!.count).toBe(older.length)
  await execute('DELETE FROM run_texts', 'INSERT INTO run_text_fill (one) VALUES (1)')
  const newer = row('older than most')
  await insert([newer])
  const steps = addTexts({ store: hub.store } as Hub)
  for (let left = 100; left > 0; left--) {
    const isOver = (await steps.next()).done
    expect((await search('older')).total).toBe(older.length + 1)
    if (isOver) break
    expect(await isIndexed('older')).toBe(false)
  }
  expect((await findTexts(hub.store, EVERYWHERE, 'older'))!.count).toBe(older.length + 1)
  expect(idsOf(await search('older 129'))).toEqual([older.at(-1)!.run_id])
  expect((await addTexts({ store: hub.store } as Hub).next()).done).toBe(true)
})

test('a search that finds very many runs counts as many as other long lists', async () => {
  const many = Array.from({ length: MOST_COUNTED + 20 }, (_, n) => row('very many', n % 2 ? '@a/odd' : '@a/even'))
  for (let at = 0; at < many.length; at += 500) await insert(many.slice(at, at + 500))
  const newest = many.slice(-100).reverse()
  for (const body of [{}, { realm_id: hub.realm }]) {
    const found = await search('very many', body)
    expect([found.total, found.total_more]).toEqual([MOST_COUNTED, true])
    expect(idsOf(found)).toEqual(newest.map(({ run_id }) => run_id))
    const odd = await search('very many', { ...body, team: 'odd' })
    expect([odd.total, odd.total_more]).toEqual([many.length / 2, undefined])
    expect(idsOf(odd)).toEqual(
      many
        .filter(({ team }) => team === '@a/odd')
        .slice(-100)
        .reverse()
        .map(({ run_id }) => run_id),
    )
  }
})

test('the runs that the index of live runs has are those that have not ended', async () => {
  await insert(RUN_STATES.map(state => row('of each state', '@a/t', hub.realm, state)))
  const { db, runs } = hub.store
  const live = await db.select({ state: runs.state }).from(runs).where(isLive(runs))
  expect(new Set(live.map(({ state }) => state))).toEqual(
    new Set(RUN_STATES.filter(state => !ENDED_RUN_STATES.includes(state))),
  )
})

test.skipIf(!process.env.TEST_POSTGRES_URL || AGAIN)(
  'a database that refuses the index is served without it (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using database = await freshPostgres(process.env.TEST_POSTGRES_URL!, { empty: true })
    const client = new Bun.SQL(database.location, { max: 1 })
    await client.unsafe(`CREATE FUNCTION put_run_text() RETURNS integer LANGUAGE sql AS 'SELECT 1'`)
    await client.close()
    const warned: string[] = []
    const store = await openStore(database.location, { log: { warn: message => void warned.push(message) } })
    expect(warned).toEqual([expect.stringContaining('reads all runs for a search')])
    expect(await findTexts(store, EVERYWHERE, 'nightly')).toBeNull()
    expect((await addTexts({ store } as Hub).next()).done).toBe(true)
    await store.close()
  },
)
