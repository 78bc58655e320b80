// Artifacts: files under `<state_dir>/files/<phase>/`, written whole or not at all, and found again after a power cut.
// Names are allow-listed before they touch a path; then every step down from the state folder must be a real folder.

import { randomUUID } from 'node:crypto'
import { closeSync, constants, fsync, lstatSync, mkdirSync, openSync, renameSync, write } from 'node:fs'
import { lstat, open, readdir, realpath, rm, stat, statfs } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { promisify } from 'node:util'
import { failpoint } from '../failpoint.ts'
import { sizeText } from '../size.ts'
import { AgentError, type FileContent, type FileRecord } from './define.ts'

const SEGMENT = /^[\p{L}\p{N}_.][\p{L}\p{N}\p{M} _.,;@+=~()[\]#&'!%$-]*$/u
/** File systems allow 255; the rest is room for a suffix. */
const SEGMENT_BYTES = 200

function isSafeSegment(segment: string): boolean {
  return segment !== '.' && segment !== '..' && SEGMENT.test(segment) && Buffer.byteLength(segment) <= SEGMENT_BYTES
}

/** Whether `name` can name an artifact: segments of letters, digits and common marks, joined by `/`. */
export function isSafeName(name: string): boolean {
  return Buffer.byteLength(name) <= 1_000 && name.split('/').every(isSafeSegment)
}

/**
 * A file name for what a vendor calls `original`: itself where that is safe, else with `_` for what is not and eight
 * hex digits of its hash, so that two different names stay different. Keep the original in `data`.
 */
export function safeName(original: string): string {
  if (isSafeSegment(original)) return original
  const mark = new Bun.CryptoHasher('sha256').update(original).digest('hex').slice(0, 8)
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(original)?.[0] ?? ''
  const stem = original
    .slice(0, original.length - extension.length)
    .replace(/[^\p{L}\p{N}_.-]+/gu, '_')
    .replace(/^[.-]+/, '_')
  let short = stem
  while (Buffer.byteLength(short) > SEGMENT_BYTES - 20) short = short.slice(0, -1)
  return `${short.toWellFormed() || '_'}-${mark}${extension}`
}

/**
 * Writes `files/<phase>/<name>`: a temporary file, its bytes and hash in one pass, fsync, rename, fsync of the folder.
 * Throws an AgentError `invalid_name` (nothing was touched), `disk_full`, or what the stream or `signal` threw.
 */
export async function writeArtifact(
  stateDir: string,
  phase: string,
  name: string,
  content: FileContent,
  signal?: AbortSignal,
): Promise<FileRecord> {
  if (!isSafeName(name)) {
    throw new AgentError(`${JSON.stringify(name)} cannot name a file in files/${phase}/`, {
      code: 'invalid_name',
      hint: 'use letters, digits, ".", "_" and "-", without "..", a leading "/" or control characters',
    })
  }
  signal?.throwIfAborted()
  const path = `files/${phase}/${name}`
  const target = join(stateDir, path)
  // Beside `files`, where nobody looks for artifacts, and without a folder of its own: folders are what takes time here.
  const temporary = join(stateDir, `.${randomUUID()}`)
  try {
    const folders = [...makeStateDir(stateDir), ...makeFolders(stateDir, path.split('/').slice(0, -1))]
    const { bytes, sha256 } = await writeWhole(temporary, content, signal)
    failpoint()
    renameSync(temporary, target)
    failpoint()
    await Promise.all([syncFolder(dirname(target)), makeDurable(folders)])
    return { name, path, bytes, sha256 }
  } catch (error) {
    await rm(temporary, { force: true })
    throw (await diskFull(error, stateDir, path, sizeOf(content))) ?? explain(error, path)
  }
}

/** Opening, closing and naming cost microseconds and happen at once; what waits for the disk does not hold up others. */
async function writeWhole(path: string, content: FileContent, signal?: AbortSignal) {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    const hasher = new Bun.CryptoHasher('sha256')
    let bytes = 0
    let spare = SMALL_BYTES
    for await (const chunk of chunksOf(content)) {
      signal?.throwIfAborted()
      if (chunk.byteLength > spare) spare = await spareOf(dirname(path), chunk.byteLength)
      spare -= chunk.byteLength
      hasher.update(chunk)
      await writeFully(file, chunk)
      bytes += chunk.byteLength
    }
    await sync(file)
    return { bytes, sha256: hasher.digest('hex') }
  } finally {
    closeSync(file)
  }
}

/** What is larger leaves the last of a disk to small files, logs and the run database, so that other runs go on. */
const SMALL_BYTES = 64 * 1024
const RESERVE_BYTES = 16 * 1_048_576
/** On a small disk the reserve is this part of it. */
const RESERVE_PART = 0.02
/** Most that is written until the disk is looked at again: others write, too. */
const LOOK_BYTES = 4 * 1_048_576

/** Bytes that may be written now, `needed` at least. Throws ENOSPC. */
async function spareOf(folder: string, needed: number): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(folder)
  // A file system that does not tell its size is taken at its word when it refuses.
  if (blocks === 0) return Number.POSITIVE_INFINITY
  const spare = bavail * bsize - Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_PART)
  if (spare >= needed) return Math.max(needed, Math.min(spare, LOOK_BYTES))
  throw Object.assign(new Error('the rest of the disk is for others'), { code: 'ENOSPC' })
}

const sync = promisify(fsync)
const writeLater = promisify(write)
/** Later, each time: a stream that always has more must not keep everything else from running. */
async function writeFully(file: number, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.byteLength; ) at += (await writeLater(file, chunk, at)).bytesWritten
}

function chunksOf(content: FileContent): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (typeof content === 'string') return [Buffer.from(content)]
  if (content instanceof Uint8Array) return [content]
  if (content instanceof ReadableStream) return content as unknown as AsyncIterable<Uint8Array>
  if (content instanceof Blob) return content.stream() as unknown as AsyncIterable<Uint8Array>
  return [Buffer.from(`${JSON.stringify(content, null, 2)}\n`)]
}

/** Made when first written to. Gives the folders on the way to it whose place in their parent is not durable for sure. */
function makeStateDir(stateDir: string): string[] {
  if (durable.has(stateDir)) return []
  const first = mkdirSync(stateDir, { recursive: true, mode: 0o700 }) ?? stateDir
  const folders = [stateDir]
  for (let at = stateDir; at !== first; ) {
    at = dirname(at)
    folders.push(at)
  }
  return folders
}

/** Steps down from the state folder, making what is missing; every step is a real folder, never a link. Gives the steps. */
function makeFolders(stateDir: string, names: readonly string[]): string[] {
  const folders: string[] = []
  let at = stateDir
  for (const name of names) {
    at = join(at, name)
    folders.push(at)
    try {
      mkdirSync(at, { mode: 0o700 })
      // One of this name may have been durable before it was removed.
      durable.delete(at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (lstatSync(at).isDirectory()) continue
      throw new AgentError(`${at.slice(stateDir.length + 1)} is no plain folder`, {
        code: 'invalid_name',
        hint: 'artifacts are written into plain folders only: remove the link or file, or rename the entry',
      })
    }
  }
  return folders
}

/** Folders whose place in their parent this process has made durable. What an earlier process left is not known to be. */
const durable = new Set<string>()
const MOST_DURABLE = 20_000

/** All at once, for the file system joins what is synced at the same time. */
async function makeDurable(folders: readonly string[]): Promise<void> {
  const open = folders.filter(folder => !durable.has(folder))
  await Promise.all([...new Set(open.map(dirname))].map(syncFolder))
  if (durable.size > MOST_DURABLE) durable.clear()
  for (const folder of open) durable.add(folder)
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

async function syncNow(folder: string): Promise<void> {
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await sync(handle)
  } finally {
    closeSync(handle)
  }
}

function sizeOf(content: FileContent): number | undefined {
  if (typeof content === 'string') return Buffer.byteLength(content)
  if (content instanceof Uint8Array) return content.byteLength
  return content instanceof Blob ? content.size : undefined
}

/** The error `disk_full` where a disk or a quota that is full is at the bottom of `error`; else null. */
export async function diskFull(
  error: unknown,
  folder: string,
  path?: string,
  bytes?: number,
): Promise<AgentError | null> {
  let bottom = error as (Error & { code?: unknown }) | null | undefined
  for (let depth = 0; depth < 5 && bottom && !FULL.has(bottom.code); depth++) bottom = bottom.cause as Error | undefined
  if (!bottom || !FULL.has(bottom.code)) return null
  const free = await statfs(folder).then(
    ({ bavail, bsize }) => `, ${sizeText(bavail * bsize)} are free now`,
    () => '',
  )
  const needed = bytes === undefined ? '' : ` of ${sizeText(bytes)}`
  return new AgentError(
    `${bottom.code}: the disk is full${path ? `, ${path}${needed} was not written` : ''}: ${folder}${free}`,
    { code: 'disk_full', hint: 'free space on the disk of this folder, then resume the run', cause: error },
  )
}

const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT'])

function explain(error: unknown, path: string): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code
  if (code === 'EISDIR' || code === 'ENOTDIR' || code === 'EEXIST' || code === 'ENOTEMPTY') {
    return new AgentError(`${path} is a file and a folder at once`, {
      code: 'invalid_name',
      hint: 'rename one of the two entries',
      cause: error,
    })
  }
  return error
}

interface Places {
  stateDir: string
  workspace: string
  /** Lets absolute paths and what lies beyond the workspace pass: runs started on this machine from a path. */
  outside: boolean
  /** Whether a run is of the same tree: its files may be named by absolute path, as inputs of type `file` are. */
  sameTree?: ((runId: string) => boolean) | undefined
}

/**
 * The file that `path` names: `files/…` of the run, else of the workspace. Throws an AgentError when it is missing, is no
 * regular file, or lies outside, links included.
 */
export async function readable(path: string, places: Places): Promise<Bun.BunFile> {
  const real = await locate(path, places)
  if ((await stat(real)).isFile()) return Bun.file(real)
  throw new AgentError(`${path} is not a regular file`, { code: 'not_found', hint: 'name one file, not a folder' })
}

/** The absolute path of a folder, where `readable` would find its files. */
export async function folderAt(path: string, places: Places): Promise<string> {
  const real = await locate(path, places)
  if ((await stat(real)).isDirectory()) return real
  throw new AgentError(`${path} is not a folder`, { code: 'not_found', hint: 'name a folder' })
}

async function locate(path: string, places: Places): Promise<string> {
  const { stateDir, workspace, outside } = places
  const lent = folderOfTree(path, places)
  const ofRun = path.startsWith('files/') || lent !== null
  const base = lent ?? (ofRun ? join(stateDir, 'files') : workspace)
  const full = ofRun ? resolve(stateDir, path) : resolve(workspace, path)
  const refused = new AgentError(`${JSON.stringify(path)} lies outside the run's files and its workspace`, {
    code: 'outside',
    hint: 'name what lies in the workspace, or in `files/<phase>/` of an earlier phase',
  })
  const free = outside && !ofRun
  if (path.includes('\0') || (!free && ((isAbsolute(path) && !lent) || !within(full, base)))) throw refused
  try {
    const [real, realBase] = await Promise.all([realpath(full), free ? base : realpath(base)])
    if (!free && !within(real, realBase)) throw refused
    return real
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw new AgentError(`${path} does not exist`, {
      code: 'not_found',
      hint: ofRun ? 'does the phase that writes it stand in depends_on?' : `looked in ${workspace}`,
      cause: error,
    })
  }
}

/** The files of another run of the tree, where `path` is absolute and lies among them. */
function folderOfTree(path: string, { stateDir, sameTree }: Places): string | null {
  const runs = dirname(stateDir)
  if (!sameTree || !isAbsolute(path) || !within(path, runs)) return null
  const [runId, files] = path.slice(runs.length + 1).split(sep)
  return runId && files === 'files' && sameTree(runId) ? join(runs, runId, 'files') : null
}

function within(path: string, base: string): boolean {
  return path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)
}

/**
 * What a phase left in its folder without `write` (exec: what its commands wrote to CADRE_OUT): every regular file,
 * hashed and made durable, sorted by name. Links and other special files are not followed and not recorded.
 */
export async function recordFiles(stateDir: string, phase: string): Promise<FileRecord[]> {
  const root = join(stateDir, 'files', phase)
  const isFolder = await lstat(root).then(
    found => found.isDirectory(),
    () => false,
  )
  return isFolder ? (await recordFolder(root, '', `files/${phase}`)).sort((a, b) => (a.name < b.name ? -1 : 1)) : []
}

async function recordFolder(folder: string, prefix: string, path: string): Promise<FileRecord[]> {
  const records: FileRecord[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const name = prefix + entry.name
    if (entry.isDirectory()) records.push(...(await recordFolder(join(folder, entry.name), `${name}/`, path)))
    else if (entry.isFile())
      records.push({ name, path: `${path}/${name}`, ...(await hashFile(join(folder, entry.name))) })
  }
  await syncFolder(folder)
  return records
}

async function hashFile(path: string): Promise<{ bytes: number; sha256: string }> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const hasher = new Bun.CryptoHasher('sha256')
    const buffer = new Uint8Array(256 * 1024)
    let bytes = 0
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength)
      if (bytesRead === 0) break
      hasher.update(buffer.subarray(0, bytesRead))
      bytes += bytesRead
    }
    await handle.sync()
    return { bytes, sha256: hasher.digest('hex') }
  } finally {
    await handle.close()
  }
}
