// The cancel of a run. It also stops what executes while nothing can be recorded.

import { CadreError } from '../error.ts'
import type { Parts } from './parts.ts'
import { endQueued, isAsked, loadTree, outlasts, refuseStop, stopRun } from './steps/steps.ts'
import { type RunRecord, runRecord } from './views/views.ts'

/** See `Engine.cancel`. */
export async function cancelRun(
  parts: Parts,
  runId: string,
  reason: string,
  also: (() => void) | undefined,
): Promise<RunRecord> {
  const { journal, machine, store } = parts
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  const apply = () => {
    const now = refuseStop(machine, runId)
    also?.()
    if (now.state === 'queued') {
      endQueued(machine, now, { reason })
    } else {
      // A tree that `recover` left out is read and asked to end in the same change, so that it starts nothing again.
      if (!machine.lives.has(runId)) loadTree(machine, row.root_id)
      const live = machine.lives.get(runId)!
      stopRun(machine, live, { state: 'cancelled', reason, ...(isAsked(live) && { hard: true }) })
      machine.takeSteps(row.root_id)
    }
    return runRecord(store.runs.get(runId)!)
  }
  if (!journal.stalled) {
    try {
      return await journal.write({ root: row.root_id, apply, request: true })
    } catch (error) {
      if (!journal.stalled) throw error
    }
  }
  abortAttempts(parts, runId)
  // By the time the cancel can be recorded, the run may have ended by itself or by another cancel.
  const later = () => void (store.runs.isOpen(runId) && apply())
  void journal.write({ root: row.root_id, apply: later }).catch(() => {})
  return runRecord(store.runs.get(runId)!)
}

/** Aborts the attempts at and below a run, except those that clean up. A second cancel aborts those, too. */
function abortAttempts({ attempts, machine, store }: Parts, runId: string): void {
  const { root_id, tree_key } = refuseStop(machine, runId)
  const { lives } = machine
  const top = lives.get(runId)
  const again = top !== undefined && isAsked(top)
  attempts.abortRuns((id, position) => {
    const run = store.runs.get(id)
    if (run?.root_id !== root_id || !run.tree_key.startsWith(tree_key)) return false
    const live = lives.get(id)
    return again || !live || !outlasts(live, position, runId)
  })
}
