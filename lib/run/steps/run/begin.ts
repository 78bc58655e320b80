// A top run begins at the request of a caller, or continues in a new process.

import { CadreError } from '../../../error.ts'
import { create, createQueued, type NewRun } from '../kinds/create.ts'
import type { Work } from '../state/state.ts'
import { type Key, takePlace } from './key.ts'
import { loadTree } from './load.ts'
import { follow } from './step.ts'

/** Begins a top run. Does nothing when the run id exists, so that a job that is delivered twice starts one run. */
export function beginTop(work: Work, run: NewRun, key: Key | null): void {
  const { bundles, runs } = work.store
  if (runs.get(run.id)) return
  if (!bundles.has(run.bundle.id)) bundles.insert(run.bundle.id, JSON.stringify(run.bundle.json()))
  if (key) {
    createQueued(work, run)
    return takePlace(work, run.id, key)
  }
  create(work, run, null)
  follow(work, run.id)
}

/** Continues the tree of a top run, unless it has ended. Throws `not_found`, and when it cannot be read. */
export function continueTree(work: Work, root: string): void {
  const row = work.store.runs.get(root)
  if (!row) throw new CadreError('not_found', `there is no run ${root}`)
  if (row.completed_at !== null) return
  const place = row.state === 'queued' ? work.store.keyPlaces.get(root) : null
  if (place) return work.notes.after({ kind: 'key', key: place.key })
  loadTree(work, root)
  follow(work, root)
}
