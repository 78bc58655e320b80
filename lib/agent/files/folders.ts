// Folders below a run's state folder. Only plain folders are used, links are never followed, and folders are made
// durable on request. fsync takes milliseconds, so callers that wait for the same folder share one.

import { closeSync, constants, fsync, lstatSync, openSync, type Stats } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Something that is in the place of a folder: its path below the state folder, and its kind. */
export interface Obstacle {
  path: string
  kind: string
}

/** The kind of a file system entry, in words. */
export function kindOf(stats: Stats): string {
  if (stats.isFile()) return 'a file'
  if (stats.isDirectory()) return 'a folder'
  if (stats.isSymbolicLink()) return 'a link'
  if (stats.isFIFO()) return 'a named pipe'
  return stats.isSocket() ? 'a socket' : 'a device'
}

/**
 * Makes the state folder and `names[0]/names[1]/…` below it. When a step exists but is not a folder, throws the error
 * that `refuse` returns, and touches nothing below that step. Returns the folders for `makeDurable`, beginning with the
 * parent of all state folders.
 *
 * Making a folder is the slowest step of writing a small file, so it is left to a thread. Measured with 1,000 files in
 * 1,000 new state folders: 16 at once take 70–100 ms of the event loop, at most 2 ms at a time; all at once take 90–250
 * ms, 5–9 ms at a time.
 */
export async function makeFolders(
  stateDir: string,
  names: readonly string[],
  refuse: (obstacle: Obstacle) => Error,
): Promise<string[]> {
  const folders = foldersOn(stateDir, names)
  const missing = firstMissing(stateDir, folders, refuse)
  if (missing === -1) return folders
  // A folder with this name may have been durable before it was removed.
  for (const folder of folders.slice(missing)) durable.delete(folder)
  try {
    await mkdir(folders.at(-1)!, { recursive: true, mode: 0o700 })
  } catch (error) {
    // Another process may have put something else there in the meantime.
    firstMissing(stateDir, folders, refuse)
    throw error
  }
  return folders
}

/** A folder that stays the same one, whatever a command makes of its path in the meantime. */
export interface OpenFolder extends Disposable {
  /** A path of an entry in it, until it is disposed; `.` is the folder itself. */
  at(name: string): string
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

/**
 * Opens `names[0]/names[1]/…` below the state folder, each from the one before: what was looked at by its path may be a
 * link at the next look, because commands of the run change these folders too. Throws what `refuse` returns for a step
 * that is no plain folder. Without /proc, paths are used, on systems where no sandbox keeps commands from other folders.
 */
export function openFolder(
  stateDir: string,
  names: readonly string[],
  refuse: (obstacle: Obstacle) => Error,
): OpenFolder {
  if (process.platform !== 'linux') return { at: name => join(stateDir, ...names, name), [Symbol.dispose]() {} }
  let fd = openSync(stateDir, O_RDONLY | O_DIRECTORY)
  for (const [at, name] of names.entries()) {
    const above = fd
    try {
      fd = openSync(`/proc/self/fd/${above}/${name}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch (error) {
      if (!NO_FOLDER.has((error as NodeJS.ErrnoException).code)) throw error
      throw refuse({ path: names.slice(0, at + 1).join('/'), kind: 'a link or a file by now' })
    } finally {
      closeSync(above)
    }
  }
  return { at: name => `/proc/self/fd/${fd}/${name}`, [Symbol.dispose]: () => closeSync(fd) }
}

const NO_FOLDER = new Set<string | undefined>(['ENOTDIR', 'ELOOP'])

/** Moves a temporary file to `path` below the state folder, in a folder that `makeFolders` has made. */
export async function moveInto(
  stateDir: string,
  path: string,
  temporary: string,
  refuse: (obstacle: Obstacle) => Error,
): Promise<void> {
  const names = path.split('/')
  using folder = openFolder(stateDir, names.slice(0, -1), refuse)
  await rename(temporary, folder.at(names.at(-1)!))
}

/** The parent of all state folders, the state folder, and each folder below it on the path. */
export function foldersOn(stateDir: string, names: readonly string[]): string[] {
  const folders = [dirname(stateDir), stateDir]
  for (const name of names) folders.push(join(folders.at(-1)!, name))
  return folders
}

/** Checking first costs 2 µs per step, much less than the error that mkdir throws for an existing folder. */
function firstMissing(stateDir: string, folders: readonly string[], refuse: (obstacle: Obstacle) => Error): number {
  for (const [index, folder] of folders.entries()) {
    const found = lstatSync(folder, { throwIfNoEntry: false })
    if (!found) return index
    // The state folder itself may be reached through a link that its owner made.
    if (index > 1 && !found.isDirectory()) {
      throw refuse({ path: folder.slice(stateDir.length + 1), kind: kindOf(found) })
    }
  }
  return -1
}

/**
 * Folders whose entry in their parent this process has made durable. Nothing is known about folders that an earlier
 * process made.
 */
const durable = new Set<string>()
const MOST_DURABLE = 20_000

/**
 * Makes the renames into the last of `folders` durable, and the entry of each folder in its parent. `folders` is the
 * result of `makeFolders`. All of them are synced at once, because the file system combines syncs that run at the same
 * time.
 */
export async function makeDurable(folders: readonly string[]): Promise<void> {
  const open = folders.filter(folder => !durable.has(folder))
  await Promise.all([...new Set([...open.map(dirname), folders.at(-1)!])].map(syncFolder))
  if (durable.size > MOST_DURABLE) durable.clear()
  for (const folder of open) durable.add(folder)
}

/** Forgets that folders are durable, because another process may have removed and made them again. */
export function forgetDurable(folders: readonly string[]): void {
  for (const folder of folders) durable.delete(folder)
}

const syncs = new Map<string, { running: Promise<void>; next: Promise<void> | null }>()

/**
 * Syncs a folder. Calls that arrive while one sync runs share the next one, which begins after all of them have
 * arrived.
 */
function syncFolder(folder: string): Promise<void> {
  const current = syncs.get(folder)
  if (!current) {
    const entry = { running: syncNow(folder), next: null }
    syncs.set(folder, entry)
    return entry.running.finally(() => syncs.get(folder) === entry && !entry.next && syncs.delete(folder))
  }
  current.next ??= current.running
    .catch(() => {})
    .then(() => {
      syncs.delete(folder)
      return syncFolder(folder)
    })
  return current.next
}

async function syncNow(folder: string): Promise<void> {
  const handle = openSync(folder, O_RDONLY | O_DIRECTORY)
  try {
    await new Promise<void>((resolve, reject) => fsync(handle, error => (error ? reject(error) : resolve())))
  } finally {
    closeSync(handle)
  }
}
