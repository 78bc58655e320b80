// Removes a whole tree from memory: before it is read again, or because a fault ended it.

import type { RunError } from '../../core/core.ts'
import { giveUpPlace } from './key-place.ts'
import type { Work } from './state.ts'

/** Takes a tree out of memory and releases the slots of its phases. */
export function dropTree({ agenda, lives, notes, slots }: Work, root: string): void {
  notes.touch(root)
  agenda.drop(root)
  for (const live of lives.values()) {
    if (live.root !== root) continue
    lives.delete(live.id)
    slots.drop(live)
    for (const position of live.phases.keys()) if (live.holdsSlot(position)) slots.release()
  }
}

/** Ends a tree by changing only its rows, after a fault that prevents steps from ending it. */
export function abandonTree(work: Work, root: string, error: RunError): void {
  const { lives, notes, store } = work
  const row = store.runs.get(root)
  if (!row || row.completed_at !== null) return dropTree(work, root)
  const at = work.world.now()
  for (const live of lives.values()) {
    if (live.root !== root) continue
    for (const [position, { state, attempt }] of live.phases.entries()) {
      if (state === 'running') notes.after({ kind: 'abort', runId: live.id, position, attempt })
    }
  }
  dropTree(work, root)
  const reviews = store.reviews.closeTree(root, at)
  const phases = store.phases.abandon(root, at)
  const runs = store.runs.abandon(root, error, at)
  try {
    notes.changedRows(runs, phases)
    notes.changedRows([], reviews, 'review')
  } catch {
    // The team cannot be read, so these changes cannot be reported to the hub.
  }
  giveUpPlace(work, root)
  for (const run of runs) notes.after({ kind: 'ended', runId: run.id, root, settled: false })
}
