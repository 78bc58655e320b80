// Artifacts: files under `<state_dir>/files/<phase>/`, written whole or not at all, and found again after a power cut.
// Names are allow-listed before they touch a path; then every step down from the state folder must be a real folder.
// A small file is not synced where the caller takes its bytes and keeps them with the result that names it.

import { randomUUID } from 'node:crypto'
import { lstat, readdir, realpath, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { failpoint } from '../failpoint.ts'
import { isSafeName, isSafeSegment, SEGMENT_BYTES } from '../file-name.ts'
import { sizeText } from '../size.ts'
import { chunksIn } from '../stream.ts'
import { AgentError, type FileContent, type FileRecord } from './define.ts'
import { foldersOn, forgetDurable, makeDurable, makeFolders, type Obstacle } from './folders.ts'
import { type Digest, digestNow, digestOf, headOf, openPlain, writeWhole } from './hashed-file.ts'

/**
 * A file name for what a vendor calls `original`: itself where that is safe, else with `_` for what is not and eight
 * hex digits of its hash, so that two different names stay different. Keep the original in `data`.
 * @example await context.write(safeName(attachment.filename), reply.body ?? '')
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

/** A small file that was written without a sync: whoever takes its bytes keeps them until it is durable. */
export interface SmallFile {
  /** Relative to the run's state folder: `files/<phase>/<name>`. */
  path: string
  bytes: Uint8Array
}

/**
 * Most bytes of a small file. Measured on ext4, 16 files a commit or at once, in milliseconds a file: into the database
 * 0.04 (1 KiB), 0.15 (16), 0.4 (64), 0.95 (128), 2.2 (256), all of it on the event loop; written, synced and renamed in
 * a folder of its own 0.4–1.0, nearly all of it in other threads. From 64 KiB on the sync is the cheaper one.
 */
export const SMALL_BYTES = 64 * 1024

/** Most bytes of small files that one writer hands on: they are kept in memory, and in one change of the database. */
export const MOST_SMALL_BYTES = 256 * 1024

/**
 * Writes `files/<phase>/<name>`: a temporary file, its bytes and hash in one pass, fsync, rename, fsync of the folder.
 * With `small`, a small file is not synced, but given to it once it has its name.
 * Throws an AgentError `invalid_name` (nothing was touched), `disk_full`, or what the stream or `signal` threw.
 */
export async function writeArtifact(
  stateDir: string,
  phase: string,
  name: string,
  content: FileContent,
  signal?: AbortSignal,
  small?: (file: SmallFile) => void,
): Promise<FileRecord> {
  if (!isSafeName(name)) {
    throw new AgentError(`${JSON.stringify(name)} cannot name a file in files/${phase}/`, {
      code: 'invalid_name',
      hint: 'use letters, digits, ".", "_" and "-", without "..", a leading "/" or control characters',
    })
  }
  signal?.throwIfAborted()
  const path = `files/${phase}/${name}`
  const temporary = temporaryIn(stateDir)
  try {
    const folders = await makeFolders(stateDir, path.split('/').slice(0, -1), notPlain)
    failpoint()
    const limit = small ? SMALL_BYTES : -1
    const { small: held, ...digest } = await writeWhole(temporary, chunksOf(content), { small: limit, signal })
    failpoint()
    await rename(temporary, join(stateDir, path))
    failpoint()
    if (held) small!({ path, bytes: held })
    else await makeDurable(folders)
    return { name, path, ...digest }
  } catch (error) {
    await rm(temporary, { force: true })
    throw (await diskFull(error, stateDir, path, sizeOf(content))) ?? explain(error, path)
  }
}

/** Beside `files`, where nobody looks for artifacts, and without a folder of its own: folders are what takes time. */
export function temporaryIn(stateDir: string): string {
  return join(stateDir, `.${randomUUID()}`)
}

function notPlain({ path, kind }: Obstacle): AgentError {
  return new AgentError(`${path} must be a plain folder, but it is ${kind}`, {
    code: 'invalid_name',
    hint: 'artifacts are written into plain folders only: remove the link or file, or rename the entry',
  })
}

function chunksOf(content: FileContent): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (typeof content === 'string') return [Buffer.from(content)]
  if (content instanceof Uint8Array) return [content]
  if (content instanceof ReadableStream) return chunksIn(content)
  if (content instanceof Blob) return chunksIn(content.stream())
  return [Buffer.from(`${JSON.stringify(content, null, 2)}\n`)]
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
 * With `small`, small files are not synced, but given to it, up to a sum.
 */
export async function recordFiles(
  stateDir: string,
  phase: string,
  small?: (file: SmallFile) => void,
): Promise<FileRecord[]> {
  const names = ['files', phase]
  const found = await lstat(join(stateDir, ...names)).catch(() => null)
  if (!found?.isDirectory()) return []
  const recording: Recording = { stateDir, phase, small, left: MOST_SMALL_BYTES, records: [] }
  await recordFolder(recording, names)
  return recording.records.sort((a, b) => (a.name < b.name ? -1 : 1))
}

interface Recording {
  stateDir: string
  phase: string
  small: ((file: SmallFile) => void) | undefined
  /** Bytes that may still be given to `small`. */
  left: number
  records: FileRecord[]
}

async function recordFolder(recording: Recording, names: readonly string[]): Promise<void> {
  const folders = foldersOn(recording.stateDir, names)
  const folder = folders.at(-1)!
  let synced = false
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await recordFolder(recording, [...names, entry.name])
    if (!entry.isFile()) continue
    const path = [...names, entry.name].join('/')
    const record = await recordFile(recording, path)
    synced ||= record.synced
    recording.records.push({ name: path.slice(`files/${recording.phase}/`.length), path, ...record.digest })
  }
  // The commands may have removed it and made it again.
  forgetDurable(folders.slice(2))
  if (synced) await makeDurable(folders)
}

async function recordFile(recording: Recording, path: string): Promise<{ digest: Digest; synced: boolean }> {
  const handle = await openPlain(join(recording.stateDir, path))
  try {
    const { size, mode } = await handle.stat()
    // A file that is made again is not executable.
    if (recording.small && size <= Math.min(SMALL_BYTES, recording.left) && (mode & 0o111) === 0) {
      const bytes = await headOf(handle, size)
      recording.left -= size
      recording.small({ path, bytes })
      return { digest: digestNow(bytes), synced: false }
    }
    const digest = await digestOf(handle)
    await handle.sync()
    return { digest, synced: true }
  } finally {
    await handle.close()
  }
}
