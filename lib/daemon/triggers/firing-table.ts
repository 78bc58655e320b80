// Table `firings`: the occasions of triggers, and what became of each. Every statement about it is here. A row is written
// in the transaction that starts its run.

import type { Database } from 'bun:sqlite'
import { within } from '../../duration.ts'
import type { EndedRun } from '../../firing/chain-kind.ts'
import { Changed } from '../../firing/changes.ts'
import { familyOf, type Relative, rangeOf } from '../../firing/family.ts'
import { type Halt, UNJUDGED } from '../../firing/halt.ts'
import type { Firing, FiringFilter } from '../../firing/trigger.ts'
import { OPEN_TOPS } from '../../run/engine.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import type { FiringState } from '../../wire/records/trigger-words.ts'
import type { RunState } from '../../wire/states.ts'

interface Row extends Omit<Firing, 'manual' | 'variables'> {
  manual: string | null
  variables: string
}

/** How many firings one deletion looks at. */
const LOOKED_AT_ONCE = 500

const COLUMNS = `id, trigger_id, revision, occasion, at, until, seen_at, started_at, state, reason, detail, run_id, count,
  late_ms, manual, deliveries, variables, end_id`

type Filter = FiringFilter & { trigger_id: string }

const FITS = 'trigger_id = ?1 AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR reason = ?3) AND at >= ?4 AND at < ?5'
/** Nobody has judged a firing that waits. */
const IS_UNJUDGED = `(reason IS NULL OR reason IN (${UNJUDGED.map(reason => `'${reason}'`).join(', ')}))`
const BEGINS = "id >= ?1 AND id < ?1 || '~'"

/** The parameters of `FITS`. */
function valuesOf({ trigger_id, ...filter }: Filter): (string | number | null)[] {
  const { state = null, reason = null, since = 0, until = Number.MAX_SAFE_INTEGER } = filter
  return [trigger_id, state, reason, since, until]
}

export class FiringTable {
  readonly #db: Database

  /** `db`: the daemon's database. */
  constructor(db: Database) {
    this.#db = db
  }

  get(id: string): Firing | null {
    const row = this.#db.query<Row, [string]>(`SELECT ${COLUMNS} FROM firings WHERE id = ?`).get(id)
    return row && read(row)
  }

  of(triggerId: string, occasion: string): Firing | null {
    const row = this.#db
      .query<Row, [string, string]>(`SELECT ${COLUMNS} FROM firings WHERE trigger_id = ? AND occasion = ?`)
      .get(triggerId, occasion)
    return row && read(row)
  }

  /** Those of one occasion, the first one and what people had fired of it again. */
  family(triggerId: string, family: string): Relative[] {
    return this.#db
      .query<Relative, string[]>(
        `SELECT id, occasion, state, run_id FROM firings WHERE trigger_id = ? AND occasion BETWEEN ? AND ? ORDER BY seq`,
      )
      .all(triggerId, ...rangeOf(family))
      .filter(row => familyOf(row) === family)
  }

  /** Newest first. */
  list(filter: Filter, { limit, offset }: { limit: number; offset: number }): Firing[] {
    return this.#db
      .query<Row, (string | number | null)[]>(
        `SELECT ${COLUMNS} FROM firings WHERE ${FITS} ORDER BY seq DESC LIMIT ?6 OFFSET ?7`,
      )
      .all(...valuesOf(filter), limit, offset)
      .map(read)
  }

  /** The newest of a trigger, without their variables, which may be large. */
  newest(triggerId: string, limit: number): Firing[] {
    return this.#db
      .query<Row, [string, number]>(
        `SELECT ${COLUMNS.replace('variables', "'{}' AS variables")} FROM firings WHERE trigger_id = ? ORDER BY seq DESC LIMIT ?`,
      )
      .all(triggerId, limit)
      .map(read)
  }

  /** How many of them there are, at most one more than `MOST_COUNTED`. */
  count(filter: Filter): number {
    return this.#db
      .query<{ n: number }, (string | number | null)[]>(
        `SELECT count(*) AS n FROM (SELECT 1 FROM firings WHERE ${FITS} LIMIT ${MOST_COUNTED + 1})`,
      )
      .get(...valuesOf(filter))!.n
  }

  /** The firings of a trigger that touch the times from `from` on and before `to`, in the order in which they were made. */
  between(triggerId: string, from: number, to: number): Firing[] {
    return this.#db
      .query<Row, [string, number, number]>(
        `SELECT ${COLUMNS} FROM firings WHERE trigger_id = ?1 AND at < ?3 AND coalesce(until, at) >= ?2 ORDER BY seq`,
      )
      .all(triggerId, from, to)
      .map(read)
  }

  /** The firings of all triggers whose id begins so, newest first. */
  beginning(begins: string, { limit, offset }: { limit: number; offset: number }): Firing[] {
    return this.#db
      .query<Row, [string, number, number]>(
        `SELECT ${COLUMNS} FROM firings WHERE ${BEGINS} ORDER BY id DESC LIMIT ?2 OFFSET ?3`,
      )
      .all(begins, limit, offset)
      .map(read)
  }

  countBeginning(begins: string): number {
    return this.#db
      .query<{ n: number }, [string]>(
        `SELECT count(*) AS n FROM (SELECT 1 FROM firings WHERE ${BEGINS} LIMIT ${MOST_COUNTED + 1})`,
      )
      .get(begins)!.n
  }

  /** Those that wait for their turn, the oldest first. */
  waiting(triggerId: string, limit = Number.MAX_SAFE_INTEGER): Firing[] {
    return this.#db
      .query<Row, [string, number]>(
        `SELECT ${COLUMNS} FROM firings WHERE trigger_id = ? AND state = 'waiting' ORDER BY seq LIMIT ?`,
      )
      .all(triggerId, limit)
      .map(read)
  }

  /** Those that wait for the run before although `most` newer ones do, but for what people fired. */
  beyond(triggerId: string, most: number): Firing[] {
    return this.#db
      .query<Row, [string, number]>(
        `SELECT ${COLUMNS} FROM firings WHERE trigger_id = ? AND state = 'waiting' AND reason = 'overlap'
           AND manual IS NULL ORDER BY seq DESC LIMIT -1 OFFSET ?`,
      )
      .all(triggerId, most)
      .map(read)
  }

  /** Those that wait and that nobody has judged yet, the oldest first. */
  unjudged(triggerId: string, limit: number): Firing[] {
    return this.#db
      .query<Row, [string, number]>(
        `SELECT ${COLUMNS} FROM firings WHERE trigger_id = ? AND state = 'waiting' AND ${IS_UNJUDGED} ORDER BY seq LIMIT ?`,
      )
      .all(triggerId, limit)
      .map(read)
  }

  /** How many wait that were judged. */
  countWaiting(triggerId: string): number {
    return this.#db
      .query<{ n: number }, [string]>(
        `SELECT count(*) AS n FROM firings WHERE trigger_id = ? AND state = 'waiting' AND NOT ${IS_UNJUDGED}`,
      )
      .get(triggerId)!.n
  }

  /** Settles all that wait and were seen up to a moment. */
  settleWaiting(triggerId: string, { state, reason, detail }: Halt, seenUntil = Number.MAX_SAFE_INTEGER): void {
    this.#db
      .query(
        "UPDATE firings SET state = ?, reason = ?, detail = ? WHERE trigger_id = ? AND state = 'waiting' AND seen_at <= ?",
      )
      .run(state, reason, detail, triggerId, seenUntil)
  }

  /** The run of a chain's firing, as it ended. */
  endedRun(endId: number): EndedRun {
    return JSON.parse(
      this.#db.query<{ run: string }, [number]>('SELECT run FROM run_ends WHERE id = ?').get(endId)!.run,
    )
  }

  /** The triggers of which some wait. */
  triggersThatWait(): string[] {
    return this.#db
      .query<{ id: string }, []>("SELECT DISTINCT trigger_id AS id FROM firings WHERE state = 'waiting'")
      .all()
      .map(({ id }) => id)
  }

  /** The top runs of a trigger that have not ended, the oldest first. */
  openRuns(triggerId: string): { id: string; is_ending: 0 | 1 }[] {
    return this.#db
      .query<{ id: string; is_ending: 0 | 1 }, [string]>(
        `SELECT root_id AS id, ending IS NOT NULL AS is_ending ${OPEN_TOPS}
           AND EXISTS (SELECT 1 FROM firings WHERE run_id = root_id AND trigger_id = ?) ORDER BY root_id`,
      )
      .all(triggerId)
  }

  /** The oldest review that is asked in the tree of a top run. */
  askedBelow(rootId: string): string | null {
    const row = this.#db
      .query<{ id: string }, [string]>(
        `SELECT reviews.id FROM runs JOIN reviews ON reviews.run_id = runs.id
         WHERE root_id = ? AND runs.completed_at IS NULL AND reviews.state = 'pending' ORDER BY reviews.created_at LIMIT 1`,
      )
      .get(rootId)
    return row?.id ?? null
  }

  /** The states of runs, as far as they are kept. */
  runStates(ids: readonly string[]): Map<string, RunState> {
    const rows = this.#db
      .query<{ id: string; state: RunState }, [string]>(
        'SELECT id, state FROM runs WHERE id IN (SELECT value FROM json_each(?))',
      )
      .all(JSON.stringify(ids))
    return new Map(rows.map(({ id, state }) => [id, state]))
  }

  /** How many of a trigger started within the last `ms`. */
  startedWithin(triggerId: string, now: number, ms: number): number {
    const { after, to } = within(now, ms)
    return this.#db
      .query<{ n: number }, [string, number, number]>(
        'SELECT count(*) AS n FROM firings WHERE trigger_id = ? AND started_at > ? AND started_at <= ?',
      )
      .get(triggerId, after, to)!.n
  }

  /** The latest firing that the sender had made of this occasion, or of `occasion~2` and so on, where it counts for a time. */
  newestOf(triggerId: string, occasion: string): Firing | null {
    const row = this.#db
      .query<Row, [string, string]>(
        `SELECT ${COLUMNS} FROM firings WHERE trigger_id = ?1 AND (occasion = ?2 OR occasion > ?2 || '~' AND occasion < ?2 || '~:')
           AND manual IS NULL ORDER BY seq DESC LIMIT 1`,
      )
      .get(triggerId, occasion)
    return row && read(row)
  }

  /** A delivery came once more. */
  countDelivery(id: string): void {
    this.#db.query('UPDATE firings SET deliveries = deliveries + 1 WHERE id = ?').run(id)
  }

  /** Of the requests that were refused before anybody knew which delivery they were, the newest `keep` stay. */
  keepRejected(triggerId: string, keep: number): void {
    this.#db
      .query(
        `DELETE FROM firings WHERE seq IN (SELECT seq FROM firings WHERE trigger_id = ?
           AND occasion >= 'rejected:' AND occasion < 'rejected;' ORDER BY seq DESC LIMIT -1 OFFSET ?)`,
      )
      .run(triggerId, keep)
  }

  /** Throws when the occasion is there already. */
  insert(firing: Firing): void {
    this.#db
      .query(
        `INSERT INTO firings (${COLUMNS}) VALUES ($id, $trigger_id, $revision, $occasion, $at, $until, $seen_at, $started_at,
           $state, $reason, $detail, $run_id, $count, $late_ms, $manual, $deliveries, $variables, $end_id)`,
      )
      .run(parametersOf(firing))
  }

  /** Writes what became of a firing that waited, or was refused. `was`: its state when it was read. Throws `Changed`. */
  settle(firing: Firing, was: FiringState): void {
    const { state, reason, detail, run_id, started_at, late_ms, revision, deliveries = null, variables, id } = firing
    const { changes } = this.#db
      .query(
        `UPDATE firings SET state = ?, reason = ?, detail = ?, run_id = ?, started_at = ?, late_ms = ?, revision = ?,
           deliveries = ?, variables = ? WHERE id = ? AND state = ?`,
      )
      .run(
        ...[state, reason, detail, run_id, started_at, late_ms, revision, deliveries],
        ...[JSON.stringify(variables), id, was],
      )
    if (changes === 0) throw new Changed(`${firing.occasion} is ${was} no more`)
  }

  /** The slots from one occasion to another that have a firing of their own. */
  slots(triggerId: string, from: string, to: string): number[] {
    return this.#db
      .query<{ at: number }, [string, string, string]>(
        `SELECT at FROM firings WHERE trigger_id = ? AND occasion BETWEEN ? AND ? AND occasion NOT LIKE '%#%' ORDER BY occasion`,
      )
      .all(triggerId, from, to)
      .map(({ at }) => at)
  }

  /** Deletes slots after `now` that started nothing. What started later than now counts as started now. */
  deleteAfter(triggerId: string, now: number): void {
    this.#db
      .query("DELETE FROM firings WHERE trigger_id = ? AND at > ? AND state <> 'started' AND manual IS NULL")
      .run(triggerId, now)
    this.#db.query('UPDATE firings SET started_at = ?2 WHERE trigger_id = ?1 AND started_at > ?2').run(triggerId, now)
  }

  /** The rows that started nothing and whose last slot is after a moment. */
  endingAfter(triggerId: string, moment: number): Firing[] {
    return this.#db
      .query<Row, [string, number]>(
        `SELECT ${COLUMNS} FROM firings
         WHERE trigger_id = ? AND coalesce(until, at) > ? AND state <> 'started' AND manual IS NULL`,
      )
      .all(triggerId, moment)
      .map(read)
  }

  delete(id: string): void {
    this.#db.query('DELETE FROM firings WHERE id = ?').run(id)
  }

  /**
   * Deletes some final firings of a trigger that were seen before a moment and whose run is not there, if they come after
   * the number `after`, are up to the number `last`, and are not among the newest `keep`. Returns how many, and the
   * number after which it goes on, or null at the end.
   */
  deleteOld(
    triggerId: string,
    { before, last, keep, after }: { before: number; last: number; keep: number; after: number },
  ): { deleted: number; after: number | null } {
    const newest = keep === 0 ? null : this.#numbers(triggerId, 'DESC', 0, Number.MAX_SAFE_INTEGER, 1, keep - 1)
    const end = newest === null ? last : Math.min(last, (newest[0] ?? 0) - 1)
    const numbers = this.#numbers(triggerId, 'ASC', after, end, LOOKED_AT_ONCE, 0)
    const to = numbers.at(-1)
    if (to === undefined) return { deleted: 0, after: null }
    const rows = this.#db
      .query<{ end_id: number | null }, [string, number, number, number]>(
        `DELETE FROM firings WHERE trigger_id = ? AND seq > ? AND seq <= ? AND seen_at < ? AND state <> 'waiting'
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id) RETURNING end_id`,
      )
      .all(triggerId, after, to, before)
    const ends = rows.flatMap(({ end_id }) => end_id ?? [])
    // The firing of another chain may still have the same end.
    this.#db
      .query(
        `DELETE FROM run_ends WHERE id IN (SELECT value FROM json_each(?))
           AND NOT EXISTS (SELECT 1 FROM firings WHERE end_id = run_ends.id)`,
      )
      .run(JSON.stringify(ends))
    return { deleted: rows.length, after: to }
  }

  #numbers(triggerId: string, way: 'ASC' | 'DESC', after: number, to: number, limit: number, offset: number): number[] {
    return this.#db
      .query<{ seq: number }, [string, number, number, number, number]>(
        `SELECT seq FROM firings WHERE trigger_id = ? AND seq > ? AND seq <= ? ORDER BY seq ${way} LIMIT ? OFFSET ?`,
      )
      .all(triggerId, after, to, limit, offset)
      .map(({ seq }) => seq)
  }

  shorten(id: string, until: number | null, count: number): void {
    this.#db.query('UPDATE firings SET until = ?, count = ? WHERE id = ?').run(until, count, id)
  }
}

const read = ({ manual, variables, ...row }: Row): Firing => ({
  ...row,
  manual: manual === null ? null : JSON.parse(manual),
  variables: JSON.parse(variables),
})

const parametersOf = (firing: Firing) => ({
  $id: firing.id,
  $trigger_id: firing.trigger_id,
  $revision: firing.revision,
  $occasion: firing.occasion,
  $at: firing.at,
  $until: firing.until,
  $seen_at: firing.seen_at,
  $started_at: firing.started_at,
  $state: firing.state,
  $reason: firing.reason,
  $detail: firing.detail,
  $run_id: firing.run_id,
  $count: firing.count,
  $late_ms: firing.late_ms,
  $manual: firing.manual && JSON.stringify(firing.manual),
  $deliveries: firing.deliveries ?? null,
  $variables: JSON.stringify(firing.variables),
  $end_id: firing.end_id ?? null,
})
