// The journal alone: groups, what one unit does to the others of its group, and a disk that takes nothing.

import { expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase, openRunDatabase } from '../../db/open.ts'
import { CadreError } from '../../lib/error.ts'
import { createLog } from '../../lib/log/log.ts'
import { Journal, type Unit } from '../../lib/run/store/journal.ts'
import { folder } from '../support/folder.ts'

function journal() {
  const db = openDatabase(':memory:')
  db.run('CREATE TABLE notes (text TEXT)')
  const calls: string[] = []
  const following: Unit[] = []
  const hooks = {
    next: () => following.shift() ?? null,
    hasNext: () => following.length > 0,
    beforeUnit: () => {},
    afterUnit: () => {},
    unitUndone: ({ root }: Unit) => calls.push(`undone ${root}`),
    unitFailed: ({ root }: Unit) => calls.push(`failed ${root}`),
    beforeCommit: () => {},
    afterCommit: () => calls.push('commit'),
    afterRollback: () => calls.push('rollback'),
  }
  const note = (text: string) => db.query('INSERT INTO notes VALUES (?)').run(text).changes
  const unit = (text: string): Unit => ({ root: text, apply: () => note(text) })
  const notes = () =>
    db
      .query<{ text: string }, []>('SELECT text FROM notes')
      .all()
      .map(({ text }) => text)
  return {
    db,
    journal: new Journal(db, hooks, createLog({ write: () => {} }), 20),
    calls,
    following,
    note,
    unit,
    notes,
  }
}

test('what is queued in one turn is one commit', async () => {
  const { journal: j, calls, unit, notes } = journal()
  expect(await Promise.all(['a', 'b', 'c'].map(text => j.write(unit(text))))).toEqual([1, 1, 1])
  expect(notes()).toEqual(['a', 'b', 'c'])
  expect(calls).toEqual(['commit'])
})

test('what follows from a unit goes into the same commit', async () => {
  const { journal: j, calls, following, unit, notes } = journal()
  following.push(unit('b'), unit('c'))
  await j.write(unit('a'))
  expect(notes()).toEqual(['a', 'b', 'c'])
  expect(calls).toEqual(['commit'])
})

test('a request that is refused changes nothing, and the rest of its group stands', async () => {
  const { journal: j, calls, note, unit, notes } = journal()
  const refused = j.write({
    root: 'r',
    request: true,
    apply() {
      note('half')
      throw new CadreError('invalid_state', 'no further')
    },
  })
  const rest = ['a', 'b'].map(text => j.write(unit(text)))
  await expect(refused).rejects.toMatchObject({ code: 'invalid_state', message: 'no further' })
  expect(await Promise.all(rest)).toEqual([1, 1])
  expect(notes()).toEqual(['a', 'b'])
  expect(calls).toEqual(['undone r', 'commit'])
})

test('a unit that throws is applied once more, and then its run fails; the rest of its group stands', async () => {
  const { journal: j, calls, note, unit, notes } = journal()
  let applied = 0
  const failed = j.write({
    root: 'r',
    apply() {
      note(`try ${++applied}`)
      throw new Error('never')
    },
  })
  const rest = j.write(unit('a'))
  await expect(failed).rejects.toThrow('never')
  await rest
  expect(applied).toBe(2)
  expect(notes()).toEqual(['a'])
  expect(calls.filter(call => call !== 'commit')).toEqual(['undone r', 'rollback', 'undone r', 'failed r'])
})

test('what a group had applied before one of its units threw is applied again, and once', async () => {
  const { journal: j, calls, note, following, unit, notes } = journal()
  let applied = 0
  const before = ['a', 'b'].map((text, n) =>
    j.write({ root: text, request: n === 1, apply: () => note(text) && `${text} ${++applied}` }),
  )
  following.push({
    root: 'r',
    apply() {
      note('half')
      following.push(unit('c'))
      throw new Error('once')
    },
  })
  expect(await Promise.all(before)).toEqual(['a 3', 'b 4'])
  expect(notes()).toEqual(['a', 'b', 'c'])
  expect(calls).toEqual(['undone r', 'rollback', 'commit'])
})

test('a unit that throws once is applied again on what the rows say', async () => {
  const { journal: j, note, notes } = journal()
  let applied = 0
  const once = j.write({
    root: 'r',
    apply() {
      note(`try ${++applied}`)
      if (applied === 1) throw new Error('stale')
      return applied
    },
  })
  expect(await once).toBe(2)
  expect(notes()).toEqual(['try 2'])
})

test('while the disk accepts no writes, requests are refused and everything else waits in order', async () => {
  const { db, journal: j, calls, unit, notes } = journal()
  db.run('PRAGMA query_only = ON')
  const [first, second] = [j.write(unit('a')), j.write(unit('b'))]
  await expect(j.write({ ...unit('asked'), request: true })).rejects.toMatchObject({ code: 'unavailable' })
  expect(j.stalled).toContain('readonly')
  await expect(j.write({ ...unit('late'), request: true })).rejects.toMatchObject({ code: 'unavailable' })
  const third = j.write(unit('c'))
  db.run('PRAGMA query_only = OFF')
  await Promise.all([first, second, third])
  expect(notes()).toEqual(['a', 'b', 'c'])
  expect(j.stalled).toBeNull()
  expect(calls[0]).toBe('rollback')
  expect(calls.at(-1)).toBe('commit')
})

/** Open files without a name: SQLite removes its temporary files when it opens them. */
const unnamed = () =>
  readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith(' (deleted)')
    } catch {
      return false
    }
  }).length

test.if(process.platform === 'linux')('a large unit is undone without a file to undo it from', () => {
  const db = openRunDatabase(join(folder(), 'runs.db'), [])
  db.run('CREATE TABLE notes (text TEXT)')
  const insert = db.query('INSERT INTO notes VALUES (?)')
  for (let n = 0; n < 100; n++) insert.run('before'.padEnd(4_000))
  const before = unnamed()
  db.run('BEGIN IMMEDIATE')
  db.run('SAVEPOINT unit')
  db.run("UPDATE notes SET text = replace(text, 'before', 'during')")
  expect(unnamed()).toBe(before)
  db.run('ROLLBACK TO unit')
  db.run('RELEASE unit')
  db.run('COMMIT')
  expect(db.query("SELECT count(*) AS n FROM notes WHERE text LIKE 'before%'").get()).toEqual({ n: 100 })
  db.close()
})
