// Folders below a run's state folder: plain folders only, links are never followed, and durable when asked for.
// fsync takes milliseconds and is shared by all who wait for the same folder at the same time.

import { closeSync, constants, fsync, lstatSync, openSync, type Stats } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** What stands where a folder belongs: its path below the state folder, and what it is. */
export interface Obstacle {
  path: string
  kind: string
}

/** What a path is, for people. */
export function kindOf(stats: Stats): string {
  if (stats.isFile()) return 'a file'
  if (stats.isDirectory()) return 'a folder'
  if (stats.isSymbolicLink()) return 'a link'
  if (stats.isFIFO()) return 'a named pipe'
  return stats.isSocket() ? 'a socket' : 'a device'
}

/**
 * Makes `names[0]/names[1]/…` below the state folder, and that one too. Throws what `refuse` makes of a step that is
 * something else than a folder; nothing behind such a step is touched. Gives the folders for `makeDurable`: from the one
 * that holds all state folders down.
 *
 * Making a folder is the slowest step of writing a small file, and is left to a thread: 1,000 files in 1,000 new state
 * folders, 16 at once, take 70–100 ms of the event loop and 2 ms at a time; all of it at once 90–250 ms and 5–9 ms.
 */
export async function makeFolders(
  stateDir: string,
  names: readonly string[],
  refuse: (obstacle: Obstacle) => Error,
): Promise<string[]> {
  const folders = foldersOn(stateDir, names)
  const missing = firstMissing(stateDir, folders, refuse)
  if (missing === -1) return folders
  // A folder of this name may have been durable before it was removed.
  for (const folder of folders.slice(missing)) durable.delete(folder)
  try {
    await mkdir(folders.at(-1)!, { recursive: true, mode: 0o700 })
  } catch (error) {
    // Somebody may have put something else there since.
    firstMissing(stateDir, folders, refuse)
    throw error
  }
  return folders
}

/** The folder of all state folders, the state folder, and each step down from it. */
export function foldersOn(stateDir: string, names: readonly string[]): string[] {
  const folders = [dirname(stateDir), stateDir]
  for (const name of names) folders.push(join(folders.at(-1)!, name))
  return folders
}

/** Looking costs 2 µs a step, much less than an error that says that a folder exists. */
function firstMissing(stateDir: string, folders: readonly string[], refuse: (obstacle: Obstacle) => Error): number {
  for (const [index, folder] of folders.entries()) {
    const found = lstatSync(folder, { throwIfNoEntry: false })
    if (!found) return index
    // The state folder itself may lie behind a link of its owner.
    if (index > 1 && !found.isDirectory()) {
      throw refuse({ path: folder.slice(stateDir.length + 1), kind: kindOf(found) })
    }
  }
  return -1
}

/** Folders whose place in their parent this process has made durable. What an earlier process left is not known to be. */
const durable = new Set<string>()
const MOST_DURABLE = 20_000

/**
 * Makes what was renamed into the last of `folders` durable, and the place of each of them in its parent; `folders` as
 * `makeFolders` gives them. All at once, for the file system joins what is synced at the same time.
 */
export async function makeDurable(folders: readonly string[]): Promise<void> {
  const open = folders.filter(folder => !durable.has(folder))
  await Promise.all([...new Set([...open.map(dirname), folders.at(-1)!])].map(syncFolder))
  if (durable.size > MOST_DURABLE) durable.clear()
  for (const folder of open) durable.add(folder)
}

/** For folders that somebody else may have removed and made again. */
export function forgetDurable(folders: readonly string[]): void {
  for (const folder of folders) durable.delete(folder)
}

const syncs = new Map<string, { running: Promise<void>; next: Promise<void> | null }>()

/** fsync of a folder. Calls that wait while one runs share the next one, which begins after all of them asked. */
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

const sync = promisify(fsync)

async function syncNow(folder: string): Promise<void> {
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await sync(handle)
  } finally {
    closeSync(handle)
  }
}
