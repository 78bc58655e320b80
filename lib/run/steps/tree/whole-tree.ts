// Takes a whole tree out of memory before it is read again, and ends a whole tree after a fault.

import type { RunError } from '../../core/core.ts'
import type { EngineState } from '../state/state.ts'
import { releaseKey } from './release-key.ts'

/** Takes a tree out of memory and releases the slots of its phases. */
export function dropTree({ agenda, lives, notes, slots }: EngineState, root: string): void {
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
export function abandonTree(engine: EngineState, root: string, error: RunError): void {
  const { lives, notes, store } = engine
  const row = store.runs.get(root)
  if (!row || row.completed_at !== null) return dropTree(engine, root)
  const at = engine.world.now()
  for (const live of lives.values()) {
    if (live.root !== root) continue
    for (const [position, { state, attempt }] of live.phases.entries()) {
      if (state === 'running') notes.after({ kind: 'abort', runId: live.id, position, attempt })
    }
  }
  dropTree(engine, root)
  const reviews = store.reviews.closeTree(root, at)
  const phases = store.phases.abandon(root, at)
  const runs = store.runs.abandon(row.root_id, engine.world.mask(row.root_id, error), at, engine.world.lived())
  try {
    notes.changedRows(runs, phases)
    notes.changedRows([], reviews, 'review')
  } catch {
    // The team cannot be read, so these changes cannot be reported to the hub.
  }
  releaseKey(engine, root)
  for (const run of runs) notes.after({ kind: 'ended', runId: run.id, root, settled: false })
}
