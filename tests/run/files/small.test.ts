// Small artifacts after a power cut: their files are removed, cut short or replaced, and come back from the database.

import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { migrate, openDatabase, readMigrations } from '../../../db/open.ts'
import { recordFiles, type SmallFile, writeArtifact } from '../../../lib/agent/files.ts'
import { createLog } from '../../../lib/log/log.ts'
import { restoreSmallFiles, SmallFileSync, stillNamed } from '../../../lib/run/files/small.ts'
import {
  allSmallFiles,
  dropSmallFilesBelow,
  dropSyncedFiles,
  putSmallFiles,
  unsyncedFiles,
} from '../../../lib/run/store/small-files.ts'
import { folder } from '../../support/folder.ts'

const migrations = await readMigrations(join(import.meta.dir, '../../../db/daemon/migrations'))

/** A home with its database and one run, `r1`. */
function newHome() {
  const home = folder()
  const file = join(home, 'daemon.db')
  const db = openDatabase(file)
  migrate(db, file, migrations)
  const columns = db.query<{ name: string; type: string }, []>('PRAGMA table_info(runs)').all()
  const values = columns.map(({ type }) => (type === 'INTEGER' ? 0 : ''))
  db.run('INSERT INTO bundles (id, json) VALUES (?, ?)', ['', '{}'])
  const marks = columns.map(() => '?').join(', ')
  db.run(`INSERT INTO runs (${columns.map(({ name }) => name).join(', ')}) VALUES (${marks})`, values)
  db.run(`UPDATE runs SET id = 'r1'`)
  const lines: string[] = []
  const log = createLog({ format: 'json', write: line => lines.push(line) })
  const stateDirOf = (runId: string) => join(home, 'runs', runId)
  // Rows of these tests are not sealed.
  const open = (_: string, bytes: Uint8Array) => bytes
  return { home, db, log, lines, stateDirOf, open, stateDir: stateDirOf('r1') }
}

async function writeSmall(home: { db: Database; stateDir: string }, files: Record<string, string>, at = 0) {
  const small: SmallFile[] = []
  for (const [name, text] of Object.entries(files)) {
    await writeArtifact(home.stateDir, 'p', name, text, undefined, file => small.push(file))
  }
  putSmallFiles(home.db, 'r1', small, at)
}

const rows = (db: Database) => [...allSmallFiles(db)].map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])
/** Whoever opens it as a file waits for ever: nobody writes to it. */
const pipe = (path: string) => expect(Bun.spawnSync(['mkfifo', path]).success).toBe(true)
const write = async (change: () => void) => change()

test('files that are missing, cut short or older are made again; the others are not touched', async () => {
  const home = newHome()
  const files: Record<string, string> = {
    missing: 'm',
    short: 'short',
    empty: 'e',
    old: 'new',
    'deep/er': 'd',
    link: 'l',
    pipe: '',
    nothing: '',
  }
  await writeSmall(home, { ...files, fine: 'fine' })
  const at = (name: string) => join(home.stateDir, 'files/p', name)
  const before = statSync(at('fine')).ino
  rmSync(at('missing'))
  rmSync(at('deep'), { recursive: true })
  rmSync(at('nothing'))
  truncateSync(at('short'), 2)
  truncateSync(at('empty'), 0)
  writeFileSync(at('old'), 'old')
  rmSync(at('link'))
  const elsewhere = join(home.home, 'elsewhere')
  writeFileSync(elsewhere, 'l')
  symlinkSync(elsewhere, at('link'))
  rmSync(at('pipe'))
  pipe(at('pipe'))
  expect(await restoreSmallFiles(home.db, home)).toBe(8)
  for (const [name, text] of Object.entries(files)) expect(readFileSync(at(name), 'utf8')).toBe(text)
  expect(statSync(at('fine')).ino).toBe(before)
  expect(readFileSync(elsewhere, 'utf8')).toBe('l')
  expect(readdirSync(home.stateDir)).toEqual(['files'])
  expect(await restoreSmallFiles(home.db, home)).toBe(0)
  rmSync(home.stateDir, { recursive: true })
  expect(await restoreSmallFiles(home.db, home)).toBe(9)
})

test('more files than a page of rows are restored', async () => {
  const home = newHome()
  await writeSmall(home, Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`f${n}`, `${n}`])))
  rmSync(home.stateDir, { recursive: true })
  expect(await restoreSmallFiles(home.db, home)).toBe(200)
  expect(readFileSync(join(home.stateDir, 'files/p/f199'), 'utf8')).toBe('199')
})

test('a file that cannot be made again is logged once, keeps its row, and stops nothing', async () => {
  const home = newHome()
  await writeSmall(home, { 'a/x': '1', 'a/y': '2', b: '3' })
  rmSync(join(home.stateDir, 'files/p'), { recursive: true })
  mkdirSync(join(home.stateDir, 'files/p'))
  writeFileSync(join(home.stateDir, 'files/p/a'), 'a file')
  expect(await restoreSmallFiles(home.db, home)).toBe(1)
  expect(readFileSync(join(home.stateDir, 'files/p/b'), 'utf8')).toBe('3')
  expect(home.lines.filter(line => line.includes('could not be restored')).length).toBe(2)
  expect(home.lines.join('\n')).toContain('files/p/a is a file')
  expect(rows(home.db)).toHaveLength(3)
})

test('files that commands left are restored as well', async () => {
  const home = newHome()
  mkdirSync(join(home.stateDir, 'files/p/deep'), { recursive: true })
  writeFileSync(join(home.stateDir, 'files/p/deep/a'), 'a')
  const small: SmallFile[] = []
  await recordFiles(home.stateDir, 'p', { small: file => void small.push(file) })
  putSmallFiles(home.db, 'r1', small, 0)
  rmSync(home.stateDir, { recursive: true })
  expect(await restoreSmallFiles(home.db, home)).toBe(1)
  expect(readFileSync(join(home.stateDir, 'files/p/deep/a'), 'utf8')).toBe('a')
})

test('a row is replaced by a later one of its path, and forgotten with its phase, its item or its run', async () => {
  const { db } = newHome()
  const file = (path: string, text: string): SmallFile => ({ path, bytes: Buffer.from(text) })
  putSmallFiles(
    db,
    'r1',
    [file('files/p/a', '1'), file('files/p/a', '2'), file('files/p-q/a', '3'), file('files/p/k/b', '4')],
    0,
  )
  putSmallFiles(db, 'r1', [file('files/p/k2/b', '5'), file('files/p0', '6')], 0)
  dropSmallFilesBelow(db, 'r1', 'files/p/k')
  expect(rows(db).map(([path]) => path)).toEqual(['files/p/a', 'files/p-q/a', 'files/p/k2/b', 'files/p0'])
  dropSmallFilesBelow(db, 'r1', 'files/p')
  expect(rows(db)).toEqual([
    ['files/p-q/a', '3'],
    ['files/p0', '6'],
  ])
  db.run(`DELETE FROM runs WHERE id = 'r1'`)
  expect(rows(db)).toEqual([])
})

test('a file is settled when it is old enough; then the database forgets it', async () => {
  const home = newHome()
  let now = 1_000_000
  const settler = new SmallFileSync({ ...home, write, now: () => now })
  await writeSmall(home, { a: '1', b: '2' }, now)
  await writeSmall(home, { c: '3' }, now + 20_000)
  expect(await settler.tick()).toBe(0)
  now += 30_001
  expect(await settler.tick()).toBe(2)
  expect(rows(home.db)).toEqual([['files/p/c', '3']])
  // A clock that steps back delays it, and loses nothing.
  now -= 86_400_000
  expect(await settler.tick()).toBe(0)
  now += 86_400_000 + 20_000
  expect(await settler.tick()).toBe(1)
  expect(rows(home.db)).toEqual([])
  expect(readdirSync(join(home.stateDir, 'files/p')).sort()).toEqual(['a', 'b', 'c'])
})

test('a file that was written again while it was settled keeps its row', async () => {
  const home = newHome()
  await writeSmall(home, { a: 'first' })
  const settler = new SmallFileSync({
    ...home,
    now: () => 100_000,
    async write(change) {
      putSmallFiles(home.db, 'r1', [{ path: 'files/p/a', bytes: Buffer.from('second') }], 90_000)
      change()
    },
  })
  expect(await settler.tick()).toBe(1)
  expect(rows(home.db)).toEqual([['files/p/a', 'second']])
})

test('rows of removed or replaced files are dropped; files that cannot be synced keep their rows and delay no others', async () => {
  const home = newHome()
  const names = Array.from({ length: 250 }, (_, n) => `f${n}`)
  await writeSmall(home, Object.fromEntries(names.map(name => [name, name])))
  rmSync(join(home.stateDir, 'files/p/f0'))
  rmSync(join(home.stateDir, 'files/p/f1'))
  symlinkSync('/etc/hostname', join(home.stateDir, 'files/p/f1'))
  rmSync(join(home.stateDir, 'files/p/f2'))
  pipe(join(home.stateDir, 'files/p/f2'))
  let failing = true
  const stateDirOf = (runId: string) => (failing ? join(home.stateDir, 'x'.repeat(5_000)) : home.stateDirOf(runId))
  const settler = new SmallFileSync({ ...home, stateDirOf, write, now: () => 100_000 })
  expect(await settler.tick()).toBe(0)
  expect(home.lines).toHaveLength(1)
  failing = false
  expect(await settler.tick()).toBe(50)
  expect(await settler.tick()).toBe(200)
  expect(rows(home.db)).toEqual([])
})

test('a tick never throws, and two at once are one', async () => {
  const home = newHome()
  await writeSmall(home, { a: 'a' })
  let calls = 0
  const refuse = async () => {
    calls++
    throw new Error('closed')
  }
  const settler = new SmallFileSync({ ...home, write: refuse, now: () => 100_000 })
  expect(await Promise.all([settler.tick(), settler.tick()])).toEqual([0, 0])
  expect(calls).toBe(1)
  expect(home.lines.join()).toContain('closed')
  expect(rows(home.db)).toHaveLength(1)
})

test('only the last file of each path is kept', () => {
  const small = (path: string, text: string): SmallFile => ({ path, bytes: Buffer.from(text) })
  const record = (path: string, bytes: number) => ({ name: path, path, bytes, sha256: '' })
  expect(
    stillNamed(
      [small('a', '1'), small('a', '22'), small('large', '1'), small('unnamed', '1')],
      [record('a', 1), record('a', 2), record('large', 1), record('large', 100_000)],
    ),
  ).toEqual([small('a', '22')])
})

test('rows are found oldest first, and are dropped by number only', async () => {
  const { db } = newHome()
  const file = (path: string): SmallFile => ({ path, bytes: Buffer.from(path) })
  putSmallFiles(db, 'r1', [file('a'), file('b'), file('c')], 5)
  const found = unsyncedFiles(db, 6, 2)
  expect(found.map(({ path }) => path)).toEqual(['a', 'b'])
  expect(unsyncedFiles(db, 6, 2, found.at(-1)!.seq).map(({ path }) => path)).toEqual(['c'])
  expect(unsyncedFiles(db, 5, 9)).toEqual([])
  putSmallFiles(db, 'r1', [file('a')], 7)
  dropSyncedFiles(db, found)
  expect(rows(db).map(([path]) => path)).toEqual(['c', 'a'])
})
