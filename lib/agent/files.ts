// Artifacts: files in `<state_dir>/files/<phase>/`, written atomically and durable across a power cut. A name must pass
// an allow-list before it becomes part of a path, and every step below the state folder must be a real folder. A small
// file is not synced if the caller keeps its bytes with the result that names it.

import { type FileHandle, lstat, readdir, realpath, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../error.ts'
import { failpoint } from '../failpoint.ts'
import { isSafeName, isSafeSegment, SEGMENT_BYTES } from '../files/file-name.ts'
import { sizeText } from '../size.ts'
import { chunksIn } from '../stream.ts'
import type { FileContent, FileRecord } from './agent-context.ts'
import { AgentError } from './core/agent-error.ts'
import { type FileScope, locate } from './files/file-rule.ts'
import { foldersOn, forgetDurable, makeDurable, makeFolders, moveInto, type Obstacle } from './files/folders.ts'
import {
  type Digest,
  digestNow,
  digestOf,
  headOf,
  openReal,
  pathOf,
  writeUnsynced,
  writeWhole,
} from './files/hashed-file.ts'

/**
 * A safe file name for a vendor's name `original`. A safe name is returned unchanged. In any other name unsafe
 * characters become `_`, and eight hex digits of its hash are added, so that different names stay different. Keep the
 * original name in `data`.
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

/** A small file that was written without a sync. The receiver of its bytes must keep them until the file is durable. */
export interface SmallFile {
  /** Relative to the run's state folder: `files/<phase>/<name>`. */
  path: string
  bytes: Uint8Array
}

/**
 * Maximum size of a small file. Measured on ext4 with 16 files per commit, or 16 in parallel, in milliseconds per file.
 * Into the database, all on the event loop: 0.04 (1 KiB), 0.15 (16 KiB), 0.4 (64 KiB), 0.95 (128 KiB), 2.2 (256 KiB).
 * Written, synced and renamed in its own folder, nearly all in other threads: 0.4–1.0. Above 64 KiB the sync is
 * cheaper.
 */
export const SMALL_BYTES = 64 * 1024

/**
 * Maximum total size of the small files that one writer hands on. They are held in memory and written in one database
 * change.
 */
export const MOST_SMALL_BYTES = 256 * 1024

/** Files of a run that are written later than `writeArtifact` says, because their bytes are kept elsewhere. */
export interface Unwritten {
  /** Takes a small file, or returns false. */
  hold?: ((file: SmallFile) => boolean) | undefined
  /** Writes what was taken. */
  flush(): Promise<void>
  /** The same at once, for a call that cannot wait. */
  flushNow(): void
}

/**
 * Writes `files/<phase>/<name>`: a temporary file, written and hashed in one pass, then fsync, rename, and fsync of the
 * folder. With `small`, a small file is not synced but passed to `small` after the rename, or instead of being written
 * if `unwritten` takes it. Throws an AgentError `invalid_name` (nothing was written) or `disk_full`, or what the stream
 * or `signal` threw.
 */
export async function writeArtifact(
  stateDir: string,
  phase: string,
  name: string,
  content: FileContent,
  signal?: AbortSignal,
  small?: (file: SmallFile) => void,
  unwritten?: Unwritten,
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
    let folders: string[] = []
    const prepare = async () => {
      // What was taken before may be in the way of this file.
      if (unwritten?.hold) await unwritten.flush()
      folders = await makeFolders(stateDir, path.split('/').slice(0, -1), notPlain)
      failpoint()
    }
    const options = { small: small ? SMALL_BYTES : -1, prepare, signal }
    const { small: bytes, ...digest } = await writeWhole(temporary, chunksOf(content), options)
    if (bytes && !unwritten?.hold?.({ path, bytes })) {
      await prepare()
      await writeUnsynced(temporary, bytes)
      failpoint()
      await moveInto(stateDir, path, temporary, notPlain)
    } else if (!bytes) {
      failpoint()
      await moveInto(stateDir, path, temporary, notPlain)
    }
    failpoint()
    if (bytes) small!({ path, bytes })
    else await makeDurable(folders)
    return { name, path, ...digest }
  } catch (error) {
    await rm(temporary, { force: true })
    throw (await diskFull(error, stateDir, path, sizeOf(content))) ?? explain(error, path)
  }
}

/**
 * Temporary files are in the state folder beside `files`, where nobody looks for artifacts. They have no folder of
 * their own, because making a folder is the slowest step.
 */
export function temporaryIn(stateDir: string): string {
  return `${stateDir}/.${crypto.randomUUID()}`
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

/** An AgentError `disk_full` if a full disk or an exceeded quota caused `error`; null otherwise. */
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

/**
 * Opens the file that `path` names: `files/…` is in the run's state folder, any other path in the workspace. Throws an
 * AgentError when it is missing, is not a regular file, or lies outside. Links are resolved before the check. With
 * `hold`, which closes the handle in the end, the result stays this file: a command of the run may put another in its
 * place before it is read, or read again.
 */
export async function readable(
  path: string,
  scope: FileScope,
  hold?: (handle: FileHandle) => void,
): Promise<Bun.BunFile> {
  const real = await locate(path, scope)
  const special = new AgentError(`${path} is not a regular file`, {
    code: 'not_found',
    hint: 'name one file, not a folder; for a folder make an archive with tar in exec, and name that',
  })
  if (!(await stat(real)).isFile()) throw special
  if (!hold) return Bun.file(real)
  const handle = await openReal(real).catch(cause => {
    throw new AgentError(`${path} cannot be opened: ${messageOf(cause)}`, { code: 'not_found', cause })
  })
  hold(handle)
  if (!(await handle.stat()).isFile()) throw special
  return Bun.file(pathOf(handle) ?? real, { type: Bun.file(real).type })
}

/** The absolute path of a folder, with the same rules as `readable`. */
export async function folderAt(path: string, scope: FileScope): Promise<string> {
  const real = await locate(path, scope)
  if ((await stat(real)).isDirectory()) return real
  throw new AgentError(`${path} is not a folder`, { code: 'not_found', hint: 'name a folder' })
}

export interface RecordOptions {
  small?: (file: SmallFile) => void
  leftOut?: (name: string) => void
  /** Whether a file of this name may be recorded; by default all are. */
  mayHave?: (name: string) => boolean
  /** Ends the reading of large files. */
  signal?: AbortSignal
}

/**
 * Records the files in a phase's folder that were not written by `write`, such as those that commands of exec write to
 * CADRE_OUT. Every regular file is hashed and made durable; the records are sorted by name. Links and other special
 * files are neither followed nor recorded; `leftOut` gets the name of each in that folder. With `small`, small files
 * up to a total size are not synced but passed to `small`.
 */
export async function recordFiles(
  stateDir: string,
  phase: string,
  { small, leftOut, mayHave, signal }: RecordOptions = {},
): Promise<FileRecord[]> {
  const names = ['files', phase]
  const found = await lstat(join(stateDir, ...names)).catch(() => null)
  if (!found?.isDirectory()) return []
  // The folder of all phases cannot be replaced by a command in a sandbox, and those below it are judged at each file.
  const realDir = await realpath(stateDir)
  const recording: Recording = {
    stateDir,
    realDir,
    phase,
    small,
    leftOut,
    mayHave,
    signal,
    left: MOST_SMALL_BYTES,
    records: [],
  }
  await recordFolder(recording, names)
  return recording.records.sort((a, b) => (a.name < b.name ? -1 : 1))
}

interface Recording {
  stateDir: string
  /** The same without links. */
  realDir: string
  phase: string
  small: ((file: SmallFile) => void) | undefined
  leftOut: ((name: string) => void) | undefined
  mayHave: ((name: string) => boolean) | undefined
  signal: AbortSignal | undefined
  /** Bytes that may still be passed to `small`. */
  left: number
  records: FileRecord[]
}

async function recordFolder(recording: Recording, names: readonly string[]): Promise<void> {
  const folders = foldersOn(recording.stateDir, names)
  const folder = folders.at(-1)!
  let synced = false
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = [...names, entry.name].join('/')
    const name = path.slice(`files/${recording.phase}/`.length)
    if (entry.isDirectory()) await recordFolder(recording, [...names, entry.name])
    else if (!entry.isFile() || recording.mayHave?.(name) === false) recording.leftOut?.(name)
    else {
      const record = await recordFile(recording, path)
      synced ||= record.synced
      recording.records.push({ name, path, ...record.digest })
    }
  }
  // The commands may have removed the folder and made it again.
  forgetDurable(folders.slice(2))
  if (synced) await makeDurable(folders)
}

async function recordFile(recording: Recording, path: string): Promise<{ digest: Digest; synced: boolean }> {
  const handle = await openReal(join(recording.realDir, path))
  try {
    const { size, mode } = await handle.stat()
    // A file that is restored from the database is not executable, so an executable file is never small.
    if (recording.small && size <= Math.min(SMALL_BYTES, recording.left) && (mode & 0o111) === 0) {
      const bytes = await headOf(handle, size)
      recording.left -= size
      recording.small({ path, bytes })
      return { digest: digestNow(bytes), synced: false }
    }
    const digest = await digestOf(handle, recording.signal)
    await handle.sync()
    return { digest, synced: true }
  } finally {
    await handle.close()
  }
}
