// Deletes old data of a home: ended runs, because they are old or because all together take too much space, and audit
// entries. A tree is deleted as a whole, and never while it runs.

import { CadreError, messageOf } from '../../../error.ts'
import { sizeText } from '../../../size.ts'
import { KEEPS_FILES } from '../../link/outbox/outbox.ts'
import type { Daemon } from '../../runs/daemon.ts'
import { deleteTree } from '../../runs/delete-tree.ts'
import { databaseBytes, TreeSizes } from './disk-usage.ts'

const DAY_MS = 24 * 3_600_000
const GB = 1_000_000_000
/** Runs that end shortly after each other are measured together. */
const SETTLE_MS = 1_000
/** The number of pages that are freed at once, so that other calls run in between. */
const VACUUM_PAGES = 2_000

/** How long things are kept. */
export interface Retention {
  days: number
  /** How long audit entries are kept. */
  auditDays: number
  /** The limit for the files of ended runs and the run database together. Null means no limit. */
  bytes: number | null
}

export class RunRetention {
  readonly #daemon: Daemon
  readonly #retention: Retention
  readonly #sizes: TreeSizes

  constructor(daemon: Daemon, retention: Retention) {
    this.#daemon = daemon
    this.#retention = retention
    this.#sizes = new TreeSizes(daemon.db, runId => daemon.engine.stateDir(runId))
  }

  /** Deletes runs that ended more than `days` ago, and then the oldest ones beyond `bytes`. */
  async deleteRuns(signal: AbortSignal): Promise<void> {
    const { bytes } = this.#retention
    const deleted = (await this.#deleteOld()) + (bytes === null ? 0 : await this.#deleteBeyond(bytes, signal))
    if (deleted > 0 && !signal.aborted) await freeSpace(this.#daemon)
  }

  /** Calls `measure` soon after a run has ended, if there is a limit of space. Returns what ends that. */
  onRunEnd(measure: () => void): () => void {
    // The engine records no changes for followers while there are none.
    if (this.#retention.bytes === null) return () => {}
    let soon: Timer | undefined
    const unfollow = this.#daemon.engine.follow(({ kind, runId, rootId }) => {
      if (soon || kind !== 'run' || runId !== rootId) return
      soon = setTimeout(() => {
        soon = undefined
        measure()
      }, SETTLE_MS)
    })
    return () => {
      clearTimeout(soon)
      unfollow()
    }
  }

  async #deleteOld(): Promise<number> {
    const { db, engine, log } = this.#daemon
    const { days } = this.#retention
    const old = db
      .query<{ id: string }, [number]>('SELECT id FROM runs WHERE parent_id IS NULL AND completed_at < ? ORDER BY id')
      .all(Date.now() - days * DAY_MS)
    let deleted = 0
    for (const { id } of old) {
      try {
        await deleteTree(engine, id)
        deleted++
      } catch (error) {
        // The run was just resumed, or its files cannot be removed. The others are deleted nevertheless.
        log.warn('an old run could not be deleted', { run: id, error: messageOf(error) })
      }
    }
    if (deleted > 0) log.info('old runs deleted', { runs: deleted, days })
    return deleted
  }

  async #deleteBeyond(most: number, signal: AbortSignal): Promise<number> {
    const { db, engine, log } = this.#daemon
    const ended = endedRoots(this.#daemon)
    let files = 0
    for (const root of ended) files += await this.#sizes.of(root.id, root.completed_at)
    this.#sizes.keep(new Set(ended.map(({ id }) => id)))
    let deleted = 0
    for (const { id, completed_at } of ended) {
      if (signal.aborted || files + databaseBytes(db) <= most) break
      files -= await this.#sizes.of(id, completed_at)
      await deleteTree(engine, id)
      deleted++
    }
    if (deleted > 0) log.info('runs beyond the limit of space deleted', { runs: deleted, limit: sizeText(most) })
    return deleted
  }
}

/** Deletes audit entries that are older than `auditDays`, a part at a time, so that other calls run in between. */
export async function deleteOldEntries(daemon: Daemon, { auditDays }: Retention, signal: AbortSignal): Promise<void> {
  let deleted = 0
  for (let some = 1; some > 0 && !signal.aborted; deleted += some) {
    some = daemon.audit.deleteBefore(Date.now() - auditDays * DAY_MS)
    await Bun.sleep(0)
  }
  if (deleted > 0 && !signal.aborted) await freeSpace(daemon)
}

/** Returns the space of deleted rows to the file system. */
async function freeSpace({ db, engine }: Daemon): Promise<void> {
  engine.store.bundles.dropUnused()
  while (db.query<{ freelist_count: number }, []>('PRAGMA freelist_count').get()!.freelist_count > 0) {
    db.run(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`)
    await Bun.sleep(0)
  }
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

interface EndedRoot {
  id: string
  completed_at: number
}

/**
 * Root runs that have ended and whose listeners have been notified, oldest first. Runs with changes that the hub has
 * not received, or with files that it wants, come last. They are not excluded, because a hub that never comes back must
 * not fill the disk.
 */
function endedRoots({ db, engine }: Daemon): EndedRoot[] {
  return db
    .query<EndedRoot, [boolean]>(
      `SELECT id, completed_at FROM runs WHERE parent_id IS NULL AND completed_at IS NOT NULL
         AND id NOT IN (SELECT root_id FROM deliveries JOIN runs ON id = run_id WHERE deliveries.state IN ('pending', 'sent'))
       ORDER BY id IN (SELECT root_id FROM outbox UNION SELECT root_id FROM runs WHERE log_due = 1
         UNION SELECT root_id FROM uploads JOIN runs ON id = run_id WHERE ?), completed_at, id`,
    )
    .all(engine.store.facts.get(KEEPS_FILES) === 'yes')
}

/** The number of days in a variable of the environment. */
export function daysIn(name: string, given: string | undefined, preset: number): number {
  const days = given ? Number(given) : preset
  if (Number.isFinite(days) && days > 0) return days
  throw new CadreError('invalid_request', `${name}: expected a number of days, got ${given}`)
}

/** `CADRE_KEEP_RUNS_GB`, default no limit; in bytes. */
export function bytesToKeep(given: string | undefined): number | null {
  if (!given) return null
  const size = Number(given)
  if (Number.isFinite(size) && size > 0) return size * GB
  throw new CadreError('invalid_request', `CADRE_KEEP_RUNS_GB: expected a number of gigabytes, got ${given}`)
}
