// The journal alone: what one change does to the others of its group.

import { expect, test } from 'bun:test'
import { openDatabase } from '../../db/open.ts'
import { CadreError } from '../../lib/error.ts'
import { createLog } from '../../lib/log.ts'
import { Journal } from '../../lib/run/journal.ts'

function journal() {
  const db = openDatabase(':memory:')
  db.run('CREATE TABLE notes (text TEXT)')
  const calls: string[] = []
  const hooks = {
    afterBegin: () => calls.push('begin'),
    beforeCommit: () => {},
    afterCommit: () => calls.push('commit'),
    afterRollback: () => calls.push('rollback'),
  }
  const note = (text: string) => db.query('INSERT INTO notes VALUES (?)').run(text).changes
  const notes = () => db.query<{ text: string }, []>('SELECT text FROM notes').all()
  return { journal: new Journal(db, hooks, createLog({ level: 'error' })), calls, note, notes }
}

test('what is queued in one turn is one commit', async () => {
  const { journal: j, calls, note, notes } = journal()
  expect(await Promise.all(['a', 'b', 'c'].map(text => j.write(() => note(text))))).toEqual([1, 1, 1])
  expect(notes().map(({ text }) => text)).toEqual(['a', 'b', 'c'])
  expect(calls).toEqual(['begin', 'commit'])
})

test('a refusal before anything was changed is answered without a rollback', async () => {
  const { journal: j, calls, note, notes } = journal()
  const refused = j.write(() => {
    throw new CadreError('invalid_state', 'too late')
  })
  const [, second] = await Promise.allSettled([refused, j.write(() => note('b'))])
  expect(second.status).toBe('fulfilled')
  await expect(refused).rejects.toMatchObject({ code: 'invalid_state' })
  expect(notes()).toEqual([{ text: 'b' }])
  expect(calls).toEqual(['begin', 'commit'])
})

test('a change that fails half-way is undone alone, and the rest of its group stands', async () => {
  const { journal: j, calls, note, notes } = journal()
  const failed = j.write(() => {
    note('half')
    throw new CadreError('invalid_state', 'no further')
  })
  const rest = ['a', 'b'].map(text => j.write(() => note(text)))
  await expect(failed).rejects.toMatchObject({ message: 'no further' })
  expect(await Promise.all(rest)).toEqual([1, 1])
  expect(notes().map(({ text }) => text)).toEqual(['a', 'b'])
  expect(calls).toEqual(['begin', 'rollback', 'begin', 'rollback', 'begin', 'commit', 'begin', 'commit'])
})
