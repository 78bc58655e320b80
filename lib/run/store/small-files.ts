// The table `small_files`: the bytes of artifacts whose files are not synced yet. They are written in the same
// transaction as the result that names them, and removed when the file itself is durable.

import type { Database } from 'bun:sqlite'
import type { SmallFile } from '../../agent/files.ts'
import type { RunId } from '../../files/run-id.ts'

/** `seq` is never reused, so a row that was read cannot be mistaken for the row that replaced it. */
export interface UnsyncedRow {
  seq: number
  run_id: RunId
  path: string
}

export interface SmallFileRow extends UnsyncedRow {
  bytes: Uint8Array
}

/** Called inside a change of the database. Replaces the rows of the same paths, and returns the number of each new row. */
export function putSmallFiles(db: Database, runId: string, files: readonly SmallFile[], at: number): number[] {
  const statement = db.query('INSERT OR REPLACE INTO small_files (run_id, path, written_at, bytes) VALUES (?, ?, ?, ?)')
  return files.map(({ path, bytes }) => Number(statement.run(runId, path, at, bytes).lastInsertRowid))
}

/**
 * Called inside a change of the database. Removes the rows of what earlier attempts wrote into `folder`. Without this,
 * files that the next attempt replaced or did not write again would come back after a power cut.
 */
export function dropSmallFilesBelow(db: Database, runId: string, folder: string): void {
  // `0` is the character after `/`.
  db.query('DELETE FROM small_files WHERE run_id = ? AND path > ? AND path < ?').run(runId, `${folder}/`, `${folder}0`)
}

/** At most `limit` rows after number `after` that were written before `before`, oldest first. */
export function unsyncedFiles(db: Database, before: number, limit: number, after = 0): UnsyncedRow[] {
  return db
    .query<UnsyncedRow, [number, number, number]>(
      `SELECT seq, run_id, path FROM
         (SELECT seq, run_id, path, written_at FROM small_files WHERE seq > ? ORDER BY seq LIMIT ?)
       WHERE written_at < ?`,
    )
    .all(after, limit, before)
}

/** Called inside a change of the database. A row that was replaced in the meantime has another `seq` and stays. */
export function dropSyncedFiles(db: Database, rows: readonly Pick<UnsyncedRow, 'seq'>[]): void {
  const statement = db.query('DELETE FROM small_files WHERE seq = ?')
  for (const { seq } of rows) statement.run(seq)
}

const PAGE = 64

/** Every row with a higher number than `after`, with one page in memory at a time. */
export function* allSmallFiles(db: Database, after = 0): Generator<SmallFileRow> {
  const statement = db.query<SmallFileRow, [number, number]>(
    'SELECT seq, run_id, path, bytes FROM small_files WHERE seq > ? ORDER BY seq LIMIT ?',
  )
  for (let last = after; ; ) {
    const rows = statement.all(last, PAGE)
    if (rows.length === 0) return
    yield* rows
    last = rows.at(-1)!.seq
  }
}
