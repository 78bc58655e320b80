// Table `outbox`: changes of synced runs that the hub has not acknowledged, in the order of commits. The lines of logs
// are not in it: a run with `log_due` has lines that the hub has not acknowledged. The columns of runs about that are
// written here, too.

import type { Database } from 'bun:sqlite'
import type { RunRow } from '../../../run/engine.ts'

export interface OutboxRow {
  id: number
  run_id: string
  attempt: number
  kind: string
  /** The change as JSON. */
  body: string
}

/** A run whose log the hub does not have yet. */
export type DueLog = Pick<RunRow, 'id' | 'attempt' | 'logged' | 'log_sent' | 'log_ended'>

export type PresentRun = Pick<RunRow, 'id' | 'state' | 'attempt' | 'logged' | 'log_ended'>

/** What the hub has not acknowledged: changes, and lines of logs. */
export interface Left {
  changes: number
  lines: number
}

/** How many rows are measured at once. That takes about 2 ms. */
const MEASURED = 5_000

/** Which trees come first. The changes of one tree are always in the order of their commits. */
export type Turn = 'oldest' | 'newest'

const COLUMNS = 'id, run_id, attempt, kind, body'

export class OutboxRows {
  readonly #db: Database

  readonly #now: () => number

  constructor(db: Database, now: () => number = Date.now) {
    this.#db = db
    this.#now = now
  }

  /** Returns the id of the change. */
  insert(rootId: string, runId: string, attempt: number, kind: string, body: string): number {
    const { lastInsertRowid } = this.#db
      .query('INSERT INTO outbox (root_id, run_id, attempt, kind, body, queued_at) VALUES (?, ?, ?, ?, ?, ?)')
      .run(rootId, runId, attempt, kind, body, this.#now())
    return Number(lastInsertRowid)
  }

  /** What waits, read one row at a time, because a body may have a megabyte. Nothing may be written meanwhile. */
  *waiting(turn: Turn): Generator<OutboxRow> {
    const order = turn === 'oldest' ? 'id' : 'root_id DESC, id'
    const rows = this.#db.prepare<OutboxRow, []>(`SELECT ${COLUMNS} FROM outbox ORDER BY ${order}`)
    try {
      yield* rows.iterate()
    } finally {
      // Until then a statement that was not read to its end keeps the write-ahead log from being reused.
      rows.finalize()
    }
  }

  get(id: number): OutboxRow | null {
    return this.#db.query<OutboxRow, [number]>(`SELECT ${COLUMNS} FROM outbox WHERE id = ?`).get(id)
  }

  drop(ids: readonly number[]): void {
    this.#db.query('DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(?))').run(JSON.stringify(ids))
  }

  clear(): void {
    this.#db.query('DELETE FROM outbox').run()
  }

  count(): number {
    return this.#db.query<{ count: number }, []>('SELECT count(*) AS count FROM outbox').get()!.count
  }

  /** How many bytes the changes have that wait, in parts: a long backlog takes a while to measure. */
  *sizes(): Generator<number> {
    const part = this.#db.query<{ bytes: number; last: number | null }, [number, number]>(
      `SELECT total(octet_length(body)) AS bytes, max(id) AS last
       FROM (SELECT id, body FROM outbox WHERE id > ? ORDER BY id LIMIT ?)`,
    )
    for (let after = 0; ; ) {
      const { bytes, last } = part.get(after, MEASURED)!
      if (last === null) return
      yield bytes
      after = last
    }
  }

  /** When the oldest change was queued; null when none waits, or when an older program has queued it. */
  oldest(): number | null {
    const first = this.#db.query<{ queued_at: number | null }, []>('SELECT queued_at FROM outbox ORDER BY id LIMIT 1')
    return first.get()?.queued_at ?? null
  }

  /** At most `limit` runs whose logs are due. */
  dueLogs(turn: Turn, limit: number): DueLog[] {
    const order = turn === 'oldest' ? 'root_id, tree_key' : 'root_id DESC, tree_key DESC'
    return this.#db
      .query<DueLog, [number]>(
        `SELECT id, attempt, logged, log_sent, log_ended FROM runs WHERE log_due = 1 ORDER BY ${order} LIMIT ?`,
      )
      .all(limit)
  }

  /** What a run is by now, how much log it has, and whether that is all. */
  present(runId: string): PresentRun | null {
    return this.#db
      .query<PresentRun, [string]>('SELECT id, state, attempt, logged, log_ended FROM runs WHERE id = ?')
      .get(runId)
  }

  /** The hub has to get the log lines of a run up to `last`. */
  setLogged(runId: string, last: number): void {
    this.#db.query('UPDATE runs SET logged = ?2, log_due = 1 WHERE id = ?1 AND logged < ?2').run(runId, last)
  }

  /** The same, and the log of an ended run has no more lines. */
  endLog(runId: string, last: number): void {
    this.#db
      .query(
        `UPDATE runs SET logged = max(logged, ?2), log_ended = 1, log_due = 1
         WHERE id = ?1 AND completed_at IS NOT NULL AND (log_ended = 0 OR logged < ?2)`,
      )
      .run(runId, last)
  }

  /** The hub has the log of a run up to line `last`, and knows whether it has `ended`. */
  logSent(runId: string, last: number, ended: boolean): void {
    this.#db
      .query('UPDATE runs SET log_sent = ?2, log_due = logged > ?2 OR log_ended > ?3 WHERE id = ?1')
      .run(runId, last, ended ? 1 : 0)
  }

  /** Before a run is deleted: reports to the hub that the rest of its log does not come. */
  dropLog(runId: string): void {
    this.#db
      .query(
        `INSERT INTO outbox (root_id, run_id, attempt, kind, body, queued_at)
         SELECT root_id, id, attempt, 'log',
           json_object('phase', NULL, 'to', logged, 'last', logged, 'ended', json('true'), 'lines', json('[]')), ?2
         FROM runs WHERE id = ?1 AND log_due = 1`,
      )
      .run(runId, this.#now())
  }

  /** The hub has to get the whole log of a run again. */
  logAgain(runId: string): void {
    this.#db.query('UPDATE runs SET log_sent = 0, log_due = 1 WHERE id = ?').run(runId)
  }

  /** Synced runs after a position in the order of trees. */
  synced(after: { root: string; key: string }, limit: number): RunRow[] {
    return this.#db
      .query<RunRow, [string, string, number]>(
        'SELECT rowid AS number, * FROM runs WHERE synced = 1 AND (root_id, tree_key) > (?, ?) ORDER BY root_id, tree_key LIMIT ?',
      )
      .all(after.root, after.key, limit)
  }

  /** What the hub has not acknowledged. */
  left(): Left {
    const { lines } = this.#db
      .query<{ lines: number }, []>('SELECT total(logged - log_sent) AS lines FROM runs WHERE log_due = 1')
      .get()!
    return { changes: this.count(), lines }
  }
}
