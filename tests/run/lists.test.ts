// Lists of runs: each combination of filters gives what a plain look at all rows gives, and reads an index in the order of
// the list, so that its cost does not grow with the number of runs.

import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { migrate, openDatabase, openRunDatabase, readMigrations } from '../../db/open.ts'
import { RUN_STATES, Store } from '../../lib/run/engine.ts'
import { folder } from '../support/folder.ts'
import { insertRun, type ListedRow, runIdAt } from '../support/listed-runs.ts'

const migrations = await readMigrations(`${import.meta.dir}/../../db/daemon/migrations`)
const HOUR_MS = 3_600_000
const NOW = 1_800_000_000_000
const TEAMS = ['@acme/digest', '@other/digest', '@acme/digest/each', '@acme/report']
/** A run from before it was recorded has none. */
const STARTERS = [
  { kind: 'person', name: 'ada', via: 'cli' },
  null,
  { kind: 'schedule', trigger: 't', name: 'nightly', firing: 'f', slot: '', late_ms: 0, catch_up: false },
  { kind: 'token', name: 'ci:main', owner: 'ada', via: 'api' },
  { kind: 'service', identity: 'ci', subject: 'repo' },
  { kind: 'move', run_id: 'r', by: 'ada' },
  { kind: 'person', name: 'bob', via: 'page' },
]
/** SQLite's own names of what sorts or reads a whole table. */
const WHOLE = /SCAN runs(?! USING COVERING INDEX sqlite_autoindex_runs_1| USING INDEX runs_roots)/

type Filter = Parameters<Store['runLists']['list']>[0]

/** Runs of the last 100 hours: some waited or were resumed, some have not begun, and one has an id of another clock. */
function fill(db: Database): ListedRow[] {
  const rows: ListedRow[] = []
  for (let number = 0; number < 300; number++) {
    const at = NOW - (300 - number) * (HOUR_MS / 3)
    const id = runIdAt(number === 7 ? NOW + HOUR_MS : at, number)
    const parent = number % 4 === 0 ? null : rows.findLast(row => row.parent_id === null)!.id
    const state = RUN_STATES[(number % 11) % RUN_STATES.length]!
    const started_at = state === 'queued' ? null : number % 9 === 0 ? at + 40 * HOUR_MS : at + (number % 3) * 59_000
    const started_by = parent === null ? STARTERS[(number / 4) % STARTERS.length]! : null
    rows.push(
      insertRun(db, {
        id,
        parent_id: parent,
        team: TEAMS[(number % 7) % TEAMS.length]!,
        state,
        started_at,
        started_by,
      }),
    )
  }
  return rows
}

/** The filters that find a top run. */
function filtersFor({ started_by }: ListedRow): string[] {
  const { kind, name, identity, by } = (started_by ?? { kind: 'unknown' }) as Record<string, string | undefined>
  return [`${kind}`, `${kind}:${name ?? identity ?? by}`]
}

function fits(row: ListedRow, filter: Filter): boolean {
  const { state, team, root_only, started_by, begins, since, trees } = filter
  if (state !== undefined && row.state !== state) return false
  if (team !== undefined && row.team !== team && row.team.slice(row.team.indexOf('/') + 1) !== team) return false
  if (root_only && row.parent_id !== null) return false
  if (started_by !== undefined && (row.parent_id !== null || !filtersFor(row).includes(started_by))) return false
  if (begins !== undefined && !row.id.startsWith(begins)) return false
  if (since !== undefined && (row.started_at === null || row.started_at < since)) return false
  return !trees || trees.roots.includes(row.root_id) === trees.only
}

const GIVEN: { [K in keyof Filter]?: Filter[K][] } = {
  state: ['completed', 'running', 'queued'],
  team: ['@acme/digest', 'digest', 'digest/each', 'nobody'],
  root_only: [true],
  started_by: [
    'person',
    'person:ada',
    'schedule:nightly',
    'token:ci:main',
    'service:ci',
    'move:ada',
    'unknown',
    'hook',
  ],
  begins: [runIdAt(NOW, 0).slice(0, 5), runIdAt(NOW - 20 * HOUR_MS, 0).slice(0, 8)],
  since: [NOW - 10 * HOUR_MS, NOW - 60 * HOUR_MS, NOW + 90 * HOUR_MS],
}

/** Each combination of the given values, also without one of a name. */
function combinations(names = Object.keys(GIVEN) as (keyof Filter)[]): Partial<Filter>[] {
  const [name, ...rest] = names
  if (name === undefined) return [{}]
  const others = combinations(rest)
  return [...others, ...GIVEN[name]!.flatMap(value => others.map(other => ({ ...other, [name]: value })))]
}

test('each combination of filters gives what a look at all rows gives', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  const rows = fill(db).sort((one, other) => (one.id < other.id ? 1 : -1))
  const { runLists } = new Store(db)
  const some = rows.filter(row => row.parent_id === null && row.state === 'running').map(({ id }) => id)
  const trees = [
    undefined,
    ...[true, false].flatMap(only => [
      { only, roots: some },
      { only, roots: [] },
    ]),
  ]
  const all = combinations().flatMap(filter =>
    filter.state === 'running' ? trees.map(each => ({ ...filter, ...(each && { trees: each }) })) : [filter],
  )
  expect(all.length).toBeGreaterThan(400)
  for (const given of all) {
    const filter = { ...given, limit: 7, offset: 3 }
    const wanted = rows.filter(row => fits(row, filter)).map(({ id }) => id)
    const { rows: page, found } = runLists.list(filter)
    expect([given, page.map(({ id }): string => id), found]).toEqual([given, wanted.slice(3, 10), wanted.length])
  }
})

test('a run parts each list into what was there with it and what is newer', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  const rows = fill(db).sort((one, other) => (one.id < other.id ? 1 : -1))
  const { runLists } = new Store(db)
  const { id } = rows[120]!
  for (const given of [{}, { state: 'completed' }, { team: 'digest' }, { started_by: 'person', root_only: true }]) {
    const wanted = rows.filter(row => fits(row, { ...given, limit: 1, offset: 0 })).map(row => row.id)
    const parts = { upto: wanted.filter(each => each <= id), newer_than: wanted.filter(each => each > id) }
    for (const [name, part] of Object.entries(parts)) {
      const { rows: page, found } = runLists.list({ ...given, [name]: id, limit: 7, offset: 2 })
      expect([given, page.map((row): string => row.id), found]).toEqual([given, part.slice(2, 9), part.length])
    }
  }
})

test('runs of an older home are found by their team and by what started them', () => {
  const file = join(folder(), 'runs.db')
  const groups = migrations.findIndex(({ name }) => name.endsWith('_run_groups.sql'))
  using db = openDatabase(file)
  migrate(db, file, migrations)
  const rows = fill(db).sort((one, other) => (one.id < other.id ? 1 : -1))
  using older = openDatabase(`${file}.older`)
  migrate(older, `${file}.older`, migrations.slice(0, groups))
  const columns = older
    .query<{ name: string }, []>("SELECT name FROM pragma_table_info('runs')")
    .all()
    .map(({ name }) => name)
    .join(', ')
  older.run('ATTACH ? AS newer', [file])
  older.run('INSERT INTO bundles SELECT * FROM newer.bundles')
  older.run(`INSERT INTO runs (${columns}) SELECT ${columns} FROM newer.runs`)
  older.run('DETACH newer')
  migrate(older, `${file}.older`, migrations)
  const { runLists } = new Store(older)
  for (const given of combinations(['team', 'root_only', 'started_by'])) {
    const filter = { ...given, limit: 7, offset: 3 }
    const wanted = rows.filter(row => fits(row, filter)).map(({ id }) => id)
    const { rows: page, found } = runLists.list(filter)
    expect([given, page.map(({ id }): string => id), found]).toEqual([given, wanted.slice(3, 10), wanted.length])
  }
})

test('a list of many groups is whole and in its order, and asks no more than one of few', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  const { runLists } = new Store(db)
  const rows: ListedRow[] = []
  const insert = (schedule: number, state: string) =>
    rows.unshift(
      insertRun(db, {
        ...{ id: runIdAt(NOW + rows.length * 1_000, rows.length), parent_id: null, team: TEAMS[0]!, state },
        ...{ started_at: NOW, started_by: { kind: 'schedule', name: `nightly-${schedule}` } },
      }),
    )
  const asked = () => {
    const { page, count } = runLists.statements({ started_by: 'schedule', limit: 50, offset: 0 })!
    return [page.sql, count.sql, page.values.length, count.values.length]
  }
  for (let number = 0; number < 5; number++) insert(number, 'completed')
  const few = asked()
  const schedules = 1_000
  db.transaction(() => {
    for (let number = 0; number < schedules; number++) insert((number * 7) % schedules, 'completed')
    expect(runLists.isOfMany({ started_by: 'schedule:nightly-7' })).toBe(false)
    // Some of them have all of the newest runs.
    for (let number = 0; number < 600; number++) insert(number % 9, RUN_STATES[number % RUN_STATES.length]!)
    for (let number = 0; number < 30; number++) insert((number * 31) % schedules, 'failed')
  })()
  expect(asked()).toEqual(few)
  expect(runLists.isOfMany({ started_by: 'schedule' })).toBe(true)
  for (const state of [undefined, 'completed', 'failed', 'queued']) {
    for (const begins of [undefined, rows[100]!.id.slice(0, 8)]) {
      for (const [limit, offset] of [
        [1, 0],
        [50, 0],
        [50, 120],
        [7, 590],
        [100, 1_600],
        [50, 5_000],
      ] as const) {
        const given = { started_by: 'schedule', ...(state && { state }), ...(begins && { begins }) }
        const wanted = rows.filter(row => fits(row, given as Filter)).map(({ id }) => id)
        const { rows: page, found } = runLists.list({ ...given, limit, offset })
        expect([given, limit, offset, page.map(({ id }): string => id), found]).toEqual([
          ...[given, limit, offset, wanted.slice(offset, offset + limit), wanted.length],
        ])
      }
    }
  }
})

test('no list reads a whole table, and none sorts more than its pages', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  fill(db)
  const { runLists } = new Store(db)
  for (const given of [...combinations(), { state: 'running', trees: { only: false, roots: ['x'] } }]) {
    const statements = runLists.statements({ ...given, limit: 50, offset: 0 })
    for (const statement of statements ? [statements.page, statements.count] : []) {
      const plan = db
        .query<{ detail: string }, (string | number | null)[]>(`EXPLAIN QUERY PLAN ${statement.sql}`)
        .all(...statement.values)
        .map(({ detail }) => detail)
      expect([given, plan.filter(line => WHOLE.test(line))]).toEqual([given, []])
    }
  }
})

test('what a daemon asks at its start, and of its workspaces, reads no whole table', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  fill(db)
  const store = new Store(db)
  const open = store.runs.openRootIds()
  expect(open).toEqual(store.runs.openRoots().map(({ id }) => id))
  const counts = RUN_STATES.map(state => [...store.runLists.counts(state)].reduce((sum, part) => sum + part, 0))
  expect(counts.reduce((sum, count) => sum + count)).toBe(300)
})

test('a long list is counted up to 10,000', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  db.transaction(() => {
    for (let number = 0; number < 10_002; number++) {
      insertRun(db, {
        id: runIdAt(NOW + number, number),
        parent_id: null,
        team: TEAMS[0]!,
        state: 'completed',
        started_at: NOW,
      })
    }
  })()
  const { runLists } = new Store(db)
  for (const filter of [{}, { state: 'completed' }, { team: 'digest' }, { since: NOW }, { root_only: true }]) {
    expect(runLists.list({ ...filter, limit: 1, offset: 0 }).found).toBe(10_001)
  }
})
