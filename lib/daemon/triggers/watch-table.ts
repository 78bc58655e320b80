// Tables `watch_seen` and `watch_claims`: what was seen of the files of watches, and which files are moved away for runs
// that have not begun. Every statement about them is here.

import type { Database } from 'bun:sqlite'
import type { Seen } from '../../firing/watch-rows.ts'
import { othersTurn, type Stat, type WatchedFile } from '../../triggers/watch/scan.ts'

/** A file on its way to the folder of a run, by whole paths, and what it was when it was reported. */
export interface ClaimedFile extends Pick<WatchedFile, 'bytes' | 'mtime'> {
  from: string
  to: string
}

export interface Claim {
  firing_id: string
  run_id: string
  files: ClaimedFile[]
}

type Row = Omit<Seen, 'reported'> & { path: string; reported: string | null }

const PAGE = 1_000

export class WatchTable {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** All files of a watch by their paths. The event loop turns between pages. */
  async seen(triggerId: string): Promise<Map<string, Seen>> {
    const all = new Map<string, Seen>()
    const query = this.#db.query<Row, [string, string]>(
      `SELECT path, identity, sha256, gone_at, reported FROM watch_seen WHERE trigger_id = ? AND path > ?
       ORDER BY path LIMIT ${PAGE}`,
    )
    for (let after = ''; ; ) {
      const rows = query.all(triggerId, after)
      for (const { path, reported, ...seen } of rows) {
        all.set(path, { ...seen, reported: reported === null ? [] : JSON.parse(reported) })
      }
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) return all
      after = last.path
      await othersTurn()
    }
  }

  put(triggerId: string, path: string, { identity, sha256, gone_at, reported }: Seen): void {
    this.#db
      .query(
        `INSERT OR REPLACE INTO watch_seen (trigger_id, path, identity, sha256, gone_at, reported)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(triggerId, path, identity, sha256, gone_at, reported.length === 0 ? null : JSON.stringify(reported))
  }

  /** Exactly these files have been seen. */
  replace(triggerId: string, files: Iterable<readonly [string, { identity: Stat; sha256: string | null }]>): void {
    this.#db.query('DELETE FROM watch_seen WHERE trigger_id = ?').run(triggerId)
    const rows = Array.from(files, ([path, { identity, sha256 }]) => [path, identity, sha256])
    this.#db
      .query(
        `INSERT INTO watch_seen (trigger_id, path, identity, sha256)
         SELECT ?, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)`,
      )
      .run(triggerId, JSON.stringify(rows))
  }

  /** Forgets files that have been gone since before a moment. */
  forgetGone(before: number): void {
    this.#db.query('DELETE FROM watch_seen WHERE gone_at < ?').run(before)
  }

  claimOf(firingId: string): Claim | null {
    const row = this.#db.query<ClaimRow, [string]>(`${CLAIMS} WHERE firing_id = ?`).get(firingId)
    return row && readClaim(row)
  }

  /** Claims of which the firing does not wait any more, and has started nothing. */
  abandoned(): Claim[] {
    return this.#db
      .query<ClaimRow, []>(
        `${CLAIMS} WHERE NOT EXISTS (SELECT 1 FROM firings WHERE firings.id = firing_id AND state = 'waiting')`,
      )
      .all()
      .map(readClaim)
  }

  claim({ firing_id, run_id, files }: Claim): void {
    this.#db
      .query('INSERT INTO watch_claims (firing_id, run_id, files) VALUES (?, ?, ?)')
      .run(firing_id, run_id, JSON.stringify(files))
  }

  unclaim(firingId: string): void {
    this.#db.query('DELETE FROM watch_claims WHERE firing_id = ?').run(firingId)
  }
}

type ClaimRow = Omit<Claim, 'files'> & { files: string }

const CLAIMS = 'SELECT firing_id, run_id, files FROM watch_claims'

const readClaim = ({ files, ...claim }: ClaimRow): Claim => ({ ...claim, files: JSON.parse(files) })
