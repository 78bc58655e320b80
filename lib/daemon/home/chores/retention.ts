// Deletes ended runs with everything that belongs to them: rows, logs and artifacts. Runs are deleted when they are
// old, and the oldest also when all together take too much space. A tree is deleted as a whole, and never while it
// runs.

import { isDiskError } from '../../../../db/open.ts'
import { CadreError, messageOf } from '../../../error.ts'
import { type Engine, runEnded } from '../../../run/engine.ts'
import { sizeText } from '../../../size.ts'
import { KEEPS_FILES, OutboxRows } from '../../link/outbox/outbox.ts'
import type { Daemon } from '../../runs/daemon.ts'
import { databaseBytes, TreeSizes } from './disk-usage.ts'

const DAY_MS = 24 * 3_600_000
const GB = 1_000_000_000
const SWEEP_MS = 3_600_000
/** Runs that end shortly after each other are measured together. */
const SETTLE_MS = 1_000
/** The number of pages that are freed at once, so that other calls run in between. */
const VACUUM_PAGES = 2_000
/** The number of runs that are removed at once. */
const BATCH = 200

/** Deletes the tree of an ended top run. Throws `not_found`, `invalid_state`. */
export function deleteTree(engine: Engine, runId: string, also?: () => void): Promise<void> {
  return engine.deleteTree(runId, () => deleteAll(engine, runId, also))
}

/** `also` is called in the first transaction, which comes after the first files: they may be what fills the disk. */
async function deleteAll(engine: Engine, runId: string, also?: () => void): Promise<void> {
  const { db } = engine.store
  const outbox = new OutboxRows(db)
  const { state, parent_run_id, root_run_id } = engine.record(runId)
  if (parent_run_id !== null) {
    throw new CadreError('invalid_state', `run ${runId} is a sub-run: delete its top run ${root_run_id}`)
  }
  if (!runEnded(state)) throw new CadreError('invalid_state', `run ${runId} is ${state}: cancel it first`)
  // Leaves are deleted first, files before rows, one batch at a time. If this is interrupted, what is left is still a
  // tree that can be deleted. Other calls run between the batches.
  for (let first = true; ; first = false) {
    const batch = db
      .query<{ id: string }, [string, number]>('SELECT id FROM runs WHERE root_id = ? ORDER BY tree_key DESC LIMIT ?')
      .all(runId, BATCH)
    if (batch.length === 0) return
    await Promise.all(batch.map(({ id }) => engine.removeStateDir(id)))
    try {
      db.transaction(() => {
        if (first) also?.()
        for (const { id } of batch) {
          outbox.dropLog(id)
          db.query('DELETE FROM runs WHERE id = ?').run(id)
        }
      }).immediate()
    } catch (cause) {
      if (!isDiskError(cause)) throw cause
      // The remaining rows are still a tree that can be deleted.
      throw new CadreError('unavailable', 'the disk takes no more writes: free some space, then delete the run again', {
        cause,
      })
    }
  }
}

/** Returns the space of deleted rows to the file system. */
async function reclaim({ db, engine }: Daemon): Promise<void> {
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

/** Removes audit entries that are older than `days`, so that other calls run in between. Returns how many. */
async function forgetAudit({ audit }: Daemon, days: number, stopped: () => boolean): Promise<number> {
  let removed = 0
  for (let some = 1; some > 0 && !stopped(); removed += some) {
    some = audit.forget(Date.now() - days * DAY_MS)
    await Bun.sleep(0)
  }
  return removed
}

export interface Limits {
  days: number
  /** How long audit entries are kept. */
  auditDays: number
  /** The limit for the files of ended runs and the run database together. Null means no limit. */
  bytes: number | null
}

/**
 * Deletes runs that ended more than `days` ago, and the oldest ones beyond `bytes`: now, every hour, and soon after a
 * run has ended.
 */
export function keepRuns(daemon: Daemon, limits: Limits): () => void {
  const { db, engine, log } = daemon
  const sizes = new TreeSizes(db, runId => engine.stateDir(runId))
  let stopped = false

  const byAge = async () => {
    const old = db
      .query<{ id: string }, [number]>('SELECT id FROM runs WHERE parent_id IS NULL AND completed_at < ? ORDER BY id')
      .all(Date.now() - limits.days * DAY_MS)
    let deleted = 0
    for (const { id } of old) {
      try {
        await deleteTree(daemon.engine, id)
        deleted++
      } catch (error) {
        // The run was just resumed, or its files cannot be removed. The others are deleted nevertheless.
        log.warn('an old run could not be deleted', { run: id, error: messageOf(error) })
      }
    }
    if (deleted > 0) log.info('old runs deleted', { runs: deleted, days: limits.days })
    return deleted
  }

  const bySize = async (most: number) => {
    const ended = endedRoots(daemon)
    let files = 0
    for (const root of ended) files += await sizes.of(root.id, root.completed_at)
    sizes.keep(new Set(ended.map(({ id }) => id)))
    let deleted = 0
    for (const { id, completed_at } of ended) {
      if (stopped || files + databaseBytes(db) <= most) break
      files -= await sizes.of(id, completed_at)
      await deleteTree(daemon.engine, id)
      deleted++
    }
    if (deleted > 0) log.info('runs beyond the limit of space deleted', { runs: deleted, limit: sizeText(most) })
    return deleted
  }

  let sweeping = Promise.resolve()
  const sweep = async () => {
    if (stopped) return
    try {
      const deleted = (await byAge()) + (limits.bytes === null ? 0 : await bySize(limits.bytes))
      const forgotten = await forgetAudit(daemon, limits.auditDays, () => stopped)
      if (deleted + forgotten > 0 && !stopped) await reclaim(daemon)
    } catch (error) {
      if (!stopped) log.warn('old runs could not be deleted', { error: messageOf(error) })
    }
  }
  const sweepNext = () => {
    sweeping = sweeping.then(sweep)
  }
  sweepNext()
  const timer = setInterval(sweepNext, SWEEP_MS)
  let soon: Timer | undefined
  // The engine notes no changes for followers while there are none.
  const unfollow =
    limits.bytes !== null &&
    engine.follow(({ kind, runId, rootId }) => {
      if (soon || kind !== 'run' || runId !== rootId) return
      soon = setTimeout(() => {
        soon = undefined
        sweepNext()
      }, SETTLE_MS)
    })
  return () => {
    stopped = true
    clearInterval(timer)
    clearTimeout(soon)
    if (unfollow) unfollow()
  }
}

/** The number of days in a variable of the environment. */
export function daysIn(name: string, given: string | undefined, without: number): number {
  const days = given ? Number(given) : without
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
