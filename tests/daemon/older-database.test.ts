// A home whose database an older program has written, and which no process has opened for writing since.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate, openDatabase, readMigrations, versionOf } from '../../db/open.ts'
import { takeLock } from '../../lib/daemon/home/lock.ts'
import { command, files, killProcesses } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const migrations = await readMigrations(join(import.meta.dir, '../../db/daemon/migrations'))
const groups = migrations.findIndex(({ name }) => name.endsWith('_run_groups.sql'))
const TEAM = `name: '@test/hello'
version: 1.0.0
phases:
  - { name: hello, agent: exec, commands: [{ name: hello, run: echo hello }] }
  - name: each
    type: map
    items: '{{ [1, 2] }}'
    phases:
      - { name: may, agent: exec, on_failure: continue, commands: [{ name: c, run: exit 3 }] }
`
let older: string
let runId: string

beforeAll(async () => {
  older = folder()
  const ran = await command(['run', files({ 'team.yml': TEAM }), '--json'], { home: older })
  expect(ran.code).toBe(0)
  runId = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(ran.stdout)![0]
  putBack(join(older, 'daemon.db'), groups)
})
afterAll(killProcesses)

/** The same rows in a database of an earlier version. */
function putBack(file: string, version: number): void {
  const earlier = `${file}.earlier`
  const db = openDatabase(earlier)
  migrate(db, earlier, migrations.slice(0, version))
  const columnsOf = (schema: string, table: string) =>
    db
      .query<{ name: string }, []>(`SELECT name FROM ${schema}.pragma_table_info('${table}')`)
      .all()
      .map(({ name }) => name)
  db.run('PRAGMA foreign_keys = OFF')
  db.run('ATTACH ? AS newer', [file])
  for (const table of ['meta', 'bundles', 'runs', 'phases', 'audit', 'audit_chain']) {
    const columns = columnsOf('main', table).join(', ')
    db.run(`INSERT OR REPLACE INTO main.${table} (${columns}) SELECT ${columns} FROM newer.${table}`)
  }
  db.run('DETACH newer')
  db.close()
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
  cpSync(earlier, file)
  for (const end of ['', '-wal', '-shm']) rmSync(earlier + end, { force: true })
}

/** A copy of the older home for one command. */
function copy(): string {
  const home = folder()
  cpSync(older, home, { recursive: true })
  return home
}

function versionIn(home: string): number {
  using db = new Database(join(home, 'daemon.db'), { readonly: true })
  return versionOf(db)
}

const READS: (readonly [words: string, said: string])[] = [
  ['runs', '2 failed, tolerated'],
  ['tree RUN', '@test/hello'],
  ['resume RUN --plan', ''],
  ['logs RUN', 'hello'],
  ['why RUN', '2 of 2 items of each failed in phase may, which was passed over'],
  ['files RUN', ''],
  ['reviews', ''],
  ['workspaces', ''],
  ['schedules', ''],
  ['audit verify', ''],
  // Its lines tell ages, which differ between the two times that it is asked.
  ['audit list --json', 'runs/start'],
  ['status', ''],
]

test.each(READS)('%s reads it as a database of now', async (words, said) => {
  const home = copy()
  const args = words.replace('RUN', runId).split(' ')
  const { code, stdout, stderr } = await command(args, { home })
  const now = await command(args, { home })
  expect({ code, stdout, stderr }).toEqual({ code: now.code, stdout: now.stdout, stderr: now.stderr })
  expect(stdout).toContain(said)
  expect(stdout + stderr).not.toMatch(/no such|a fault of this program|older/)
  expect(versionIn(home)).toBe(migrations.length)
  expect(existsSync(join(home, `daemon.db.v${groups}.backup`))).toBe(true)
  expect(existsSync(join(home, 'daemon.lock'))).toBe(false)
})

test.each(['why', 'decide', 'schedules show'])('completion of %s leaves it as it is', async words => {
  const home = copy()
  const complete = async () => (await command(['complete', '--', ...words.split(' '), ''], { home })).stdout
  const runs = (said: string) => said.includes(runId)
  expect(runs(await complete())).toBe(false)
  expect(versionIn(home)).toBe(groups)
  expect(existsSync(join(home, `daemon.db.v${groups}.backup`))).toBe(false)
  // It lists them once another command has brought the database up to date.
  expect((await command(['runs'], { home })).code).toBe(0)
  expect(runs(await complete())).toBe(words === 'why')
})

test('several commands at once bring it up to date once, and all are answered', async () => {
  const home = copy()
  const all = await Promise.all(
    ['runs', 'runs', 'audit verify', 'workspaces'].map(each => command(each.split(' '), { home })),
  )
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0])
})

test('while a process of an older program holds the home, a command says so', async () => {
  const home = copy()
  const lock = takeLock(home, 'serve')
  try {
    lock.announce('http://127.0.0.1:9')
    const { code, stderr } = await command(['audit', 'verify'], { home })
    expect([code, stderr.includes('was written by an older program')]).toEqual([2, true])
    expect(stderr).toContain(`is held by process ${process.pid}`)
    expect(versionIn(home)).toBe(groups)
  } finally {
    lock.release()
  }
})
