// Opening again what has ended. These statements alone take a run or a phase out of a terminal state, and each makes it
// a new attempt; `resume` and the new attempt of a phase above are the only ones who ask for it.

import type { RunStore } from './store.ts'

/** Opens the sub-runs that did not complete for a new attempt of the phase above. */
export function requeueChildren({ db }: RunStore, runId: string, position: number): void {
  db.query(
    `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
         completed_at = NULL, ending = NULL
       WHERE parent_id = ? AND parent_position = ? AND state IN ('failed', 'cancelled')`,
  ).run(runId, position)
}

/** Ends the runs below a phase that wait for an attempt which does not come any more, and what was open in them. */
export function cancelQueued({ db }: RunStore, rootId: string, treeKey: string, position: number, at: number): void {
  const prefix = treeKey + position.toString(36).padStart(3, '0')
  const below = "root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND state = 'queued' AND completed_at IS NULL"
  db.query(
    `UPDATE phases SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)), due_at = NULL
       WHERE completed_at IS NULL AND run_id IN (SELECT id FROM runs WHERE ${below})`,
  ).run(rootId, prefix, at)
  db.query(
    `UPDATE runs SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)) WHERE ${below}`,
  ).run(rootId, prefix, at)
}

/** Begins the new attempt of a run: what completed stays, the rest is open again. Gives the positions that are. */
export function reopenRun({ db }: RunStore, id: string, at: number, deadline: number | null): number[] {
  db.query(
    `UPDATE runs SET state = 'running', started_at = max(?2, coalesce(started_at, 0)), deadline = ?3, time_left = NULL
       WHERE id = ?1 AND state = 'queued'`,
  ).run(id, at, deadline)
  return db
    .query<{ position: number }, [string]>(
      `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
         error = NULL, text = NULL, data = NULL, files = NULL
       WHERE run_id = ? AND (state IN ('failed', 'cancelled') OR (state = 'skipped' AND reason = 'upstream'))
       RETURNING position`,
    )
    .all(id)
    .map(row => row.position)
}

/** Opens an ended run for its new attempt. */
export function requeueRun({ db }: RunStore, id: string): void {
  db.query(
    `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
         completed_at = NULL, ending = NULL
       WHERE id = ? AND completed_at IS NOT NULL`,
  ).run(id)
}

/** Opens a phase again, whatever it came to. */
export function openPhase({ db }: RunStore, runId: string, position: number): void {
  db.query(
    `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
         error = NULL, text = NULL, data = NULL, files = NULL
       WHERE run_id = ? AND position = ?`,
  ).run(runId, position)
}

/** Opens every run and phase below a phase again: its next attempt repeats them all. */
export function openSubtree({ db }: RunStore, rootId: string, treeKey: string, position: number): void {
  const prefix = treeKey + position.toString(36).padStart(3, '0')
  db.query(
    `UPDATE phases SET state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
         error = NULL, text = NULL, data = NULL, files = NULL
       WHERE run_id IN (SELECT id FROM runs WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~')`,
  ).run(rootId, prefix)
  db.query(
    `UPDATE runs SET state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
         completed_at = NULL, ending = NULL
       WHERE root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND completed_at IS NOT NULL`,
  ).run(rootId, prefix)
}
