// Files that a sub-run hands to the run above it, and the other contents of the folders of team and map phases. These
// functions change files before a change of rows records the result. They do not use the database, and do not block the
// event loop.

import { constants } from 'node:fs'
import { chmod, copyFile, type FileHandle, link, lstat, readdir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve, sep } from 'node:path'
import type { FileRecord } from '../../agent/agent-context.ts'
import { kindOf, makeDurable, makeFolders, moveInto, type Obstacle, openFolder } from '../../agent/files/folders.ts'
import {
  type Digest,
  digestNow,
  digestOf,
  headOf,
  openPlain,
  openReal,
  pathOf,
  slicesFrom,
  writeUnsynced,
  writeWhole,
} from '../../agent/files/hashed-file.ts'
import { MOST_SMALL_BYTES, SMALL_BYTES, type SmallFile, temporaryIn } from '../../agent/files.ts'
import { CadreError, type ErrorCode, messageOf } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'

/** An output of type `file`: its name, and the path of the file as the giving run writes it. */
export interface FileOutput {
  name: string
  path: string
}

/** The run that gives the files. */
export interface Origin {
  stateDir: string
  workspace: string
  /** Started on this machine from a path: it may name files outside its workspace. */
  fromPath: boolean
  /** Whether a run belongs to the same tree: its files may be named by absolute path. */
  sameTree(runId: string): boolean
  /** The record of a file that a phase of this run wrote. */
  known(path: string): FileRecord | null
}

/**
 * Where the files go: `folder` is `files/<phase>` or `files/<phase>/<key>`, below the state folder of the run above.
 */
export interface Destination {
  stateDir: string
  folder: string
  phase: string
  /** Receives the small files, which are then not synced. Without it every file is synced. */
  small?: ((file: SmallFile) => void) | undefined
}

/**
 * Checks that each output is a regular file (not a link, a pipe or a folder) in a folder that the run may name, and
 * returns the records. Throws a CadreError that names the output. A file without a known record is hashed.
 */
export async function checkOutputs(
  origin: Origin,
  outputs: readonly FileOutput[],
  signal?: AbortSignal,
): Promise<FileRecord[]> {
  const records: FileRecord[] = []
  for (const output of outputs) {
    const digest = await withFile(origin, output, source => digestFrom(origin, output, source, signal), signal)
    records.push({ name: nameIn(output.path), path: output.path, ...digest })
  }
  return records
}

/** The name in a record: `a/b` for `files/<phase>/a/b`, the whole path for any other file. */
function nameIn(path: string): string {
  return path.startsWith('files/') ? path.split('/').slice(2).join('/') : path
}

/**
 * Links files of a run into `<stateDir>/<folder>/`, and copies those of a workspace. They are durable when it returns,
 * except the small ones, whose bytes the caller keeps. Returns the new path of each output and the records of the
 * files. Doing it again changes nothing.
 */
export async function handOver(
  origin: Origin,
  outputs: readonly FileOutput[],
  into: Destination,
): Promise<{ paths: Record<string, string>; files: FileRecord[] }> {
  const paths: Record<string, string> = {}
  const files: FileRecord[] = []
  if (outputs.length === 0) return { paths, files }
  const folders = await makeFolders(into.stateDir, into.folder.split('/'), obstacle => inTheWay(obstacle, into.phase))
  const names = namesOf(outputs)
  let synced = false
  let left = MOST_SMALL_BYTES
  for (const [index, output] of outputs.entries()) {
    const path = `${into.folder}/${names[index]}`
    const digest = await withFile(origin, output, source => {
      const small = into.small !== undefined && !source.executable && source.bytes <= Math.min(SMALL_BYTES, left)
      if (small) left -= source.bytes
      else synced = true
      const target = join(into.stateDir, path)
      return put(origin, output, source, { target, temporary: temporaryIn(into.stateDir), path, into, small })
    })
    failpoint()
    paths[output.name] = path
    files.push({ name: path.slice(`files/${into.phase}/`.length), path, ...digest })
  }
  if (synced) await makeDurable(folders)
  failpoint()
  return { paths, files }
}

/**
 * The base names of the files. Files whose base names are equal, also on file systems that ignore case, are named after
 * their outputs.
 */
function namesOf(outputs: readonly FileOutput[]): string[] {
  const plain = outputs.map(({ path }) => basename(path))
  const own = outputs.map(({ name, path }) => name + extname(path))
  const renamed = new Set<number>()
  // Repeated, because an output's name may be the base name of another file. It ends at the latest when all are
  // renamed.
  for (let before = -1; before < renamed.size; ) {
    before = renamed.size
    const seen = new Map<string, number>()
    for (const index of outputs.keys()) {
      const key = (renamed.has(index) ? own : plain)[index]!.toLowerCase()
      const other = seen.get(key)
      if (other !== undefined) renamed.add(index).add(other)
      seen.set(key, index)
    }
  }
  return outputs.map((_, index) => (renamed.has(index) ? own : plain)[index]!)
}

interface Target {
  /** Absolute. */
  target: string
  temporary: string
  /** The path in records. */
  path: string
  into: Destination
  /** Whether the caller keeps its bytes, so that it is not synced. */
  small: boolean
}

/** The file of an output, located and opened. */
interface Source {
  /** Absolute. */
  path: string
  handle: FileHandle
  bytes: number
  /** An executable file is never small: a file that is made again after a power cut is not executable. */
  executable: boolean
  /** The file belongs to the files of a run, which no longer change, so it may be hard-linked. */
  ofRun: boolean
}

async function withFile<T>(
  origin: Origin,
  output: FileOutput,
  use: (source: Source) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  let handle: FileHandle | null = null
  try {
    const { path, real, ofRun } = await locate(origin, output.path)
    // Checked before it is opened, because opening a device can have effects.
    refuseSpecial(await lstat(path), output.path)
    handle = await (real === null ? openPlain(path) : openReal(real))
    const stats = await handle.stat()
    refuseSpecial(stats, output.path)
    return await use({ path, handle, bytes: stats.size, executable: (stats.mode & 0o111) !== 0, ofRun })
  } catch (error) {
    throw signal?.aborted ? error : about(output, error)
  } finally {
    await handle?.close()
  }
}

function refuseSpecial(stats: Parameters<typeof kindOf>[0], path: string): void {
  if (!stats.isFile())
    throw new CadreError('invalid_request', `${path} must be a regular file, but it is ${kindOf(stats)}`)
}

const CAUSES: Record<string, [ErrorCode, (path: string) => string]> = {
  ENOENT: ['not_found', path => `there is no file ${path}`],
  ENOTDIR: ['not_found', path => `there is no file ${path}`],
  EACCES: ['invalid_request', path => `${path} cannot be read: permission denied`],
  EPERM: ['invalid_request', path => `${path} cannot be read: permission denied`],
  ELOOP: ['invalid_request', path => `${path} must be a regular file, but it is a link`],
  ENAMETOOLONG: ['invalid_request', path => `${path} is too long for a path`],
}

/** The error, with the name of its output in front of the message. */
function about(output: FileOutput, error: unknown): unknown {
  if (error instanceof CadreError)
    return new CadreError(error.code, `output ${output.name}: ${error.message}`, { cause: error })
  const [code, messageFor] = CAUSES[(error as NodeJS.ErrnoException | null)?.code ?? ''] ?? [
    'internal' as const,
    (path: string) => `${path} could not be read or handed over: ${messageOf(error)}`,
  ]
  return new CadreError(code, `output ${output.name}: ${messageFor(output.path)}`, { cause: error })
}

/**
 * Finds a file among the run's own files, those of a run of its tree, or in its workspace. Other folders are allowed
 * only in runs that were started on this machine from a path. A link on the way must not lead outside; `real` is the
 * path without links where that matters.
 */
async function locate(origin: Origin, path: string): Promise<{ path: string; real: string | null; ofRun: boolean }> {
  const refused = new CadreError('invalid_request', `${path} lies outside the run's files and its workspace`)
  const own = path.startsWith('files/')
  const full = own ? resolve(origin.stateDir, path) : resolve(origin.workspace, path)
  const base = own ? join(origin.stateDir, 'files') : filesOfTree(origin, full)
  const free = !base && origin.fromPath
  const room = base ?? origin.workspace
  if (path.includes('\0') || (!free && !full.startsWith(room + sep))) throw refused
  if (free) return { path: full, real: null, ofRun: false }
  const [real, realRoom] = await Promise.all([realpath(dirname(full)), realpath(room)])
  if (real !== realRoom && !real.startsWith(realRoom + sep)) throw refused
  return { path: full, real: join(real, basename(full)), ofRun: base !== null }
}

/** The `files` folder that contains `full`, if it belongs to a run of the same tree. */
function filesOfTree({ stateDir, sameTree }: Origin, full: string): string | null {
  const runs = dirname(stateDir)
  if (!full.startsWith(runs + sep)) return null
  const [runId, files] = full.slice(runs.length + 1).split(sep)
  return runId && files === 'files' && sameTree(runId) ? join(runs, runId, 'files') : null
}

/** The recorded digest where the file still has the recorded length, else a new one. */
async function digestFrom(origin: Origin, output: FileOutput, source: Source, signal?: AbortSignal): Promise<Digest> {
  const known = source.ofRun ? origin.known(output.path) : null
  if (known?.bytes === source.bytes) return { bytes: known.bytes, sha256: known.sha256 }
  return await digestOf(source.handle, signal)
}

/** Links or copies the file to its target. */
async function put(origin: Origin, output: FileOutput, source: Source, to: Target): Promise<Digest> {
  const { target, temporary, path, into, small } = to
  try {
    const bytes = small && (await headOf(source.handle, source.bytes))
    const isLink = source.ofRun && (await linked(source, temporary))
    let digest: Digest
    if (bytes) {
      if (!isLink) await writeUnsynced(temporary, bytes)
      digest = digestNow(bytes)
    } else if (isLink) {
      digest = await digestFrom(origin, output, source)
      // The giving run may not have synced it yet.
      await source.handle.sync()
    } else digest = await copy(source, temporary)
    failpoint()
    await moveInto(into.stateDir, path, temporary, obstacle => inTheWay(obstacle, into.phase))
    failpoint()
    if (bytes) into.small!({ path, bytes })
    return digest
  } catch (error) {
    const found = await lstat(target).catch(() => null)
    if (found?.isDirectory()) throw inTheWay({ path, kind: 'a folder' }, into.phase)
    throw error
  } finally {
    // Needed after a rename too: renaming a link onto another link of the same file does nothing.
    await rm(temporary, { force: true })
  }
}

/** Makes a hard link. False where none can be made: another file system, too many links (ext4: 65,000), no support. */
async function linked({ path, handle }: Source, temporary: string): Promise<boolean> {
  try {
    await link(path, temporary)
    // Commands of another run of the tree may have put another file there since it was opened.
    const [made, opened] = await Promise.all([lstat(temporary), handle.stat()])
    if (made.ino === opened.ino && made.dev === opened.dev) return true
    await rm(temporary)
    return false
  } catch (error) {
    if (NO_LINK.has((error as NodeJS.ErrnoException).code)) return false
    throw error
  }
}

const NO_LINK = new Set<string | undefined>(['EXDEV', 'EMLINK', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

/** Copies the file and syncs the copy, which shares its blocks with the original where the file system can do that. */
async function copy(source: Source, temporary: string): Promise<Digest> {
  const shared = await copyFile(
    pathOf(source.handle) ?? source.path,
    temporary,
    constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE,
  ).then(
    () => true,
    () => false,
  )
  if (!shared) {
    const { bytes, sha256 } = await writeWhole(temporary, slicesFrom(source.handle))
    if (source.executable) await chmod(temporary, 0o700)
    return { bytes, sha256 }
  }
  const handle = await openPlain(temporary)
  try {
    const digest = await digestOf(handle)
    await handle.sync()
    return digest
  } finally {
    await handle.close()
  }
}

function inTheWay({ path, kind }: Obstacle, phase: string): CadreError {
  return new CadreError(
    'conflict',
    `${path} is ${kind} that a command of this run made, but phase ${phase} needs this path for files of its sub-runs: write elsewhere`,
  )
}

/**
 * Removes everything in `files/<phase>` except the names in `keep`. A file or a link in place of that folder is
 * removed; links are never followed. A missing file or folder is not an error.
 */
export async function dropStale(stateDir: string, phase: string, keep: ReadonlySet<string>): Promise<void> {
  const files = join(stateDir, 'files')
  if (!(await lstat(files).catch(missing))?.isDirectory()) return
  const root = join(files, phase)
  const found = await lstat(root).catch(missing)
  if (!found) return
  if (!found.isDirectory()) return void (await rm(root, { force: true }))
  using folder = openFolder(stateDir, ['files', phase], obstacle => inTheWay(obstacle, phase))
  for (const name of await readdir(folder.at('.'))) {
    if (!keep.has(name)) await rm(folder.at(name), { recursive: true, force: true })
    failpoint()
  }
}

function missing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}

/** Name of the file with the whole list of a map whose `data` had to be cut. */
const ITEMS = 'items.json'

/** Writes `files/<phase>/items.json` from its text, piece by piece: all of it or nothing. */
export async function writeItems(
  stateDir: string,
  phase: string,
  chunks: AsyncIterable<string> | Iterable<string>,
): Promise<FileRecord> {
  const path = `files/${phase}/${ITEMS}`
  const folders = await makeFolders(stateDir, ['files', phase], obstacle => inTheWay(obstacle, phase))
  const temporary = temporaryIn(stateDir)
  try {
    const { bytes, sha256 } = await writeWhole(temporary, joined(chunks))
    failpoint()
    await moveInto(stateDir, path, temporary, obstacle => inTheWay(obstacle, phase))
    failpoint()
    await makeDurable(folders)
    return { name: ITEMS, path, bytes, sha256 }
  } catch (error) {
    await rm(temporary, { force: true })
    const found = await lstat(join(stateDir, path)).catch(() => null)
    if (found?.isDirectory()) throw inTheWay({ path, kind: 'a folder' }, phase)
    throw error
  }
}

const JOINED_CHARACTERS = 64 * 1024

/** Joins short texts, because each write goes through another thread. */
async function* joined(chunks: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Uint8Array> {
  let text = ''
  for await (const chunk of chunks) {
    text += chunk
    if (text.length < JOINED_CHARACTERS) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text) yield Buffer.from(text)
}

/** Keys that can be the name of a folder. */
const FOLDER_NAME = /^[A-Za-z0-9._-]{1,100}$/

/**
 * The folder name of each item of a map: its key where that can be a folder name, else its index. Where two items would
 * share a folder, also on file systems that ignore case, one of them gets `<index>~`, which cannot be a key: the
 * item whose key cannot be a folder name, or else the later item.
 */
export function foldersOf(keys: readonly string[]): string[] {
  const taken = new Set([ITEMS])
  const take = (name: string, index: number): string => {
    const folder = taken.has(name.toLowerCase()) ? `${index}~` : name
    taken.add(folder.toLowerCase())
    return folder
  }
  const plain = keys.map(key => FOLDER_NAME.test(key) && key !== '.' && key !== '..')
  const folders = keys.map((key, index) => (plain[index] ? take(key, index) : ''))
  return folders.map((folder, index) => folder || take(`${index}`, index))
}
