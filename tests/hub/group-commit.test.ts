// Writes of the hub on SQLite that wait at the same time share one transaction, and none of them notices.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { GroupCommit } from '../../db/hub/group-commit.ts'
import { openDatabase } from '../../db/open.ts'
import { folder } from '../support/folder.ts'

let db: Database
let reader: Database
let commits: number
let writes: GroupCommit

beforeEach(() => {
  const file = join(folder(), 'hub.db')
  db = openDatabase(file)
  db.run('CREATE TABLE kept (name TEXT PRIMARY KEY)')
  reader = new Database(file, { readonly: true })
  commits = 0
  writes = new GroupCommit(db, () => commits++)
})
afterEach(() => {
  reader.close()
  db.close()
})

const insert = (name: string) => db.query('INSERT INTO kept VALUES (?)').run(name)
const add = (name: string) =>
  writes.write(async () => {
    insert(name)
    return name
  })
const kept = (of = reader) =>
  of
    .query<{ name: string }, []>('SELECT name FROM kept ORDER BY name')
    .all()
    .map(({ name }) => name)

test('writes that wait together share a commit, and each is durable when it is answered', async () => {
  const seen: string[][] = []
  await Promise.all(['a', 'b', 'c'].map(name => add(name).then(() => seen.push(kept()))))
  expect(commits).toBe(1)
  expect(seen).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
  expect(await add('d')).toBe('d')
  expect(commits).toBe(2)
})

test('a write that throws undoes what it did, and nothing else', async () => {
  const bad = writes.write(async () => {
    insert('half')
    throw new Error('thought better of it')
  })
  const answers = await Promise.allSettled([add('a'), bad, add('b'), add('a')])
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  expect(answers[1]).toMatchObject({ reason: { message: 'thought better of it' } })
  expect(answers[3]).toMatchObject({ reason: { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' } })
  expect(kept()).toEqual(['a', 'b'])
})

test('each write sees those before it, and runs alone', async () => {
  const order: string[] = []
  const slow = writes.write(async () => {
    order.push('slow begins')
    await Bun.sleep(5)
    insert('slow')
    order.push('slow ends')
  })
  const next = writes.write(async () => {
    order.push('next')
    return kept(db)
  })
  expect(await next).toEqual(['slow'])
  await slow
  expect(order).toEqual(['slow begins', 'slow ends', 'next'])
})

test('when SQLite rolls a transaction back, as on a full disk, only the write that caused it fails', async () => {
  const guilty = writes.write(async () => {
    db.run('ROLLBACK')
    throw new Error('database or disk is full')
  })
  const answers = await Promise.allSettled([add('a'), guilty, add('b')])
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(answers[1]).toMatchObject({ reason: { message: 'database or disk is full' } })
  expect(kept()).toEqual(['a', 'b'])
})

test('a database that another process has locked refuses, and takes writes when it is free again', async () => {
  db.run('PRAGMA busy_timeout = 0')
  const other = new Database(db.filename)
  other.run('BEGIN IMMEDIATE')
  const answers = await Promise.allSettled([add('a'), add('b')])
  for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'SQLITE_BUSY' } })
  other.run('ROLLBACK')
  other.close()
  expect(await add('c')).toBe('c')
  expect(kept()).toEqual(['c'])
})

test('what waits at the end is written, and a write after it is refused', async () => {
  const last = add('last')
  await writes.close()
  db.close()
  expect(await last).toBe('last')
  expect(await add('late').catch(error => error)).toMatchObject({ code: 'unavailable' })
  expect(kept()).toEqual(['last'])
})
