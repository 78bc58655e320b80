// Small artifacts. The database keeps their bytes until their files are durable: a start after a power cut or a kill
// restores missing files, and a background task syncs files some time after they were written and then removes their
// bytes.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { FileRecord } from '../../agent/agent-context.ts'
import { foldersOn, makeDurable } from '../../agent/files/folders.ts'
import { headOf, openPlain } from '../../agent/files/hashed-file.ts'
import type { SmallFile } from '../../agent/files.ts'
import { messageOf } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import { allSmallFiles, dropSyncedFiles, type SmallFileRow, type UnsyncedRow, unsyncedFiles } from '../store/store.ts'
import { makeAgain } from './make-again.ts'
import { Seal } from './seal.ts'

type StateDirOf = (runId: RunId) => string

/**
 * The small files to keep with a result: the last one of each path, unless a large file, which is synced and has
 * another length, was written there later. `small` and `files` are in the order of writing.
 */
export function stillNamed(small: readonly SmallFile[], files: readonly FileRecord[]): readonly SmallFile[] {
  if (small.length === 0) return small
  const last = new Map(small.map(file => [file.path, file]))
  const lengths = new Map(files.map(({ path, bytes }) => [path, bytes]))
  return [...last.values()].filter(({ path, bytes }) => lengths.get(path) === bytes.byteLength)
}

interface Restoring {
  stateDirOf: StateDirOf
  /** Decrypts the bytes of a row. `label` is `<run>/<path>`. */
  open(label: string, sealed: Uint8Array): Uint8Array
  log: Log
  /** The files of rows up to this number need not be looked at. */
  after?: number
  /** Called with a file that could not be restored, and its row. */
  failed?: (row: SmallFileRow) => void
}

/**
 * Restores every file that is missing or differs from its row, and returns their number. Called at the start of a
 * process: for all rows if the machine was rebooted since the last start, otherwise for those whose files the process
 * before may not have written. A file that cannot be restored is logged and keeps its row, and does not prevent the
 * start.
 */
export async function restoreSmallFiles(
  db: Database,
  { stateDirOf, open, log, after = 0, failed: tell }: Restoring,
): Promise<number> {
  let made = 0
  let failed = 0
  for (const row of allSmallFiles(db, after)) {
    let bytes: Uint8Array | null = null
    try {
      const stateDir = stateDirOf(row.run_id)
      bytes = open(`${row.run_id}/${row.path}`, row.bytes)
      if (await isThere(join(stateDir, row.path), bytes)) continue
      await makeAgain(stateDir, { ...row, bytes })
      made++
    } catch (error) {
      if (bytes) tell?.({ ...row, bytes })
      // On a full disk every file fails, so only the first is logged with its reason.
      if (failed++ === 0)
        log.error('a file of a run could not be restored', { ...nameOf(row), error: messageOf(error) })
    }
  }
  if (failed > 0) log.error('files of runs could not be restored', { files: failed })
  if (made > 0) log.info('files of runs were restored', { files: made })
  return made
}

/**
 * The bytes of a small file that the database still has, for a reader of a home that no process holds: after a kill the
 * file may be missing or cut short. Null when the file itself is all there is, or when the key of the home is lost.
 */
export function keptFile(db: Database, home: string, runId: string, path: string): Uint8Array | null {
  const sealed = db
    .query<{ bytes: Uint8Array }, [string, string]>('SELECT bytes FROM small_files WHERE run_id = ? AND path = ?')
    .get(runId, path)?.bytes
  const seal = new Seal(home)
  // A reader makes no key.
  if (!sealed || !existsSync(seal.file)) return null
  try {
    return seal.open(`${runId}/${path}`, sealed)
  } catch {
    return null
  }
}

const nameOf = ({ run_id, path }: UnsyncedRow) => ({ run_id, path })

async function isThere(path: string, bytes: Uint8Array): Promise<boolean> {
  const handle = await openPlain(path).catch(() => null)
  if (!handle) return false
  try {
    const stats = await handle.stat()
    return (
      stats.isFile() && stats.size === bytes.byteLength && Buffer.compare(await headOf(handle, stats.size), bytes) === 0
    )
  } finally {
    await handle.close()
  }
}

/** Younger files are not synced, because many are soon replaced or removed. */
const YOUNG_MS = 30_000
const MOST_A_TICK = 200
const AT_ONCE = 16
/** How often files are made durable. */
const TICK_MS = 10_000

export interface SmallFileSyncOptions {
  db: Database
  /** Queues a change of the database; its promise settles once the change is on disk. */
  write(change: () => void): Promise<void>
  stateDirOf: StateDirOf
  /** Whether the file of a row is still to be written. */
  isUnwritten?(runId: RunId, path: string): boolean
  now(): number
  log: Log
}

/** Makes files durable in the background, and then removes their bytes from the database. */
export class SmallFileSync {
  readonly #options: SmallFileSyncOptions
  /** Where the last tick stopped, so that a file that cannot be synced does not delay the others. */
  #after = 0
  #running: Promise<number> | null = null
  #timer: Timer | undefined

  constructor(options: SmallFileSyncOptions) {
    this.#options = options
  }

  /** Syncs files every ten seconds, until `stop`. */
  start(): void {
    this.#timer = setInterval(() => void this.tick(), TICK_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Syncs up to 200 files and returns how many. Never throws. */
  tick(): Promise<number> {
    this.#running ??= this.#sync()
      .catch(error => {
        this.#options.log.warn('files of runs could not be synced', { error: messageOf(error) })
        return 0
      })
      .finally(() => {
        this.#running = null
      })
    return this.#running
  }

  async #sync(): Promise<number> {
    const { db, write, stateDirOf, isUnwritten, now, log } = this.#options
    const found = unsyncedFiles(db, now() - YOUNG_MS, MOST_A_TICK, this.#after)
    this.#after = found.length < MOST_A_TICK ? 0 : found.at(-1)!.seq
    const rows = found.filter(({ run_id, path }) => !isUnwritten?.(run_id, path))
    const synced: UnsyncedRow[] = []
    const failures: unknown[] = []
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const group = rows.slice(at, at + AT_ONCE)
      const results = await Promise.allSettled(group.map(row => syncFile(stateDirOf(row.run_id), row.path)))
      for (const [index, result] of results.entries()) {
        if (result.status === 'fulfilled') synced.push(group[index]!)
        else failures.push(result.reason)
      }
    }
    if (failures.length > 0) {
      log.warn('files of runs could not be synced', { files: failures.length, error: messageOf(failures[0]) })
    }
    if (synced.length > 0) await write(() => dropSyncedFiles(db, synced))
    return synced.length
  }
}

/** Makes a file durable. A missing file counts as synced: it existed when it was recorded, so it was removed since. */
async function syncFile(stateDir: string, path: string): Promise<void> {
  try {
    const handle = await openPlain(join(stateDir, path))
    try {
      if ((await handle.stat()).isFile()) await handle.sync()
    } finally {
      await handle.close()
    }
    failpoint()
    await makeDurable(foldersOn(stateDir, path.split('/').slice(0, -1)))
  } catch (error) {
    if (!GONE.has((error as NodeJS.ErrnoException).code)) throw error
  }
}

const GONE = new Set<string | undefined>(['ENOENT', 'ENOTDIR', 'ELOOP'])
