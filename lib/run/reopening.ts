// Opening again what has ended. These statements alone take a run or a phase out of a terminal state, and each makes it
// a new attempt; `resume` and the new attempt of a phase above are the only ones who ask for it. Runs that they change
// are seldom in memory, so they say themselves what changed.

import type { Machine } from './machine.ts'
import type { RunRow } from './records.ts'
import type { RunStore } from './store.ts'

/** What of a run is needed to say that it changed. */
export type ChangedRun = Pick<RunRow, 'id' | 'root_id' | 'synced' | 'bundle_id' | 'team_key'>

const CHANGED = 'id, root_id, synced, bundle_id, team_key'
const QUEUED = `state = 'queued', attempt = attempt + 1, reason = NULL, error = NULL, outputs = NULL,
  completed_at = NULL, ending = NULL`
const PENDING = `state = 'pending', reason = NULL, failures = 0, due_at = NULL, completed_at = NULL,
  error = NULL, text = NULL, data = NULL, files = NULL`
/** A run and the sub-runs of its team phases, at any depth: they have no key, those of maps have one. */
const WHOLE = `WITH RECURSIVE whole (id) AS (
  SELECT ?1 UNION ALL SELECT runs.id FROM runs JOIN whole ON runs.parent_id = whole.id WHERE runs.run_name IS NULL)`

interface Place {
  run_id: string
  position: number
}

/** Opens an ended top run for its new attempt. */
export function requeueRun({ db }: RunStore, id: string): void {
  db.query(`UPDATE runs SET ${QUEUED} WHERE id = ? AND completed_at IS NOT NULL`).run(id)
}

/** Begins the new attempt of a run: what completed stays, the rest is open again. Gives the positions that are. */
export function reopenRun({ db }: RunStore, id: string, at: number, deadline: number | null): number[] {
  db.query(
    `UPDATE runs SET state = 'running', started_at = max(?2, coalesce(started_at, 0)), deadline = ?3, time_left = NULL
     WHERE id = ?1 AND state = 'queued'`,
  ).run(id, at, deadline)
  return db
    .query<{ position: number }, [string]>(
      `UPDATE phases SET ${PENDING}
       WHERE run_id = ? AND (state IN ('failed', 'cancelled') OR (state = 'skipped' AND reason = 'upstream'))
       RETURNING position`,
    )
    .all(id)
    .map(row => row.position)
}

/** Opens a phase again, whatever it came to. The items of a map are to be evaluated anew. */
export function openPhase(machine: Machine, run: RunRow, position: number): void {
  const { db } = machine.store
  db.query(`UPDATE phases SET ${PENDING} WHERE run_id = ? AND position = ?`).run(run.id, position)
  db.query('DELETE FROM items WHERE run_id = ? AND position = ?').run(run.id, position)
  tell(machine, [], [{ run_id: run.id, position }])
}

/**
 * Opens everything in a sub-run again. Sub-runs of its maps stay as they ended until the items are evaluated anew: which
 * of them belong to it then is not known before.
 */
export function openWhole(machine: Machine, runId: string): void {
  const { db } = machine.store
  const phases = db
    .query<Place, [string]>(
      `${WHOLE} UPDATE phases SET ${PENDING} WHERE run_id IN (SELECT id FROM whole) RETURNING run_id, position`,
    )
    .all(runId)
  db.query(`${WHOLE} DELETE FROM items WHERE run_id IN (SELECT id FROM whole)`).run(runId)
  const runs = db
    .query<ChangedRun, [string]>(
      `${WHOLE} UPDATE runs SET ${QUEUED} WHERE id IN (SELECT id FROM whole) AND completed_at IS NOT NULL
       RETURNING ${CHANGED}`,
    )
    .all(runId)
  tell(machine, runs, phases)
}

/** Opens the sub-runs that did not complete for a new attempt of the phase above; `items` is how many count. */
export function requeueChildren(machine: Machine, runId: string, position: number, items: number): void {
  const runs = machine.store.db
    .query<ChangedRun, [string, number, number]>(
      `UPDATE runs SET ${QUEUED}
       WHERE parent_id = ? AND parent_position = ? AND item < ? AND state IN ('failed', 'cancelled') RETURNING ${CHANGED}`,
    )
    .all(runId, position, items)
  tell(machine, runs, [])
}

/** Ends the runs below a phase that wait for an attempt which does not come any more, and what was open in them. */
export function cancelQueued(machine: Machine, { root_id, tree_key }: RunRow, position: number): void {
  const { db } = machine.store
  const prefix = tree_key + position.toString(36).padStart(3, '0')
  const at = machine.host.now()
  const below = "root_id = ?1 AND tree_key > ?2 AND tree_key < ?2 || '~' AND state = 'queued' AND completed_at IS NULL"
  const phases = db
    .query<Place, [string, string, number]>(
      `UPDATE phases SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)), due_at = NULL
       WHERE completed_at IS NULL AND run_id IN (SELECT id FROM runs WHERE ${below}) RETURNING run_id, position`,
    )
    .all(root_id, prefix, at)
  const runs = db
    .query<ChangedRun, [string, string, number]>(
      `UPDATE runs SET state = 'cancelled', reason = 'parent', completed_at = max(?3, coalesce(started_at, 0)) WHERE ${below}
       RETURNING ${CHANGED}`,
    )
    .all(root_id, prefix, at)
  tell(machine, runs, phases)
}

/** Says what changed: runs first, as the hub takes no phase of a run that it does not know. */
export function tell(machine: Machine, runs: readonly ChangedRun[], phases: readonly Place[]): void {
  const { store, host } = machine
  const known = new Map(runs.map(run => [run.id, run]))
  const place = (run: ChangedRun) => ({ row: run, team: host.bundle(run.bundle_id).team(run.team_key) })
  for (const run of runs) host.changed(place(run), null)
  for (const { run_id, position } of phases) host.changed(place(known.get(run_id) ?? store.run(run_id)!), position)
}
