// Searches in runs: what they find, that they find a run as soon as it was started, and that the index follows what is
// changed and deleted, survives a loss, and is made anew for another copy of the database.

import { constants, Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase, openRunDatabase, readMigrations } from '../../db/open.ts'
import { createLog } from '../../lib/log/log.ts'
import { listRunsHere, Reads, Store } from '../../lib/run/engine.ts'
import { find } from '../../lib/run/search/find.ts'
import {
  forgetChanges,
  keptIn,
  noteChanges,
  notIndexed,
  offerRuns,
  SearchIndex,
} from '../../lib/run/search/search-index.ts'
import { rarestTerms } from '../../lib/run/search/terms.ts'
import { folder } from '../support/folder.ts'
import { insertRun, runIdAt } from '../support/listed-runs.ts'

const migrations = await readMigrations(`${import.meta.dir}/../../db/daemon/migrations`)
const NOW = Date.now() - 3_600_000
const PAGE = { limit: 50, offset: 0 }

interface World extends Disposable {
  db: Database
  index: SearchIndex
  home: string
}

function world(home = folder(), fill: (db: Database) => void = () => {}): World {
  const db = openRunDatabase(join(home, 'daemon.db'), migrations)
  fill(db)
  const runs = openDatabase(join(home, 'daemon.db'), { readonly: true })
  const index = new SearchIndex(join(home, 'search.db'), runs)
  const close = () => {
    for (const each of [index, runs, db]) each.close()
  }
  return { db, index, home, [Symbol.dispose]: close }
}

function fillAll({ db, index }: Pick<World, 'db' | 'index'>): void {
  offerRuns(db)
  while (index.fillSome()) {}
}

const isIndexed = (db: Database): boolean => notIndexed(db, keptIn(db)) === 0

/** The numbers of the runs that a search finds, by the index and by looking at all; both must be the same. */
function found({ db, index }: World, search: string, filter: object = {}): number[] {
  const numbers = (ids: readonly string[]) => ids.map(id => Number.parseInt(id.slice(-12), 16))
  const { rows } = find(db, index, { ...PAGE, ...filter, search })
  const here = listRunsHere(new Store(db), { ...PAGE, ...filter, search })
  const ids = rows.map(({ id }) => id)
  expect(here.runs.map(({ run_id }) => run_id)).toEqual(ids)
  return numbers(ids)
}

function run(db: Database, number: number, more: Partial<Parameters<typeof insertRun>[1]> = {}) {
  const row = insertRun(db, {
    id: runIdAt(NOW + number, number),
    parent_id: null,
    team: '@acme/digest',
    state: 'completed',
    started_at: NOW + number,
    ...more,
  })
  noted(db, 'id = ?', row.id)
  return row
}

/** Notes runs as a commit of the engine does that changed them. */
function noted(db: Database, where: string, ...values: string[]): void {
  const rows = db.query<{ number: number }, string[]>(`SELECT rowid AS number FROM runs WHERE ${where}`).all(...values)
  noteChanges(db, new Set(rows.map(({ number }) => number)))
}

function failLeaf(db: Database, runId: string, message: string): void {
  db.query(`INSERT INTO phases (run_id, position, state, attempt, failures) VALUES (?, 0, 'running', 1, 0)`).run(runId)
  db.query("UPDATE phases SET state = 'failed', error = ? WHERE run_id = ?").run(
    JSON.stringify({ code: 'vendor_error', message }),
    runId,
  )
}

/** Runs 1 to 6: what each has that the others do not. */
function some(db: Database): void {
  run(db, 1, { run_name: 'Monday report' })
  run(db, 2, { inputs: { ticket: 'KEY-17', note: 'say "hello" AND (NEAR) 100% _x_ *' } })
  const third = run(db, 3, { state: 'failed', error: { code: 'timeout', message: 'Ärger with grün' } })
  run(db, 4, { team: '@other/notes', parent_id: third.id, inputs: { ticket: 'BELOW-1' } })
  const fifth = run(db, 5, { parent_id: third.id, state: 'failed' })
  failLeaf(db, fifth.id, 'GET /items/9: 503')
  run(db, 6, { state: 'running', inputs: { long: `${'x'.repeat(5_000)} too-far` } })
}

const WANTED: [search: string, wanted: number[], filter?: object][] = [
  ['monday', [1]],
  ['Y REP', [1]],
  ['key-17', [2]],
  ['KEY-17', [2], { state: 'completed' }],
  ['KEY-17', [], { state: 'failed' }],
  ['"hello"', [2]],
  ['hello" AND (', [2]],
  ['" OR "', []],
  ['100%', [2]],
  ['_x_', [2]],
  ['*', [2]],
  ['%', [2]],
  ['"', [2]],
  ['(NEAR)', [2]],
  ['ÄRGER', [3]],
  ['grün', [3]],
  ['BELOW-1', []],
  ['items/9', [5]],
  ['503', [5], { team: 'digest' }],
  ['503', [], { root_only: true }],
  ['other/no', [4]],
  ['too-far', []],
  [runIdAt(NOW + 4, 4), [4]],
  [runIdAt(NOW + 4, 4).slice(9), [4]],
  ['digest', [6, 5, 3, 2, 1]],
  ['digest', [6, 3, 2, 1], { root_only: true, team: '@acme/digest' }],
  ['digest', [6], { state: 'running' }],
  ['digest', [6, 5], { since: NOW + 5 }],
  ['digest', [], { team: 'nobody' }],
  ['digest', [3], { begins: runIdAt(NOW + 3, 3).slice(0, 13) }],
  ['rü', [3]],
  ['Mo', [1]],
  ['rt', [1], { state: 'completed' }],
  ['\x02@acme/digest\x02', []],
]

test('each text is found where it is, with and without the index', () => {
  using it = world(undefined, some)
  for (const when of ['before', 'after']) {
    for (const [search, wanted, filter] of WANTED) {
      expect([when, search, filter, found(it, search, filter)]).toEqual([when, search, filter, wanted])
    }
    fillAll(it)
  }
})

test('a run that has all terms of a text is not found where it does not have the text', () => {
  using it = world(undefined, db => {
    run(db, 1, { run_name: 'abcd bcde' })
    run(db, 2, { run_name: 'abcde', team: '@acme/digest-1' })
    run(db, 3, { run_name: 'abcde', team: '@acme/digest-12' })
  })
  fillAll(it)
  expect(found(it, 'abcde')).toEqual([3, 2])
  expect(found(it, 'abcde', { team: '@acme/digest-1' })).toEqual([2])
  expect(found(it, 'cd bcd')).toEqual([1])
})

test('the index is asked for the rarest terms of a text', () => {
  const sample = ['ticket-0', 'ticket-1', 'ticket-2', 'ticket-25'].join('\0')
  expect(rarestTerms('ticket-2500', sample)).toEqual(['250', '500', '-25'])
  expect(rarestTerms('ticket', '')).toEqual(['tic', 'ick', 'cke'])
  expect(rarestTerms('aaaaa', sample)).toEqual(['aaa'])
  expect(rarestTerms('\u{1f600}ab', sample)).toEqual(['\u{1f600}ab'])
})

test('a run that began late is found by the time when it began', () => {
  using it = world(undefined, db => {
    run(db, 1, { started_at: NOW + 600_000 })
    run(db, 2)
  })
  fillAll(it)
  expect(found(it, 'digest', { since: NOW + 500_000 })).toEqual([1])
  expect(found(it, 'di', { since: NOW + 500_000 })).toEqual([1])
})

test('a home that was there before the index is filled, and lists say until when', () => {
  using it = world(undefined, db => {
    db.transaction(() => {
      for (let number = 1; number <= 2_500; number++) run(db, number, { run_name: `old-${number}.` })
    })()
  })
  const search = (text: string) => find(it.db, it.index, { ...PAGE, search: text })
  expect(search('old-7.')).toMatchObject({ found: 0, indexedUntil: NOW + 1 })
  offerRuns(it.db)
  it.index.fillSome()
  expect(search('old-7.')).toMatchObject({ found: 1, indexedUntil: NOW + 201 })
  fillAll(it)
  const whole = search('old-2400.')
  expect([whole.found, 'indexedUntil' in whole]).toEqual([1, false])
  expect(search('digest').found).toBe(2_500)
})

test('a list says until when the index has what is left, whatever was deleted', () => {
  using it = world(undefined, db => {
    run(db, 1)
    run(db, 2)
  })
  fillAll(it)
  it.db.transaction(() => {
    it.db.query('DELETE FROM runs WHERE id = ?').run(runIdAt(NOW + 1, 1))
    for (let number = 3; number <= 2_101; number++) run(it.db, number)
  })()
  expect(find(it.db, it.index, { ...PAGE, search: 'digest' }).indexedUntil).toBe(NOW + 3)
})

test('after many runs were deleted a search counts and shows only runs that are there', () => {
  using it = world(undefined, db =>
    db.transaction(() => {
      for (let number = 1; number <= 3_000; number++) run(db, number, number % 2 ? {} : { team: '@other/digest' })
    })(),
  )
  fillAll(it)
  // More than a search looks at by itself, and the newest, which would fill its first page.
  it.db.query('DELETE FROM runs WHERE id >= ?').run(runIdAt(NOW + 601, 601))
  const searches: [search: string, filter: object, wanted: number][] = [
    ['digest', {}, 600],
    ['ig', {}, 600],
    ['digest', { team: '@other/digest' }, 300],
    ['digest', { since: NOW + 101 }, 500],
    ['di', { since: NOW + 101 }, 500],
  ]
  for (const [search, filter, wanted] of searches) {
    const { rows, found: count, ...more } = find(it.db, it.index, { ...PAGE, ...filter, search })
    expect([search, filter, rows.length, count, more]).toEqual([search, filter, 50, wanted, {}])
    const here = listRunsHere(new Store(it.db), { ...PAGE, ...filter, search })
    expect(rows.map(({ id }) => `${id}`)).toEqual(here.runs.map(({ run_id }) => run_id))
  }
})

test('a digit is found only in the texts of runs, in whatever state they are', () => {
  const at = 0x19a_aaaa_aaaa
  const states = ['queued', 'running', 'awaiting_input', 'completed', 'failed', 'cancelled']
  using it = world(undefined, db => {
    for (const [index, state] of states.entries()) run(db, 0xa0 + index, { id: runIdAt(at, 0xaa + index), state })
  })
  for (const _ of ['before', 'after']) {
    for (const digit of '23456') expect([digit, found(it, digit)]).toEqual([digit, []])
    for (const state of states) expect(found(it, 'a', { state })).toEqual([0xaa + states.indexOf(state)])
    fillAll(it)
  }
  // Above so many runs a digit is looked for in the terms of the index.
  expect(it.index.db.query("SELECT term FROM terms WHERE term >= '2' AND term < '7'").all()).toEqual([])
})

test('the text of a deleted run leaves the file of the index', () => {
  using it = world(undefined, db => {
    for (let number = 1; number <= 400; number++) run(db, number, { run_name: `report ${number}` })
    run(db, 401, { run_name: 'private жжжж' })
  })
  const holds = () => readFileSync(join(it.home, 'search.db')).includes('private жжжж')
  const id = runIdAt(NOW + 401, 401)
  fillAll(it)
  it.index.keep()
  expect(holds()).toBe(true)
  it.db.query('DELETE FROM runs WHERE id = ?').run(id)
  fillAll(it)
  it.index.keep()
  expect(holds()).toBe(false)
  expect(found(it, 'report 399')).toEqual([399])
})

test('changes and deletions are found at once, and leave the index', () => {
  using it = world(undefined, some)
  fillAll(it)
  const texts = () => it.index.db.query<{ n: number }, []>('SELECT count(*) AS n FROM texts').get()!.n
  expect(texts()).toBe(6)
  const id = (number: number) => runIdAt(NOW + number, number)
  it.db
    .query("UPDATE runs SET state = 'failed', error = ?, completed_at = 1 WHERE id = ?")
    .run('{"message":"late news"}', id(6))
  noted(it.db, 'id = ?', id(6))
  it.db.query('DELETE FROM runs WHERE id = ?').run(id(1))
  for (const _ of ['before', 'after']) {
    expect(found(it, 'late news')).toEqual([6])
    expect(found(it, 'digest', { state: 'running' })).toEqual([])
    expect(found(it, 'digest', { state: 'failed' })).toEqual([6, 5, 3])
    expect(found(it, 'monday')).toEqual([])
    fillAll(it)
  }
  expect(texts()).toBe(5)
  run(it.db, 7, { run_name: 'in place of another' })
  expect(found(it, 'in place of another')).toEqual([7])
})

test('runs above the index are found and leave no note of a change', () => {
  using it = world(undefined, some)
  fillAll(it)
  const notes = () => it.db.query<{ n: number }, []>('SELECT count(*) AS n FROM search_changes').get()!.n
  run(it.db, 7, { state: 'running', run_name: 'short' })
  failLeaf(it.db, runIdAt(NOW + 7, 7), 'out of paper')
  it.db.query("UPDATE runs SET state = 'failed' WHERE id = ?").run(runIdAt(NOW + 7, 7))
  noted(it.db, 'id = ?', runIdAt(NOW + 7, 7))
  run(it.db, 8, { run_name: 'gone' })
  it.db.query('DELETE FROM runs WHERE id = ?').run(runIdAt(NOW + 8, 8))
  expect(notes()).toBe(0)
  for (const _ of ['before', 'after']) {
    expect(found(it, 'short', { state: 'failed' })).toEqual([7])
    expect(found(it, 'out of paper')).toEqual([7])
    expect(found(it, 'gone')).toEqual([])
    fillAll(it)
  }
  it.db.query("UPDATE runs SET state = 'completed' WHERE id = ?").run(runIdAt(NOW + 7, 7))
  noted(it.db, 'id = ?', runIdAt(NOW + 7, 7))
  expect(notes()).toBe(1)
})

test('a run that takes the number of a deleted one is found in its place', () => {
  using it = world(undefined, some)
  run(it.db, 7, { run_name: 'the former' })
  fillAll(it)
  const number = (n: number) =>
    it.db.query<{ rowid: number }, [string]>('SELECT rowid FROM runs WHERE id = ?').get(runIdAt(NOW + n, n))!.rowid
  const former = number(7)
  it.db.query('DELETE FROM runs WHERE id = ?').run(runIdAt(NOW + 7, 7))
  fillAll(it)
  run(it.db, 8, { run_name: 'the latter' })
  expect(number(8)).toBe(former)
  for (const _ of ['before', 'after']) {
    expect(found(it, 'the latter')).toEqual([8])
    expect(found(it, 'the former')).toEqual([])
    fillAll(it)
  }
})

test('the changes that are indexed on disk are forgotten, but for the last one', () => {
  using it = world(undefined, some)
  fillAll(it)
  it.db.run("UPDATE runs SET state = 'cancelled'")
  noted(it.db, 'true')
  fillAll(it)
  expect(isIndexed(it.db)).toBe(false)
  expect(forgetChanges(it.db, it.index.keep())).toBe(false)
  expect(isIndexed(it.db)).toBe(true)
  const rows = () => it.db.query<{ seq: number }, []>('SELECT seq FROM search_changes').all()
  expect(rows()).toHaveLength(1)
  run(it.db, 7)
  expect(isIndexed(it.db)).toBe(false)
  expect(found(it, runIdAt(NOW + 7, 7))).toEqual([7])
})

test('the index goes on after a restart, also when the process ended between its two files', () => {
  const home = folder()
  {
    using it = world(home, some)
    fillAll(it)
    it.index.keep()
  }
  {
    using it = world(home)
    expect(it.index.db.query('SELECT count(*) AS n FROM texts').get()).toEqual({ n: 6 })
    forgetChanges(it.db, it.index.keep())
  }
  {
    using it = world(home)
    expect(it.index.db.query('SELECT count(*) AS n FROM texts').get()).toEqual({ n: 6 })
    run(it.db, 7, { run_name: 'seventh' })
    fillAll(it)
    it.index.keep()
  }
  using it = world(home)
  expect(it.index.db.query('SELECT count(*) AS n FROM texts').get()).toEqual({ n: 7 })
  fillAll(it)
  expect(found(it, 'seventh')).toEqual([7])
})

test.each(['lost', 'damaged', 'of a later copy'])('an index that is %s is made anew', how => {
  const home = folder()
  const [database, index] = [join(home, 'daemon.db'), join(home, 'search.db')]
  {
    using it = world(home, some)
    fillAll(it)
    forgetChanges(it.db, it.index.keep())
    it.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    copyFileSync(database, `${database}.older`)
    for (let round = 0; round < 2; round++) {
      run(it.db, 7 + round, { run_name: `only there ${round}` })
      fillAll(it)
      forgetChanges(it.db, it.index.keep())
    }
  }
  if (how === 'damaged') writeFileSync(index, 'not a database, but long enough to be taken for one'.repeat(100))
  if (how === 'lost') Bun.spawnSync(['rm', index])
  if (how === 'of a later copy') copyFileSync(`${database}.older`, database)
  using it = world(home, db => run(db, 9, { run_name: 'since then' }))
  fillAll(it)
  expect(found(it, 'since then')).toEqual([9])
  expect(found(it, 'monday')).toEqual([1])
  expect(found(it, 'only there')).toEqual(how === 'of a later copy' ? [] : [8, 7])
})

/** Overwrites the pages of a database that nobody has open, from one page on. */
function damage(file: string, firstPage: number): void {
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0xab, (firstPage - 1) * bytes.readUInt16BE(16)))
  for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
}

function readsOf(home: string, db: Database): Reads {
  const files = { database: join(home, 'daemon.db'), index: join(home, 'search.db') }
  return new Reads({ db, ...files, log: createLog({ level: 'error' }), isBusy: () => false })
}

test('after a checkpoint the database itself has what was committed', async () => {
  const home = folder()
  const file = join(home, 'daemon.db')
  using db = openRunDatabase(file, migrations)
  const reads = readsOf(home, db)
  // Without a lock, and so without the write-ahead log.
  const stored = () => {
    using own = new Database(
      `${Bun.pathToFileURL(file)}?immutable=1`,
      constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI,
    )
    return own.query("SELECT value FROM meta WHERE key = 'noted'").all()
  }
  try {
    db.run("INSERT INTO meta (key, value) VALUES ('noted', 'yes')")
    expect(stored()).toEqual([])
    await reads.checkpoint()
    expect(stored()).toEqual([{ value: 'yes' }])
    await reads.close()
    // A thread that fails fails nobody.
    db.close()
    rmSync(home, { recursive: true })
    await reads.checkpoint()
  } finally {
    await reads.close()
  }
})

test('work that waits for a checkpoint after each step gives others their turn, however soon the thread answers', async () => {
  const home = folder()
  using db = openRunDatabase(join(home, 'daemon.db'), migrations)
  const reads = readsOf(home, db)
  try {
    await reads.checkpoint()
    for (let step = 0; step < 20; step++) {
      let hadTurn = false
      const checkpoint = reads.checkpoint()
      setImmediate(() => {
        hadTurn = true
      })
      // By then the thread has answered.
      Bun.sleepSync(5)
      await checkpoint
      expect([step, hadTurn]).toEqual([step, true])
    }
  } finally {
    await reads.close()
  }
})

test('an index is made anew wherever its file is damaged', async () => {
  const home = folder()
  const file = join(home, 'search.db')
  {
    using it = world(home, db => {
      for (let number = 1; number <= 300; number++) run(db, number, { run_name: `report ${number}.` })
    })
    fillAll(it)
    forgetChanges(it.db, it.index.keep())
  }
  copyFileSync(file, `${file}.whole`)
  const pages = readFileSync(file).readUInt32BE(28)
  expect(pages).toBeGreaterThan(20)
  // Those of the marks are read at the start, and those of the texts by a search.
  using db = openRunDatabase(join(home, 'daemon.db'), migrations)
  for (const page of [1, 2, 3, 5, 10, 20]) {
    copyFileSync(`${file}.whole`, file)
    damage(file, page)
    const reads = readsOf(home, db)
    try {
      expect((await reads.list({ ...PAGE, since: NOW + 300 })).found).toBe(1)
      expect([page, (await reads.list({ ...PAGE, search: 'report 7.' })).found]).toEqual([page, 1])
      expect([page, (await reads.list({ ...PAGE, search: 'report' })).found]).toEqual([page, 300])
      await reads.close()
      expect([page, (await reads.list({ ...PAGE, search: 'report 9.' })).found]).toEqual([page, 1])
    } finally {
      await reads.close()
    }
  }
})

test('runs since a moment are listed, and a search says why it fails, where the index cannot be opened', async () => {
  const home = folder()
  using db = openRunDatabase(join(home, 'daemon.db'), migrations)
  some(db)
  mkdirSync(join(home, 'search.db'))
  const reads = readsOf(home, db)
  try {
    expect((await reads.list({ ...PAGE, since: NOW + 6 })).found).toBe(1)
    const error = await reads.list({ ...PAGE, search: 'monday' }).catch((error: Error) => error.message)
    expect(error).toMatch(/^the runs could not be read: [^\n]+; ask again/)
    expect(error).not.toContain(' at ')
  } finally {
    await reads.close()
  }
})

test('a thread answers searches, fills the index, and is started again when it has died', async () => {
  const home = folder()
  using db = openRunDatabase(join(home, 'daemon.db'), migrations)
  some(db)
  const reads = readsOf(home, db)
  try {
    const { rows } = await reads.list({ ...PAGE, search: 'monday' })
    expect(rows.map(({ run_name }) => run_name)).toEqual(['Monday report'])
    while (!isIndexed(db)) await Bun.sleep(10)
    run(db, 7, { run_name: 'just now' })
    expect((await reads.list({ ...PAGE, search: 'just now' })).found).toBe(1)
    expect((await reads.list({ ...PAGE, since: NOW + 7 })).found).toBe(1)
    expect((await reads.list({ limit: 1, offset: 20_000 })).rows).toEqual([])
    await reads.close()
    expect((await reads.list({ ...PAGE, search: 'key-17' })).found).toBe(1)
  } finally {
    await reads.close()
  }
})
