// Deletes an ended top run with everything that belongs to it: the runs below it, their rows, logs and files.

import { isDiskError } from '../../../db/open.ts'
import { CadreError } from '../../error.ts'
import { type Engine, runEnded } from '../../run/engine.ts'
import { OutboxRows } from '../link/outbox/outbox.ts'

/** The number of runs that are removed at once. */
const BATCH = 200

/** Deletes the tree of an ended top run. Throws `not_found`, `invalid_state`. */
export function deleteTree(engine: Engine, runId: string, also?: () => void): Promise<void> {
  return engine.deleteTree(runId, () => deleteAll(engine, runId, also))
}

/** `also` is called in the first transaction, which comes after the first files: they may be what fills the disk. */
async function deleteAll(engine: Engine, runId: string, also?: () => void): Promise<void> {
  const { db } = engine.store
  const outbox = new OutboxRows(db)
  const { state, parent_run_id, root_run_id } = engine.record(runId)
  if (parent_run_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: delete its top run ${root_run_id}`)
  }
  if (!runEnded(state)) throw new CadreError('invalid_state', `run ${runId} is ${state}: cancel it first`)
  // Leaves are deleted first, files before rows, one batch at a time. If this is interrupted, what is left is still a
  // tree that can be deleted. Other calls run between the batches.
  for (let first = true; ; first = false) {
    const batch = db
      .query<{ id: string }, [string, number]>('SELECT id FROM runs WHERE root_id = ? ORDER BY tree_key DESC LIMIT ?')
      .all(runId, BATCH)
    if (batch.length === 0) return
    await Promise.all(batch.map(({ id }) => engine.removeStateDir(id)))
    try {
      db.transaction(() => {
        if (first) also?.()
        for (const { id } of batch) {
          outbox.dropLog(id)
          db.query('DELETE FROM runs WHERE id = ?').run(id)
        }
      }).immediate()
    } catch (cause) {
      if (!isDiskError(cause)) throw cause
      // The remaining rows are still a tree that can be deleted.
      throw new CadreError('unavailable', 'the disk takes no more writes: free some space, then delete the run again', {
        cause,
      })
    }
  }
}
