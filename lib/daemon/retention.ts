// Runs that are over and old are deleted with all that belongs to them: rows, logs, artifacts. A tree goes as a whole.

import { rm } from 'node:fs/promises'
import { CadreError, messageOf } from '../error.ts'
import { runEnded } from '../run/transitions.ts'
import type { Daemon } from './daemon.ts'

const DAY_MS = 24 * 3_600_000
const DEFAULT_DAYS = 30
const SWEEP_MS = 3_600_000
/** Runs that are removed at once. */
const BATCH = 200

/** Deletes the tree of an ended top run. Throws `not_found`, `invalid_state`. */
export async function deleteTree(daemon: Daemon, runId: string): Promise<void> {
  const { db, engine } = daemon
  const { state, parent_run_id, root_run_id } = engine.record(runId)
  if (parent_run_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: delete its top run ${root_run_id}`)
  }
  if (!runEnded(state)) throw new CadreError('invalid_state', `run ${runId} is ${state}: cancel it first`)
  // Leaves first, files before rows, a batch at a time: were this cut short, what is left is still a tree that can be
  // deleted, and other calls run in between.
  for (;;) {
    const batch = db
      .query<{ id: string }, [string, number]>('SELECT id FROM runs WHERE root_id = ? ORDER BY tree_key DESC LIMIT ?')
      .all(runId, BATCH)
    if (batch.length === 0) return
    await Promise.all(batch.map(({ id }) => rm(engine.stateDir(id), { recursive: true, force: true })))
    db.transaction(() => {
      for (const { id } of batch) db.query('DELETE FROM runs WHERE id = ?').run(id)
    }).immediate()
  }
}

/** Gives the space of deleted rows back to the file system. */
function reclaim({ db }: Daemon): void {
  db.query('DELETE FROM bundles WHERE id NOT IN (SELECT DISTINCT bundle_id FROM runs)').run()
  db.run('PRAGMA incremental_vacuum')
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

/** Deletes what ended more than `days` ago, now and every hour. Returns what stops it. */
export function keepRuns(daemon: Daemon, days: number): () => void {
  let sweeping = false
  const sweep = async () => {
    if (sweeping) return
    sweeping = true
    try {
      const old = daemon.db
        .query<{ id: string }, [number]>('SELECT id FROM runs WHERE parent_id IS NULL AND completed_at < ? ORDER BY id')
        .all(Date.now() - days * DAY_MS)
      for (const { id } of old) await deleteTree(daemon, id)
      if (old.length > 0) reclaim(daemon)
      if (old.length > 0) daemon.log.info('old runs deleted', { runs: old.length, days })
    } catch (error) {
      daemon.log.warn('old runs could not be deleted', { error: messageOf(error) })
    } finally {
      sweeping = false
    }
  }
  void sweep()
  const timer = setInterval(sweep, SWEEP_MS)
  return () => clearInterval(timer)
}

/** `CADRE_KEEP_RUNS_DAYS`, default 30. */
export function daysToKeep(given: string | undefined): number {
  const days = given ? Number(given) : DEFAULT_DAYS
  if (Number.isFinite(days) && days > 0) return days
  throw new CadreError('invalid_request', `CADRE_KEEP_RUNS_DAYS: expected a number of days, got ${given}`)
}
