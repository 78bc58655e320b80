// Table `receipts`: outside writes. core/receipt.ts says what may become of one; no other file removes any.

import type { Database } from 'bun:sqlite'
import type { AgentResult } from '../../agent/agent-context.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { json, RECEIPT_FENCE, type ReceiptRow } from '../core/core.ts'
import { WHOLE } from './runs.ts'

/** An entry of a phase, which has one receipt. */
export interface EntryId {
  runId: string
  position: number
  entry: string
}

/** An entry about which another system could not be asked, and why. */
export type Unasked = EntryId & { reason: MaskedText }

/** A moment of a boot: see core/boot-clock.ts. */
interface Instant {
  boot: string
  at: number
}

/** Receipts that are `done` by the word of a person. */
const VOUCHED = "json_extract(result, '$.vouched')"

const DOUBT_VOUCHED = `UPDATE receipts SET state = 'unknown', result = NULL
  WHERE state IN (${RECEIPT_FENCE.repeat}) AND ${VOUCHED}`

const ENTRY = 'run_id = ?1 AND position = ?2 AND entry = ?3'

export class Receipts {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  of(runId: string, position: number): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string, number]>('SELECT * FROM receipts WHERE run_id = ? AND position = ? ORDER BY entry')
      .all(runId, position)
  }

  get({ runId, position, entry }: EntryId): ReceiptRow | null {
    return this.#db
      .query<ReceiptRow, [string, number, string]>(`SELECT * FROM receipts WHERE ${ENTRY}`)
      .get(runId, position, entry)
  }

  /** The receipts of a run, without those of the runs below it. */
  ofRun(runId: string): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string]>('SELECT * FROM receipts WHERE run_id = ? ORDER BY position, entry')
      .all(runId)
  }

  /** The receipts of a run and of all runs below it. */
  below(rootId: string, treeKey: string): ReceiptRow[] {
    return this.#db
      .query<ReceiptRow, [string, string]>(
        `SELECT receipts.* FROM runs INDEXED BY runs_has_written CROSS JOIN receipts ON run_id = id
         WHERE root_id = ?1 AND tree_key >= ?2 AND tree_key < ?2 || '~' AND has_written = 1
         ORDER BY tree_key, position, entry`,
      )
      .all(rootId, treeKey)
  }

  /**
   * Called before the first byte leaves. False when there is a receipt that is neither `presumed` nor `partial`, or the
   * attempt is no longer the live one.
   */
  send({ runId, position, entry }: EntryId, attempt: number, at: number, moment: Instant): boolean {
    return (
      this.#db
        .query(
          `INSERT INTO receipts (run_id, position, entry, state, attempt, sent_at, boot, ended)
           SELECT ?1, ?2, ?3, 'sent', ?4, ?5, ?6, ?7 FROM phases
           WHERE run_id = ?1 AND position = ?2 AND attempt = ?4 AND state = 'running'
           ON CONFLICT DO UPDATE SET state = 'sent', attempt = ?4, sent_at = ?5, boot = ?6, ended = ?7
             WHERE state IN (${RECEIPT_FENCE.send})`,
        )
        .run(runId, position, entry, attempt, at, moment.boot, moment.at).changes === 1
    )
  }

  /** The write is there. `copies` are other objects that carry its mark. */
  confirm(
    { runId, position, entry }: EntryId,
    done: { result: Masked<AgentResult>; at: number; copies: MaskedText | null },
  ): void {
    const { id = null, url = null } = done.result.external ?? {}
    this.#db
      .query(
        `UPDATE receipts SET state = 'done', result = ?4, external_id = ?5, external_url = ?6, done_at = ?7,
           copies = coalesce(?8, copies)
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.confirm})`,
      )
      .run(runId, position, entry, json(done.result), id, url, done.at, done.copies)
  }

  /** A person says that the write is there. The result of a part of it stays. */
  vouch({ runId, position, entry }: EntryId, result: Masked<AgentResult>, at: number): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'done', result = coalesce(result, ?4), done_at = ?5
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.confirm})`,
      )
      .run(runId, position, entry, json({ ...result, vouched: true }), at)
  }

  /** The phase is repeated: a person is asked again about each write that only a person has confirmed. */
  doubtVouched(runId: string, position: number): void {
    this.#db.query(`${DOUBT_VOUCHED} AND run_id = ? AND position = ?`).run(runId, position)
  }

  /** The same for all phases of a sub-run and of the runs below it. */
  doubtVouchedWhole(runId: string): void {
    this.#db.query(`${WHOLE} ${DOUBT_VOUCHED} AND run_id IN (SELECT id FROM whole)`).run(runId)
  }

  /** Whether only a person has confirmed a write of a phase. */
  hasVouched(runId: string, position: number): boolean {
    const some = this.#db.query(`SELECT 1 FROM receipts WHERE run_id = ? AND position = ? AND ${VOUCHED} LIMIT 1`)
    return some.get(runId, position) !== null
  }

  /** Attempt `sentBy` has written `result`, which is a part of the entry, and certainly not the rest. */
  part({ runId, position, entry }: EntryId, sentBy: number, result: Masked<AgentResult>): void {
    const { id = null, url = null } = result.external ?? {}
    this.#db
      .query(
        `UPDATE receipts SET state = 'partial', result = ?5, external_id = ?6, external_url = ?7
         WHERE ${ENTRY} AND attempt = ?4 AND state IN (${RECEIPT_FENCE.part})`,
      )
      .run(runId, position, entry, sentBy, json(result), id, url)
  }

  /**
   * The request of attempt `sentBy` ended without an answer, except for the result of a `part` of it. The receipt of a
   * later attempt stays as it is.
   */
  lose(
    { runId, position, entry }: EntryId,
    sentBy: number,
    moment: Instant,
    { request, part }: { request: MaskedText; part: Masked<AgentResult> | null },
  ): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'unknown', boot = ?5, ended = ?6, request = coalesce(nullif(?7, ''), request),
           result = coalesce(?8, result)
         WHERE ${ENTRY} AND attempt = ?4 AND state IN (${RECEIPT_FENCE.lose})`,
      )
      .run(runId, position, entry, sentBy, moment.boot, moment.at, request, part && json(part))
  }

  /**
   * The request of attempt `sentBy` was certainly not carried out. The request of an earlier attempt may still arrive, if
   * its absence was only presumed.
   */
  refuse({ runId, position, entry }: EntryId, sentBy: number): void {
    const fence = `${ENTRY} AND attempt = ?4 AND state IN (${RECEIPT_FENCE.refuse})`
    this.#db
      .query(`UPDATE receipts SET state = 'presumed' WHERE ${fence} AND presumed_at IS NOT NULL`)
      .run(runId, position, entry, sentBy)
    this.#remove(fence, [runId, position, entry, sentBy])
  }

  /** The other system, which sees every write at once, does not have it. */
  disprove({ runId, position, entry }: EntryId): void {
    this.#remove(`${ENTRY} AND state IN (${RECEIPT_FENCE.disprove})`, [runId, position, entry])
  }

  /** The other system did not show the write when the settling time was over. */
  presume({ runId, position, entry }: EntryId, at: number): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'presumed', presumed_at = coalesce(presumed_at, ?4),
           sent_first = coalesce(sent_first, sent_at)
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.presume})`,
      )
      .run(runId, position, entry, at)
  }

  /** A person has looked, and wants the entry sent again. Its receipt has no settling time. */
  order({ runId, position, entry }: EntryId): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'presumed', boot = NULL, ended = NULL
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.order})`,
      )
      .run(runId, position, entry)
  }

  /** A person wants the entry sent again, and no look-up shows the write. */
  clear({ runId, position, entry }: EntryId): void {
    this.#remove(`${ENTRY} AND state IN (${RECEIPT_FENCE.clear})`, [runId, position, entry])
  }

  /** Removes a receipt, except for the part of its write that is there. */
  #remove(fence: string, values: (string | number)[]): void {
    this.#db.query(`UPDATE receipts SET state = 'partial' WHERE ${fence} AND result IS NOT NULL`).run(...values)
    this.#db.query(`DELETE FROM receipts WHERE ${fence}`).run(...values)
  }

  /** The home that this one was copied from may have written the entry, with a receipt here or without one. */
  doubt({ runId, position, entry }: EntryId, attempt: number, at: number): void {
    this.#db
      .query(
        `INSERT INTO receipts (run_id, position, entry, state, attempt, sent_at)
         SELECT ?1, ?2, ?3, 'unknown', ?4, ?5 FROM phases
         WHERE run_id = ?1 AND position = ?2 AND attempt = ?4 AND state = 'running'
         ON CONFLICT DO UPDATE SET state = 'unknown', boot = NULL, ended = NULL WHERE state IN (${RECEIPT_FENCE.doubt})`,
      )
      .run(runId, position, entry, attempt, at)
  }

  /** The settling time of a receipt in doubt starts again at `moment`. */
  settleFrom({ runId, position, entry }: EntryId, moment: Instant): void {
    this.#db
      .query(`UPDATE receipts SET boot = ?4, ended = ?5 WHERE ${ENTRY} AND state = 'unknown'`)
      .run(runId, position, entry, moment.boot, moment.at)
  }

  /** Sets the other objects that carry the mark of a write that is done. */
  setCopies({ runId, position, entry }: EntryId, copies: MaskedText): void {
    this.#db
      .query(`UPDATE receipts SET copies = ?4 WHERE ${ENTRY} AND state = 'done'`)
      .run(runId, position, entry, copies)
  }

  /** Marks the receipts as `unknown` whose entries an earlier process may have sent. Its requests ended by `moment`. */
  loseAll(moment: Instant): Pick<ReceiptRow, 'run_id' | 'position' | 'entry'>[] {
    return this.#db
      .query<Pick<ReceiptRow, 'run_id' | 'position' | 'entry'>, [string, number]>(
        `UPDATE receipts SET state = 'unknown', boot = ?1, ended = ?2
         WHERE state IN (${RECEIPT_FENCE.lose}) AND state <> 'done' RETURNING run_id, position, entry`,
      )
      .all(moment.boot, moment.at)
  }
}
