// Table `uploads`: files of synced runs that the store of the hub does not have yet.

import type { Database } from 'bun:sqlite'
import type { FileRecord } from '../../../agent/agent-context.ts'
import type { RunId } from '../../../files/run-id.ts'
import type { MaskedText } from '../../../secrets/masked.ts'

/** The name of the fact whether the hub keeps files of runs, `no` or `yes`. */
export const KEEPS_FILES = 'keeps_files'

export interface UploadRow {
  run_id: RunId
  path: string
  bytes: number
  sha256: string
  /** How often it failed so far. */
  failures: number
}

/** The files that wait. */
export interface WaitingFiles {
  count: number
  bytes: number
  /** When the oldest was queued, in epoch milliseconds; null also where an older program has queued all of them. */
  oldest_at: number | null
  /** Why the oldest that has failed did so last. */
  error: string | null
}

export class UploadRows {
  readonly #db: Database
  readonly #now: () => number

  constructor(db: Database, now: () => number = Date.now) {
    this.#db = db
    this.#now = now
  }

  /** Queues a file. It is due once the hub has acknowledged `change` of the outbox. Replaces an earlier content. */
  put(runId: string, { path, bytes, sha256 }: FileRecord, change: number): void {
    this.#db
      .query(
        `INSERT INTO uploads (run_id, path, bytes, sha256, after_change, failures, due_at, queued_at)
         VALUES (?, ?, ?, ?, ?, 0, 0, ?)
         ON CONFLICT (run_id, path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256,
           after_change = excluded.after_change, failures = 0, due_at = 0, queued_at = excluded.queued_at, error = NULL`,
      )
      .run(runId, path, bytes, sha256, change, this.#now())
  }

  /** The file that is due first, of those whose content is not in `busy`. */
  due(now: number, busy: ReadonlySet<string>): UploadRow | null {
    return this.#db
      .query<UploadRow, [number, string]>(
        `SELECT run_id, path, bytes, sha256, failures FROM uploads
         WHERE due_at <= ? AND after_change NOT IN (SELECT id FROM outbox)
           AND sha256 NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at LIMIT 1`,
      )
      .get(now, JSON.stringify([...busy]))
  }

  /** Notes a failure, and when to try again. Like `drop`, it spares a newer content of the same path. */
  later({ run_id, path, sha256, failures }: UploadRow, dueAt: number, error: MaskedText): void {
    this.#db
      .query('UPDATE uploads SET failures = ?, due_at = ?, error = ? WHERE run_id = ? AND path = ? AND sha256 = ?')
      .run(failures + 1, dueAt, error, run_id, path, sha256)
  }

  /** Makes all files due that have failed. */
  hurry(): void {
    this.#db.query('UPDATE uploads SET due_at = 0 WHERE failures > 0').run()
  }

  /** What waits, if the hub keeps files. */
  waiting(): WaitingFiles {
    const all = this.#db.query<Omit<WaitingFiles, 'error'>, []>(
      'SELECT count(*) AS count, total(bytes) AS bytes, min(queued_at) AS oldest_at FROM uploads',
    )
    const failed = this.#db.query<{ error: string }, []>(
      'SELECT error FROM uploads WHERE error IS NOT NULL ORDER BY queued_at LIMIT 1',
    )
    return { ...all.get()!, error: failed.get()?.error ?? null }
  }

  /** Forgets all files: those of runs that are reported again are queued again. */
  clear(): void {
    this.#db.query('DELETE FROM uploads').run()
  }

  drop({ run_id, path, sha256 }: UploadRow): void {
    this.#db.query('DELETE FROM uploads WHERE run_id = ? AND path = ? AND sha256 = ?').run(run_id, path, sha256)
  }
}
