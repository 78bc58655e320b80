// Deletes old data of a home: ended runs, because they are old (ages.ts) or because all together take too much space,
// firings and audit entries. A tree is deleted as a whole, and never while it runs.

import type { Database } from 'bun:sqlite'
import { CadreError, messageOf } from '../../../error.ts'
import { sizeText } from '../../../size.ts'
import { KEEPS_FILES } from '../../link/outbox/outbox.ts'
import type { Daemon } from '../../runs/daemon.ts'
import { deleteInPassing } from '../../runs/delete-tree.ts'
import { deleteOldBodies, deleteOldFirings } from '../../triggers/old-firings.ts'
import type { Ages } from '../ages.ts'
import { databaseBytes, TreeSizes } from './disk-usage.ts'

const DAY_MS = 24 * 3_600_000
const GB = 1_000_000_000
/** Runs that end shortly after each other are measured together. */
const SETTLE_MS = 1_000
/** Pages are freed in small parts for so long, and top runs are read so many at once; other calls run in between. */
const VACUUM_MS = 10
const VACUUM_PAGES = 100
const READ_AT_ONCE = 200
/** So many free pages of 4 KiB stay, because new rows need them soon. */
const MOST_FREE_PAGES = 250

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

  /** Looks at the clock. Once in an hour of life, deletes the runs, firings and audit entries that are too old. */
  async deleteOld(signal: AbortSignal): Promise<void> {
    const { ages } = this.#daemon
    await ages.look()
    if (!ages.isSweepDue) return
    const { days, auditDays } = this.#retention
    const deleted =
      (await this.#deleteOldRuns(signal)) +
      (await deleteOldFirings(this.#daemon, days * DAY_MS, signal)) +
      (await deleteOldBodies(this.#daemon, signal)) +
      (await deleteOldEntries(this.#daemon, auditDays, signal))
    if (signal.aborted) return
    await ages.swept([days * DAY_MS, auditDays * DAY_MS])
    if (deleted > 0) await freeSpace(this.#daemon, signal)
  }

  /** Deletes the oldest runs beyond the limit of space, if there is one. */
  async deleteBeyondLimit(signal: AbortSignal): Promise<void> {
    const { bytes } = this.#retention
    const deleted = bytes === null ? 0 : await this.#deleteBeyond(bytes, signal)
    if (deleted > 0 && !signal.aborted) await freeSpace(this.#daemon, signal)
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

  async #deleteOldRuns(signal: AbortSignal): Promise<number> {
    const { ages, db, log } = this.#daemon
    const { days } = this.#retention
    const { at, run } = ages.olderThan(days * DAY_MS)
    let deleted = 0
    for await (const { id } of oldRoots(ages, db, at, run)) {
      if (signal.aborted) break
      try {
        if (await this.#delete(id, signal)) deleted++
      } catch (error) {
        if (signal.aborted) break
        // The run was just resumed, or its files cannot be removed. The others are deleted nevertheless.
        log.warn('an old run could not be deleted', { run: id, error: messageOf(error) })
      }
    }
    if (deleted > 0) log.info('old runs deleted', { runs: deleted, days })
    return deleted
  }

  /** Returns false for a tree whose deletion had begun before: a chore of its own finishes that. */
  async #delete(id: string, signal: AbortSignal): Promise<boolean> {
    const { engine, reads } = this.#daemon
    if (engine.store.deletions.isBegun(id)) return false
    await deleteInPassing(this.#daemon, id, signal)
    await reads.checkpoint()
    return true
  }

  async #deleteBeyond(most: number, signal: AbortSignal): Promise<number> {
    const { db, log } = this.#daemon
    const ended = await deletableRoots(this.#daemon)
    let files = 0
    for (const root of ended) files += await this.#sizes.of(root.id, root.completed_at)
    this.#sizes.keep(new Set(ended.map(({ id }) => id)))
    let deleted = 0
    for (const { id, completed_at } of ended) {
      if (signal.aborted || files + databaseBytes(db) <= most) break
      files -= await this.#sizes.of(id, completed_at)
      if (await this.#delete(id, signal)) deleted++
    }
    if (deleted > 0) log.info('runs beyond the limit of space deleted', { runs: deleted, limit: sizeText(most) })
    return deleted
  }
}

/** Deletes audit entries that are older than `auditDays`, a part at a time, so that other calls run in between. */
async function deleteOldEntries({ ages, audit }: Daemon, auditDays: number, signal: AbortSignal): Promise<number> {
  const { at, audit: last } = ages.olderThan(auditDays * DAY_MS)
  let deleted = 0
  for (let some = 1; some > 0 && !signal.aborted; deleted += some) {
    some = audit.deleteBefore(at, last)
    await Bun.sleep(0)
  }
  return deleted
}

/** Returns the space of rows that people deleted to the file system, if it is worth it. */
export async function freeDeleted(daemon: Daemon, signal: AbortSignal): Promise<void> {
  if (freePages(daemon.db) > MOST_FREE_PAGES) await freeSpace(daemon, signal)
}

/** Returns the space of deleted rows to the file system. */
async function freeSpace({ db, engine, reads }: Daemon, signal: AbortSignal): Promise<void> {
  engine.store.bundles.dropUnused()
  while (!signal.aborted && freePages(db) > 0) {
    const until = performance.now() + VACUUM_MS
    while (performance.now() < until && freePages(db) > 0) db.run(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`)
    await reads.checkpoint()
  }
  if (!signal.aborted) db.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

const freePages = (db: Database): number =>
  db.query<{ freelist_count: number }, []>('PRAGMA freelist_count').get()!.freelist_count

interface EndedRoot {
  id: string
  completed_at: number
  /** Which row it has. */
  row: number
}

/** Top runs up to a row that ended before a moment, also those whose end was recorded while the clock was ahead. */
async function* oldRoots(ages: Ages, db: Database, before: number, lastRow: number): AsyncGenerator<EndedRoot> {
  yield* endedRoots(db, -1, before, lastRow)
  for await (const root of endedRoots(db, ages.believed, Number.MAX_SAFE_INTEGER, lastRow)) {
    if (ages.endOf(root.row, root.completed_at) < before) yield root
  }
}

/** Top runs up to a row that are recorded to have ended between two moments, oldest first, read a part at a time. */
async function* endedRoots(db: Database, after: number, before: number, lastRow: number): AsyncGenerator<EndedRoot> {
  for (let last: Omit<EndedRoot, 'id'> | undefined = { completed_at: after, row: 0 }; last; await Bun.sleep(0)) {
    const some: EndedRoot[] = db
      .query<EndedRoot, [number, number, number, number]>(
        `SELECT id, completed_at, rowid AS row FROM runs INDEXED BY runs_top_by_end
         WHERE parent_id IS NULL AND completed_at IS NOT NULL AND (completed_at, rowid) > (?, ?) AND completed_at < ?
           AND rowid <= ?
         ORDER BY completed_at, rowid LIMIT ${READ_AT_ONCE}`,
      )
      .all(last.completed_at, last.row, before, lastRow)
    yield* some
    last = some.at(-1)
  }
}

/**
 * Root runs that have ended and whose listeners have been notified, oldest first. Runs with changes that the hub has
 * not received, or with files that it wants, come last. They are not excluded, because a hub that never comes back must
 * not fill the disk.
 */
async function deletableRoots({ ages, db, engine }: Daemon): Promise<EndedRoot[]> {
  const roots = (sql: string, ...values: boolean[]) =>
    new Set(
      db
        .query<{ root_id: string }, boolean[]>(sql)
        .all(...values)
        .map(({ root_id }) => root_id),
    )
  const unreported = roots(
    "SELECT root_id FROM deliveries JOIN runs ON id = run_id WHERE deliveries.state IN ('pending', 'sent')",
  )
  const unsent = roots(
    `SELECT root_id FROM outbox UNION SELECT root_id FROM runs WHERE log_due = 1
       UNION SELECT root_id FROM uploads JOIN runs ON id = run_id WHERE ?`,
    engine.store.facts.get(KEEPS_FILES) === 'yes',
  )
  type Aged = EndedRoot & { end: number }
  const [first, last]: [Aged[], Aged[]] = [[], []]
  for await (const root of endedRoots(db, -1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)) {
    if (unreported.has(root.id)) continue
    // A run that ended while the clock was wrong seems older or younger than it is.
    const end = ages.endOf(root.row, root.completed_at)
    const part = unsent.has(root.id) ? last : first
    part.push({ ...root, end })
  }
  return [first, last].flatMap(roots => roots.sort((a, b) => a.end - b.end))
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
