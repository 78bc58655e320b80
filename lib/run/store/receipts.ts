// Table `receipts`: outside writes. core/receipt.ts says what may become of one; no other file removes any.

import type { Database } from 'bun:sqlite'
import type { AgentResult } from '../../agent/agent-context.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { json, RECEIPT_FENCE, type ReceiptRow } from '../core/core.ts'
import { WHOLE } from './runs.ts'

/** Which receipt: that of an entry of a phase. */
export interface EntryId {
  runId: string
  position: number
  entry: string
}

/** What another system could not be asked about, and why. */
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
        `SELECT receipts.* FROM receipts JOIN runs ON runs.id = receipts.run_id
         WHERE runs.root_id = ?1 AND runs.tree_key >= ?2 AND runs.tree_key < ?2 || '~'
         ORDER BY runs.tree_key, receipts.position, receipts.entry`,
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

  /** The write is there. `copies` are what else carries its mark. */
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

  /** A person says that the write is there. What is known of a part of it stays. */
  vouch({ runId, position, entry }: EntryId, result: Masked<AgentResult>, at: number): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'done', result = coalesce(result, ?4), done_at = ?5
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.confirm})`,
      )
      .run(runId, position, entry, json({ ...result, vouched: true }), at)
  }

  /** The phase is repeated: what only a person knows to be there is asked for again, and so is its data. */
  doubtVouched(runId: string, position: number): void {
    this.#db.query(`${DOUBT_VOUCHED} AND run_id = ? AND position = ?`).run(runId, position)
  }

  /** The same for all phases of a sub-run and of what is below it. */
  doubtVouchedWhole(runId: string): void {
    this.#db.query(`${WHOLE} ${DOUBT_VOUCHED} AND run_id IN (SELECT id FROM whole)`).run(runId)
  }

  /** Whether only a person knows of something that a phase wrote. */
  hasVouched(runId: string, position: number): boolean {
    const some = this.#db.query(`SELECT 1 FROM receipts WHERE run_id = ? AND position = ? AND ${VOUCHED} LIMIT 1`)
    return some.get(runId, position) !== null
  }

  /** Of what attempt `sentBy` sent, `result` was written, and the rest was not. */
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
   * What attempt `sentBy` sent ended without an answer, except for what `part` says was written. The receipt of a later
   * attempt is left alone.
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
   * What attempt `sentBy` sent was certainly not written. What an earlier attempt sent may still be on its way, if its
   * absence was only presumed.
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

  /** The other system did not show it when the settling time was over. */
  presume({ runId, position, entry }: EntryId, at: number): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'presumed', presumed_at = coalesce(presumed_at, ?4),
           sent_first = coalesce(sent_first, sent_at)
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.presume})`,
      )
      .run(runId, position, entry, at)
  }

  /** A person has looked, and wants it sent again. Such a receipt has no time from which it settles. */
  order({ runId, position, entry }: EntryId): void {
    this.#db
      .query(
        `UPDATE receipts SET state = 'presumed', boot = NULL, ended = NULL
         WHERE ${ENTRY} AND state IN (${RECEIPT_FENCE.order})`,
      )
      .run(runId, position, entry)
  }

  /** A person wants it sent again, and nothing shows that it is there. */
  clear({ runId, position, entry }: EntryId): void {
    this.#remove(`${ENTRY} AND state IN (${RECEIPT_FENCE.clear})`, [runId, position, entry])
  }

  /** Removes a receipt, except for the part of its write that is there. */
  #remove(fence: string, values: (string | number)[]): void {
    this.#db.query(`UPDATE receipts SET state = 'partial' WHERE ${fence} AND result IS NOT NULL`).run(...values)
    this.#db.query(`DELETE FROM receipts WHERE ${fence}`).run(...values)
  }

  /** The home that this one was copied from may have written it, with a receipt here or without. It settles anew. */
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

  /** The settling of a receipt in doubt begins anew at `moment`. */
  settleFrom({ runId, position, entry }: EntryId, moment: Instant): void {
    this.#db
      .query(`UPDATE receipts SET boot = ?4, ended = ?5 WHERE ${ENTRY} AND state = 'unknown'`)
      .run(runId, position, entry, moment.boot, moment.at)
  }

  /** What else carries the mark of a write that is done. */
  setCopies({ runId, position, entry }: EntryId, copies: MaskedText): void {
    this.#db
      .query(`UPDATE receipts SET copies = ?4 WHERE ${ENTRY} AND state = 'done'`)
      .run(runId, position, entry, copies)
  }

  /** Marks as `unknown` what an earlier process may have sent before it ended. Its requests ended by `moment`. */
  loseAll(moment: Instant): Pick<ReceiptRow, 'run_id' | 'position' | 'entry'>[] {
    return this.#db
      .query<Pick<ReceiptRow, 'run_id' | 'position' | 'entry'>, [string, number]>(
        `UPDATE receipts SET state = 'unknown', boot = ?1, ended = ?2
         WHERE state IN (${RECEIPT_FENCE.lose}) AND state <> 'done' RETURNING run_id, position, entry`,
      )
      .all(moment.boot, moment.at)
  }
}
