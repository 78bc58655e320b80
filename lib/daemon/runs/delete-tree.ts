// Deletes an ended top run with everything that belongs to it: the runs below it, their rows, logs and files. A deletion
// that has begun is recorded first, because it takes parts: whatever ends the process, what is left cannot be resumed, which
// would repeat what is no longer known to have been done, and the deletion goes on at the next start.

import { isDiskError } from '../../../db/open.ts'
import { CadreError, messageOf } from '../../error.ts'
import { type Engine, runEnded } from '../../run/engine.ts'
import { OutboxRows } from '../link/outbox/outbox.ts'
import type { Daemon } from './daemon.ts'

/** The number of runs that are removed at once, unless their rows take longer than this. */
const BATCH = 200
const ROWS_MS = 10

interface Also {
  /** Called in the transaction that records the deletion. */
  first?(): void
  /** Awaited between two transactions. */
  between?(): Promise<void>
}

/** Deletes the tree of an ended top run. Throws `not_found`, `invalid_state`, and `unavailable` on a full disk. */
export function deleteTree(engine: Engine, runId: string, also: Also = {}): Promise<void> {
  return engine.deleteTree(runId, () => deleteAll(engine, runId, also))
}

/** The same while the daemon does other work. A stop leaves the rest of a large tree to the next start. */
export function deleteInPassing({ engine, reads }: Daemon, runId: string, stop: AbortSignal): Promise<void> {
  const between = () => {
    stop.throwIfAborted()
    return reads.checkpoint()
  }
  return deleteTree(engine, runId, { between })
}

/** Goes on with the deletions that an earlier process has begun. */
export async function finishDeletions(daemon: Daemon, stop: AbortSignal): Promise<void> {
  const { engine, log } = daemon
  for (const run of engine.store.deletions.begun()) {
    try {
      await deleteInPassing(daemon, run, stop)
      log.info('the deletion of a run was finished', { run })
    } catch (error) {
      if (stop.aborted) return
      log.warn('the deletion of a run could not be finished', { run, error: messageOf(error) })
    }
  }
}

async function deleteAll(engine: Engine, runId: string, { first, between }: Also): Promise<void> {
  const { db, deletions } = engine.store
  const outbox = new OutboxRows(db)
  const { state, parent_run_id, root_run_id } = engine.record(runId)
  if (parent_run_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: delete its top run ${root_run_id}`)
  }
  if (!runEnded(state)) throw new CadreError('invalid_state', `run ${runId} is ${state}: cancel it first`)
  const next = () =>
    db
      .query<{ id: string }, [string, number]>('SELECT id FROM runs WHERE root_id = ? ORDER BY tree_key DESC LIMIT ?')
      .all(runId, BATCH)
  const removeFiles = (batch: readonly { id: string }[]) =>
    Promise.all(batch.map(({ id }) => engine.removeStateDir(id)))
  const begin = db.transaction(() => {
    first?.()
    deletions.begin(runId)
  })
  try {
    begin.immediate()
  } catch (error) {
    if (!isDiskError(error)) throw error
    // Its files may be what fills the disk.
    await removeFiles(next())
    unlessFull(() => begin.immediate())
  }
  // Leaves are deleted first, files before rows, one batch at a time. Other calls run between the batches.
  for (let batch = next(), isFirst = true; batch.length > 0; batch = next(), isFirst = false) {
    if (!isFirst) await between?.()
    await removeFiles(batch)
    const remove = db.transaction(() => {
      const until = performance.now() + ROWS_MS
      for (const { id } of batch) {
        outbox.dropLog(id)
        db.query('DELETE FROM runs WHERE id = ?').run(id)
        if (performance.now() > until) break
      }
    })
    unlessFull(() => remove.immediate())
  }
}

function unlessFull(write: () => void): void {
  try {
    write()
  } catch (cause) {
    if (!isDiskError(cause)) throw cause
    throw new CadreError('unavailable', 'the disk takes no more writes: free some space, then delete the run again', {
      cause,
    })
  }
}
