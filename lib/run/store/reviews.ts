// Table `reviews`: questions to people, one for each phase and attempt, and for each attempt of a run that is approved
// before it begins.

import type { Database } from 'bun:sqlite'
import type { MaskedText } from '../../secrets/masked.ts'
import { type ReviewRow, START } from '../core/core.ts'

export interface NewReview {
  run_id: string
  position: number
  attempt: number
  kind: ReviewRow['kind']
  reason: string
  prompt: MaskedText
  entries: readonly string[]
  /** What the commands of a gate printed and wrote; the same as before where the attempt asks again. */
  shown: MaskedText | null
  deadline: number | null
  at: number
}

export interface ReviewFilter {
  state?: string
  runId?: string
  /** Reviews whose id begins with this. */
  begins?: string
  /** One review, which is read with its large values. */
  reviewId?: string
  limit: number
  offset: number
}

export class Reviews {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Opens a review, or replaces the question of the review that the attempt already has. */
  open(review: NewReview): void {
    const { run_id, position, attempt, kind, reason, prompt, entries, shown, deadline, at } = review
    this.#db
      .query(
        `INSERT INTO reviews (id, run_id, position, attempt, kind, reason, prompt, entries, shown, state, deadline, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)
         ON CONFLICT (run_id, position, attempt) DO UPDATE SET
           kind = excluded.kind, reason = excluded.reason, prompt = excluded.prompt, entries = excluded.entries,
           state = 'pending', decision = NULL, decided_by = NULL, comment = NULL, decided_at = NULL,
           next = NULL, shown = coalesce(excluded.shown, shown), deadline = excluded.deadline`,
      )
      .run(
        ...[crypto.randomUUID(), run_id, position, attempt, kind, reason, prompt, JSON.stringify(entries)],
        ...[shown, deadline, at],
      )
  }

  get(id: string): ReviewRow | null {
    return this.#db.query<ReviewRow, [string]>('SELECT * FROM reviews WHERE id = ?').get(id)
  }

  pending(runId: string, position: number): ReviewRow | null {
    return this.#db
      .query<ReviewRow, [string, number]>(
        "SELECT * FROM reviews WHERE run_id = ? AND position = ? AND state = 'pending'",
      )
      .get(runId, position)
  }

  /** Records what the approval of a review leads to. False when it was decided, or asks something else by now. */
  tellNext({ id, kind }: Pick<ReviewRow, 'id' | 'kind'>, next: MaskedText): boolean {
    return (
      this.#db
        .query("UPDATE reviews SET next = ?3 WHERE id = ?1 AND kind = ?2 AND state = 'pending'")
        .run(id, kind, next).changes === 1
    )
  }

  /** Whether somebody has approved that the run begins. */
  isStartApproved(runId: string): boolean {
    return (
      this.#db
        .query("SELECT 1 FROM reviews WHERE run_id = ? AND position = ? AND decision = 'approve' LIMIT 1")
        .get(runId, START) !== null
    )
  }

  of(runId: string, position: number): ReviewRow[] {
    return this.#db
      .query<ReviewRow, [string, number]>('SELECT * FROM reviews WHERE run_id = ? AND position = ?')
      .all(runId, position)
  }

  decide(
    id: string,
    answer: { decision: string; by: MaskedText; comment: MaskedText | null; values: MaskedText | null; at: number },
  ): boolean {
    return (
      this.#db
        .query(
          `UPDATE reviews SET state = 'decided', decision = ?2, decided_by = ?3, comment = ?4, input = ?5, decided_at = ?6
           WHERE id = ?1 AND state = 'pending'`,
        )
        .run(id, answer.decision, answer.by, answer.comment, answer.values, answer.at).changes === 1
    )
  }

  /** Closes the review of a phase without an answer, because its run ends for another reason. */
  close(runId: string, position: number, at: number): void {
    this.#db
      .query(
        `UPDATE reviews SET state = 'decided', decision = 'cancelled', decided_at = ?3
         WHERE run_id = ?1 AND position = ?2 AND state = 'pending'`,
      )
      .run(runId, position, at)
  }

  closeTree(rootId: string, at: number): Pick<ReviewRow, 'run_id' | 'position'>[] {
    return this.#db
      .query<ReviewRow, [string, number]>(
        `UPDATE reviews SET state = 'decided', decision = 'cancelled', decided_at = ?2
         WHERE state = 'pending' AND run_id IN (SELECT id FROM runs WHERE root_id = ?1) RETURNING run_id, position`,
      )
      .all(rootId, at)
  }

  /** Open reviews whose deadline has passed. */
  due(now: number, after: { at: number; id: string }, limit: number) {
    return this.#db
      .query<{ id: string; run_id: string; root_id: string; at: number }, [number, number, string, number]>(
        `SELECT reviews.id, run_id, root_id, reviews.deadline AS at FROM reviews JOIN runs ON runs.id = run_id
         WHERE reviews.state = 'pending' AND reviews.deadline IS NOT NULL AND reviews.deadline <= ?1
           AND (reviews.deadline, reviews.id) > (?2, ?3)
         ORDER BY reviews.deadline, reviews.id LIMIT ?4`,
      )
      .all(now, after.at, after.id, limit)
  }

  nextDue(after: number): number | null {
    return this.#db
      .query<{ at: number | null }, [number]>(
        "SELECT min(deadline) AS at FROM reviews WHERE state = 'pending' AND deadline IS NOT NULL AND deadline > ?",
      )
      .get(after)!.at
  }

  /**
   * Newest first: in the order in which they were asked, whatever the clock was. Large prompts, entries and comments
   * are read only when `reviewId` names the review.
   */
  list(filter: ReviewFilter): { rows: ListedReview[]; total: number } {
    const where = `WHERE (?1 IS NULL OR reviews.state = ?1) AND (?2 IS NULL OR reviews.run_id = ?2)
      AND (?3 IS NULL OR reviews.id >= ?3 AND reviews.id < ?3 || '~') AND (?4 IS NULL OR reviews.id = ?4)`
    const { state = null, runId = null, begins = null, reviewId = null } = filter
    const given = [state, runId, begins, reviewId]
    const rows = this.#db
      .query<ListedReview, (string | number | null)[]>(
        `SELECT ${COLUMNS}, ${LARGE.map(sized).join(', ')}, runs.run_name, runs.team
         FROM reviews JOIN runs ON runs.id = reviews.run_id ${where}
         ORDER BY reviews.rowid DESC LIMIT ?5 OFFSET ?6`,
      )
      .all(...given, filter.limit, filter.offset)
    const { total } = this.#db
      .query<{ total: number }, (string | null)[]>(`SELECT count(*) AS total FROM reviews ${where}`)
      .get(...given)!
    return { rows, total }
  }
}

const COLUMNS = `reviews.id, run_id, position, reviews.attempt, kind, reviews.reason, reviews.state, decision, decided_by,
  NULL AS input, reviews.deadline, reviews.created_at, decided_at`

const LARGE = ['prompt', 'entries', 'next', 'shown', 'comment'] as const
type Sizes = Record<`${(typeof LARGE)[number]}_bytes`, number | null>

/** A review in a list. Its large values are null, and their number of bytes is given. */
export type ListedReview = ReviewRow & Sizes & { run_name: string | null; team: string }

/** A longer value is not read for a list. */
export const REVIEW_BYTES = 8 * 1024

const sized = (name: string) =>
  `CASE WHEN ?4 IS NOT NULL OR octet_length(reviews.${name}) <= ${REVIEW_BYTES} THEN reviews.${name} END AS ${name},
   octet_length(reviews.${name}) AS ${name}_bytes`
