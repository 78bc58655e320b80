// The notes of units: a group that is durable takes its notes with it, and one that is undone leaves none.

import { expect, test } from 'bun:test'
import type { RunId } from '../../../lib/files/run-id.ts'
import { Notes } from '../../../lib/run/steps/state/notes.ts'
import type { World } from '../../../lib/run/steps/state/world.ts'
import type { ChangedRun, Store } from '../../../lib/run/store/store.ts'
import type { Team } from '../../../lib/team/team.ts'

const followed = { followed: () => true } as World
const [A, B, DURABLE] = ['a', 'b', 'durable'] as RunId[] as [RunId, RunId, RunId]

function noteUnit(notes: Notes, root: RunId): void {
  notes.startUnit(root)
  notes.after({ kind: 'clear', runId: root, position: 0 })
  notes.add({ run: { id: root, synced: 1 } as ChangedRun, team: {} as Team, position: null, kind: 'run' })
  notes.keepUnit()
}

test('a group takes what its units noted, once', () => {
  const notes = new Notes({} as Store, followed)
  noteUnit(notes, A)
  noteUnit(notes, B)
  const { effects, changes } = notes.takeGroup()
  expect([effects.length, changes.map(change => change.run.id)]).toEqual([2, [A, B]])
  expect(notes.takeGroup()).toEqual({ effects: [], changes: [] })
})

test('a group that is undone leaves no notes, and names its own trees alone', () => {
  const notes = new Notes({} as Store, followed)
  noteUnit(notes, DURABLE)
  notes.takeGroup()
  noteUnit(notes, A)
  expect(notes.dropGroup()).toEqual([A])
  expect(notes.dropGroup()).toEqual([])
  expect(notes.takeGroup()).toEqual({ effects: [], changes: [] })
})
