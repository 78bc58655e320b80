// What is in a watched folder now. The event loop turns between parts, so that a large folder holds up nothing else. Links
// are not followed, and nothing is found that leaves the folder by one.

import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CadreError, messageOf } from '../../error.ts'
import { fromHome } from '../../files/home-path.ts'
import { matcherOf } from './match.ts'
import type { WatchSpec } from './spec.ts'

/** More files than these break a watch. */
export const MOST_FILES = 100_000
/** How many files are asked about at once. */
const TOGETHER = 128

/** How many files are thought about before others have their turn. */
export const IN_A_ROW = 1_000

/** Lets sockets, timers and signals have their turn. */
export const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A file as it was at one moment: `<bytes>-<mtime in ns>-<inode>`. */
export type Stat = string

export interface Scanned {
  /** The real path of the folder. */
  root: string
  /** By their paths in the folder. */
  files: Map<string, Stat>
  /** The folders that were read by their paths, with what tells one from another at the same place. */
  folders: Map<string, string>
}

const silent = () => {}

/** All files that count. `getsOn` is called with each part. Throws `invalid_state` where the folder is gone, or too full. */
export async function scan(spec: WatchSpec, { most = MOST_FILES, getsOn = silent } = {}): Promise<Scanned> {
  const matcher = matcherOf(spec)
  const root = await rootOf(spec)
  const files = new Map<string, Stat>()
  const folders = new Map<string, string>()
  let level = ['']
  for (let depth = 1; level.length > 0; depth++) {
    const below: string[] = []
    for (const folder of level) {
      const entries = await entriesOf(root, folder)
      if (!entries) continue
      folders.set(folder, entries.identity)
      const wanted: string[] = []
      for (const [n, entry] of entries.all.entries()) {
        if (n % IN_A_ROW === IN_A_ROW - 1) await othersTurn()
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isDirectory()) {
          if (depth < spec.depth && matcher.enters(path)) below.push(path)
        } else if (!entry.isSymbolicLink() && matcher.takes(path)) wanted.push(path)
      }
      if (files.size + wanted.length > most) {
        throw new CadreError('invalid_state', `${spec.folder} has more than ${most} files that match`)
      }
      await statsOf(root, wanted, (path, found) => found !== null && files.set(path, found), getsOn)
    }
    level = below
  }
  return { root, files, folders }
}

/** Those files now; null where there is none any more. */
export async function look(
  spec: WatchSpec,
  paths: readonly string[],
  getsOn = silent,
): Promise<Map<string, Stat | null>> {
  const found = new Map<string, Stat | null>()
  await statsOf(await rootOf(spec), paths, (path, state) => found.set(path, state), getsOn)
  return found
}

/** The folder itself may be reached by links: a person named it. */
export async function rootOf({ folder }: Pick<WatchSpec, 'folder'>): Promise<string> {
  try {
    const root = await realpath(fromHome(folder))
    if ((await stat(root)).isDirectory()) return root
  } catch (error) {
    throw new CadreError('invalid_state', `${folder} cannot be watched: ${whyNot(error)}`, { cause: error })
  }
  throw new CadreError('invalid_state', `${folder} cannot be watched: it is not a folder`)
}

const whyNot = (error: unknown): string => (isGone(error) ? 'there is no such folder' : messageOf(error))

export const isGone = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException | null)?.code ?? '')

/** What is in one folder; null when it is gone, or has become a link. */
async function entriesOf(root: string, folder: string) {
  const at = join(root, folder)
  try {
    const before = await lstat(at, { bigint: true })
    const all = await readdir(at, { withFileTypes: true })
    const after = await lstat(at, { bigint: true })
    const isSame = after.isDirectory() && after.ino === before.ino && after.dev === before.dev
    return isSame && (await realpath(at)) === at ? { all, identity: `${after.dev}-${after.ino}` } : null
  } catch (error) {
    if (isGone(error) && folder !== '') return null
    const hint = folder === '' ? '' : `; \`ignore: ${folder}\` leaves it out`
    throw new CadreError('invalid_state', `${at} cannot be read: ${whyNot(error)}${hint}`, { cause: error })
  }
}

async function statsOf(
  root: string,
  paths: readonly string[],
  take: (path: string, found: Stat | null) => void,
  getsOn: () => void,
): Promise<void> {
  for (let from = 0; from < paths.length; from += TOGETHER) {
    const some = paths.slice(from, from + TOGETHER)
    const stats = await Promise.all(some.map(path => statOf(join(root, path))))
    for (const [at, path] of some.entries()) take(path, stats[at]!)
    getsOn()
  }
}

/** Null for what is no file, or is not there. Throws what is neither, because such a file is not gone. */
export async function statOf(path: string): Promise<Stat | null> {
  try {
    const { size, mtimeNs, ino, isFile } = await factsOf(path)
    return isFile ? `${size}-${mtimeNs}-${ino}` : null
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

async function factsOf(path: string) {
  const found = await lstat(path, { bigint: true })
  return { size: found.size, mtimeNs: found.mtimeNs, ino: found.ino, isFile: found.isFile() }
}

/** The digest of a file in hex; null when it is no longer the one that was found. */
export async function digestOf(spec: WatchSpec, path: string, found: Stat, getsOn = silent): Promise<string | null> {
  const at = join(await rootOf(spec), path)
  try {
    await using file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW)
    const hash = createHash('sha256')
    for await (const part of file.createReadStream({ autoClose: false })) {
      hash.update(part as Uint8Array)
      getsOn()
    }
    return (await statOf(at)) === found ? hash.digest('hex') : null
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** What a run and expressions know of a file. A type, because an interface is not assignable to JSON. */
export type WatchedFile = { path: string; name: string; bytes: number; mtime: number; sha256?: string }

/** Whether a file is the one that was reported. */
export function isStill(now: Stat, { bytes, mtime }: Pick<WatchedFile, 'bytes' | 'mtime'>): boolean {
  const file = fileOf('', '', now, null)
  return file.bytes === bytes && file.mtime === mtime
}

/** `path`: in the folder `root`. */
export function fileOf(root: string, path: string, found: Stat, sha256: string | null): WatchedFile {
  const [bytes = '0', mtimeNs = '0'] = found.split('-') as string[]
  const file = { path: join(root, path), name: path.slice(path.lastIndexOf('/') + 1), bytes: Number(bytes) }
  return { ...file, mtime: Number(BigInt(mtimeNs) / 1_000_000n), ...(sha256 !== null && { sha256 }) }
}
