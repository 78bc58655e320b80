// What becomes of triggers when this home is found to be a copy: all are paused, because the home that it was made from
// may start the same. A person resumes each, or says that the home was moved, which lifts these pauses.

import type { Database } from 'bun:sqlite'
import type { Trigger } from '../../firing/trigger.ts'

const BY = 'system'
const REASON = 'home copied'

/** Whether a pause is one that this made. */
export const isOfCopy = (paused: Trigger['paused']): boolean => paused?.by === BY && paused.reason === REASON

/** Called in the transaction that records the new place. */
export function pauseTriggers(db: Database, now: number): void {
  db.query(
    `UPDATE triggers SET paused = ?, next_at = NULL, revision = revision + 1
     WHERE removed_at IS NULL AND paused IS NULL`,
  ).run(JSON.stringify({ since: now, by: BY, reason: REASON }))
}

/**
 * Lifts those pauses. The cursors are as they were, so that what came meanwhile is judged as after a downtime. Returns how
 * many.
 */
export function liftPauses(db: Database): number {
  // The next look sees that they are due, and finds out when they are.
  return db
    .query(
      `UPDATE triggers SET paused = NULL, next_at = CASE WHEN enabled = 1 AND kind = 'schedule' THEN cursor END, revision = revision + 1
       WHERE removed_at IS NULL AND paused ->> 'by' = ? AND paused ->> 'reason' = ?`,
    )
    .run(BY, REASON).changes
}
