// Rules that a run database keeps at any moment, after any crash. Each query returns the rows that break its rule, and
// none in a sound database. Tests run them after every kill.

import type { Database } from 'bun:sqlite'
import { START } from '../core/core.ts'
import { toleratedBelow } from './phase-reads.ts'

export const INVARIANTS: Record<string, string> = {
  'a run has a completion time exactly when it has ended':
    "SELECT id FROM runs WHERE (state IN ('completed', 'failed', 'cancelled')) <> (completed_at IS NOT NULL)",
  'a phase has a completion time exactly when it has ended':
    "SELECT run_id, position FROM phases WHERE (state IN ('completed', 'failed', 'skipped', 'cancelled')) <> (completed_at IS NOT NULL)",
  'nothing ends before it starts': `
    SELECT id FROM runs WHERE completed_at < started_at
    UNION ALL SELECT run_id FROM phases WHERE completed_at < started_at`,
  'lived time is counted of a run exactly while it goes on, and never backwards': `
    SELECT id FROM runs WHERE lived_ms < 0 OR (lived_since IS NOT NULL AND (completed_at IS NOT NULL OR state = 'queued'))
      OR (lived_ms IS NOT NULL AND lived_since IS NULL AND completed_at IS NULL AND state <> 'queued')`,
  'a completed run says how many failures it passed over, and no other run does': `
    SELECT id FROM runs WHERE tolerated <> (
      SELECT count(*) FROM phases WHERE phases.run_id = runs.id AND phases.state = 'failed') + (${toleratedBelow('runs.id')})
      OR (tolerated IS NOT NULL AND state <> 'completed')`,
  'an ended run has no open phase': `
    SELECT runs.id FROM runs JOIN phases ON phases.run_id = runs.id
    WHERE runs.completed_at IS NOT NULL AND phases.completed_at IS NULL`,
  'an ended phase has no open sub-run': `
    SELECT child.id FROM runs AS child JOIN phases ON phases.run_id = child.parent_id AND phases.position = child.parent_position
    WHERE child.completed_at IS NULL AND phases.completed_at IS NOT NULL`,
  'a run is in the group of its team and of what started it': `
    SELECT runs.id FROM runs LEFT JOIN run_groups ON run_groups.id = group_id
    WHERE run_groups.team IS NOT runs.team OR is_top <> (parent_id IS NULL)
      OR starter <> iif(parent_id IS NULL, coalesce(started_by ->> 'kind', 'unknown'), '')
      OR starter_name <> coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by', '')`,
  'an open sub-run belongs to an open phase that was started': `
    SELECT child.id FROM runs AS child JOIN phases ON phases.run_id = child.parent_id AND phases.position = child.parent_position
    WHERE child.completed_at IS NULL AND phases.state NOT IN ('running', 'awaiting_input', 'pending')`,
  'a run waits exactly when one of its phases does, or when nobody has approved yet that it begins': `
    SELECT id FROM runs WHERE completed_at IS NULL AND state <> 'queued' AND (state = 'awaiting_input') <> (
      EXISTS (SELECT 1 FROM phases WHERE run_id = id AND state = 'awaiting_input')
      OR EXISTS (SELECT 1 FROM reviews WHERE run_id = runs.id AND position = ${START} AND reviews.state = 'pending'))`,
  'nothing of a run that waits for its approval has begun in this attempt': `
    SELECT runs.id FROM runs JOIN reviews ON run_id = runs.id AND position = ${START} AND reviews.state = 'pending'
    WHERE kind <> 'start' OR parent_id IS NOT NULL OR runs.review IS NULL OR reviews.attempt <> runs.attempt
      OR EXISTS (SELECT 1 FROM phases WHERE phases.run_id = runs.id AND phases.state IN ('running', 'awaiting_input'))`,
  'a completed run has no open and no cancelled phase': `
    SELECT id FROM runs WHERE state = 'completed' AND EXISTS (
      SELECT 1 FROM phases WHERE run_id = id AND state IN ('pending', 'running', 'awaiting_input', 'cancelled'))`,
  'depth, call path, root and parent agree': `
    SELECT child.id FROM runs AS child LEFT JOIN runs AS parent ON parent.id = child.parent_id
    WHERE child.call_depth <> coalesce(parent.call_depth + 1, 0)
       OR child.root_id <> coalesce(parent.root_id, child.id)
       OR json_array_length(child.call_path) <> child.call_depth + 1
       OR (parent.id IS NOT NULL AND substr(child.tree_key, 1, length(child.tree_key) - 9) <> parent.tree_key)`,
  'a completed phase was attempted, or a person completed it': `
    SELECT run_id FROM phases WHERE state = 'completed' AND attempt < 1
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.run_id = phases.run_id AND reviews.position = phases.position AND reviews.decision = 'complete')`,
  'an earlier attempt belongs to a phase that is not before it, and does not end before it starts': `
    SELECT attempts.run_id FROM attempts LEFT JOIN phases USING (run_id, position)
    WHERE phases.attempt IS NULL OR attempts.attempt > phases.attempt OR attempts.ended_at < attempts.started_at`,
  'only the last turn of a phase is open, and one in which it was attempted': `
    SELECT turns.run_id FROM turns LEFT JOIN phases USING (run_id, position)
    WHERE phases.attempt IS NULL OR (turns.completed_at IS NULL AND (phases.attempt < 1 OR EXISTS (
      SELECT 1 FROM turns AS later WHERE later.run_id = turns.run_id AND later.position = turns.position AND later.turn > turns.turn)))`,
  'a phase that waits for its next turn has no open one': `
    SELECT turns.run_id FROM turns JOIN phases USING (run_id, position)
    WHERE phases.state = 'pending' AND phases.reason = 'repeat' AND turns.completed_at IS NULL`,
  'an item of a map has at most one sub-run': `
    SELECT parent_id FROM runs WHERE parent_id IS NOT NULL GROUP BY parent_id, parent_position, item HAVING count(*) > 1`,
  'a phase that waits for a person has an open review or an open sub-run': `
    SELECT phases.run_id FROM phases WHERE state = 'awaiting_input'
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.run_id = phases.run_id AND reviews.position = phases.position AND reviews.state = 'pending')
      AND NOT EXISTS (SELECT 1 FROM runs WHERE parent_id = phases.run_id AND parent_position = phases.position AND completed_at IS NULL)`,
  'a phase has at most one open review, of its current attempt, and only while it waits': `
    SELECT reviews.run_id FROM reviews JOIN phases USING (run_id, position)
    WHERE reviews.state = 'pending' AND (phases.state <> 'awaiting_input' OR reviews.attempt <> phases.attempt)
    UNION ALL SELECT run_id FROM reviews WHERE state = 'pending' GROUP BY run_id, position HAVING count(*) > 1`,
  'a phase waits exactly when it has an open review or a sub-run that waits': `
    SELECT run_id FROM phases WHERE completed_at IS NULL AND (state = 'awaiting_input') <> (
      EXISTS (SELECT 1 FROM runs WHERE parent_id = run_id AND parent_position = position AND runs.state = 'awaiting_input')
      OR EXISTS (SELECT 1 FROM reviews WHERE reviews.run_id = phases.run_id AND reviews.position = phases.position AND reviews.state = 'pending'))`,
  'a failed run has a failed phase or another reason': `
    SELECT id FROM runs WHERE state = 'failed' AND coalesce(reason, '') NOT IN ('timeout', 'outputs', 'internal')
      AND NOT EXISTS (SELECT 1 FROM phases WHERE run_id = id AND state = 'failed')`,
  'a run says that a phase of it has failed, and that it has written': `
    SELECT run_id FROM phases JOIN runs ON id = run_id WHERE phases.state = 'failed' AND has_failed IS NULL
    UNION ALL SELECT run_id FROM receipts JOIN runs ON id = run_id WHERE has_written IS NULL`,
  'only files of synced runs are sent to the hub': `
    SELECT run_id FROM uploads JOIN runs ON id = run_id WHERE synced = 0`,
  'only an open run has been asked to end': 'SELECT id FROM runs WHERE ending IS NOT NULL AND completed_at IS NOT NULL',
  'only a sub-run that was opened again is queued, or a top run that waits for its key': `
    SELECT id FROM runs WHERE state = 'queued' AND CASE WHEN parent_id IS NOT NULL THEN attempt < 2
      ELSE NOT EXISTS (SELECT 1 FROM key_places WHERE run_id = id AND holds = 0) END`,
  'a run holds or awaits its key until it ends, and waits for it exactly while it is queued': `
    SELECT id FROM key_places JOIN runs ON id = run_id
    WHERE completed_at IS NOT NULL OR parent_id IS NOT NULL OR (holds = 0) <> (state = 'queued')`,
  'no key is held by more runs than the last of them allows': `
    SELECT key FROM key_places WHERE holds = 1 GROUP BY key HAVING count(*) > max(most)`,
  'the clock of a run is stopped only while a person is asked, or an outside write is in doubt': `
    SELECT id FROM runs WHERE (time_left IS NOT NULL AND state <> 'awaiting_input' AND NOT (state = 'running' AND EXISTS (SELECT 1 FROM receipts JOIN runs AS writer ON writer.id = receipts.run_id WHERE writer.root_id = runs.root_id))) OR (deadline IS NOT NULL AND time_left IS NOT NULL)
      OR (completed_at IS NOT NULL AND (deadline IS NOT NULL OR time_left IS NOT NULL))`,
  'the clock of a phase is stopped only while a person is asked, or an outside write is in doubt': `
    SELECT run_id FROM phases WHERE (time_left IS NOT NULL AND state <> 'awaiting_input' AND NOT (state = 'running' AND EXISTS
      (SELECT 1 FROM runs JOIN runs AS writer ON writer.root_id = runs.root_id JOIN receipts ON receipts.run_id = writer.id
       WHERE runs.id = phases.run_id)))
      OR (deadline IS NOT NULL AND (time_left IS NOT NULL OR state NOT IN ('running', 'awaiting_input')))`,
  'what a completed phase wrote outside is known, or a person has answered for it': `
    SELECT receipts.run_id FROM receipts JOIN phases USING (run_id, position)
    WHERE (phases.state = 'completed' OR (phases.state = 'skipped' AND phases.reason = 'person')) AND receipts.state <> 'done'
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.run_id = phases.run_id AND reviews.position = phases.position AND reviews.state = 'decided')`,
  'no receipt belongs to an attempt that has not started': `
    SELECT receipts.run_id FROM receipts JOIN phases USING (run_id, position) WHERE receipts.attempt > phases.attempt`,
  'a sub-run of a map has the key of its item': `
    SELECT runs.id FROM runs JOIN items ON items.run_id = parent_id AND items.position = parent_position AND items.item = runs.item
      JOIN phases ON phases.run_id = parent_id AND phases.position = parent_position AND total IS NOT NULL
    WHERE items.key <> run_name`,
  'a sub-run whose item is gone has ended': `
    SELECT id FROM runs WHERE parent_id IS NOT NULL AND run_name IS NOT NULL AND completed_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM items WHERE run_id = parent_id AND position = parent_position AND items.item = runs.item)`,
  'sub-runs have the order of their items in the tree': `
    SELECT id FROM (SELECT id, tree_key, lag(tree_key) OVER (PARTITION BY parent_id, parent_position ORDER BY item) AS before
      FROM runs WHERE parent_id IS NOT NULL) WHERE before >= tree_key`,
  'a completed phase has data, and of the others only a failed one may': `
    SELECT run_id FROM phases WHERE (state = 'completed') <> (data IS NOT NULL)
      AND completed_at IS NOT NULL AND NOT (state = 'failed' AND data IS NOT NULL)`,
}

/** The rules that `db` breaks, each with the number of rows that break it. */
export function brokenInvariants(db: Database): { rule: string; rows: number }[] {
  return Object.entries(INVARIANTS)
    .map(([rule, sql]) => ({ rule, rows: db.query(sql).all().length }))
    .filter(({ rows }) => rows > 0)
}
