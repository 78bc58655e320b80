// A top run starts at the request of a caller, or continues in a new process.

import { CadreError } from '../../../error.ts'
import { createQueuedRun, createRun, type NewRun } from '../run/create.ts'
import type { EngineState } from '../state/state.ts'
import { type Key, queueForKey } from './concurrency-key.ts'
import { loadTree } from './load.ts'
import { takeSteps } from './step.ts'
import { stopRun } from './stop.ts'

/** Starts a top run, whose id no run has. */
export function startTopRun(engine: EngineState, run: NewRun, key: Key | null): void {
  const { bundles } = engine.store
  if (!bundles.has(run.bundle.id)) bundles.insert(run.bundle.id, JSON.stringify(run.bundle.json()))
  if (key && !run.notStarted) {
    createQueuedRun(engine, run)
    return queueForKey(engine, run.id, key)
  }
  createRun(engine, run, null)
  if (run.notStarted) {
    const ending = { state: 'failed', reason: 'not_started', hard: true, error: run.notStarted } as const
    stopRun(engine, engine.lives.get(run.id)!, ending)
  }
  takeSteps(engine, run.id)
}

/** Continues the tree of a top run, unless it has ended. Throws `not_found`, and when it cannot be read. */
export function continueTree(engine: EngineState, root: string): void {
  const row = engine.store.runs.get(root)
  if (!row) throw new CadreError('not_found', `there is no run ${root}`)
  if (row.completed_at !== null) return
  const claim = row.state === 'queued' ? engine.store.concurrencyKeys.get(root) : null
  if (claim) return engine.notes.after({ kind: 'key', key: claim.key })
  loadTree(engine, root)
  takeSteps(engine, root)
}
