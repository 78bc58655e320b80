// Writes and reads files in slices and hashes them on the way, with slices so small that the event loop is not held up.
// The caller writes to a temporary name and renames the file when it is complete. All file operations run in other
// threads, because even an open, link or rename can wait for a busy disk (measured: 760 ms).

import { constants } from 'node:fs'
import { type FileHandle, open, readlink, statfs, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface Digest {
  bytes: number
  /** In hexadecimal. */
  sha256: string
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

/**
 * A file larger than this must leave a reserve on the disk for small files, logs and the run database, so that other
 * runs can continue.
 */
const SPARED_BYTES = 64 * 1024
const RESERVE_BYTES = 16 * 1_048_576
/** On a small disk the reserve is this fraction of the disk. */
const RESERVE_PART = 0.02
/** The free space is measured again after this many bytes, because other processes write to the disk too. */
const LOOK_BYTES = 4 * 1_048_576

/**
 * Writes and syncs a file that does not exist yet. Content of at most `small` bytes is not written, but returned; by
 * default all content is written. `prepare` is called before the file is made.
 */
export async function writeWhole(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  {
    small = -1,
    prepare,
    signal,
  }: { small?: number; prepare?: () => Promise<unknown>; signal?: AbortSignal | undefined } = {},
): Promise<Digest & { small: Uint8Array | null }> {
  const hasher = new Bun.CryptoHasher('sha256')
  /**
   * The content so far, while it still fits a small file. The chunks are copied, because the writer may reuse its
   * buffer.
   */
  const held: Uint8Array[] = []
  let bytes = 0
  let spare = SPARED_BYTES
  let file: FileHandle | null = null
  const openNew = async () => {
    await prepare?.()
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  }
  try {
    for await (const chunk of chunks) {
      signal?.throwIfAborted()
      bytes += chunk.byteLength
      if (bytes <= small) {
        held.push(new Uint8Array(chunk))
        continue
      }
      file ??= await openNew()
      for (const part of [...held.splice(0), chunk]) {
        if (part.byteLength > spare) spare = await spareOf(dirname(path), part.byteLength)
        spare -= part.byteLength
        for (const slice of slicesOf(part)) {
          hasher.update(slice)
          await writeFully(file, slice)
        }
      }
    }
    if (bytes <= small) {
      const whole = held.length === 1 ? held[0]! : Buffer.concat(held)
      return { ...digestNow(whole), small: whole }
    }
    file ??= await openNew()
    await file.sync()
    return { bytes, sha256: hasher.digest('hex'), small: null }
  } finally {
    await file?.close()
  }
}

/** Writes a small file that does not exist yet. */
export function writeUnsynced(path: string, content: Uint8Array): Promise<void> {
  return writeFile(path, content, { flag: 'wx', mode: 0o600 })
}

/** Hashing one slice takes 0.5–1.3 ms. */
const SLICE_BYTES = 256 * 1024

/** Splits a chunk, which may be a file of hundreds of megabytes, into slices. */
function* slicesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < chunk.byteLength; at += SLICE_BYTES) yield chunk.subarray(at, at + SLICE_BYTES)
}

/**
 * How many bytes may be written before the next measurement, at least `needed`. Throws ENOSPC when there is too little
 * space.
 */
async function spareOf(folder: string, needed: number): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(folder)
  // A file system that does not report its size has no reserve; it refuses writes itself when it is full.
  if (blocks === 0) return Number.POSITIVE_INFINITY
  const spare = bavail * bsize - Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_PART)
  if (spare >= needed) return Math.max(needed, Math.min(spare, LOOK_BYTES))
  throw Object.assign(new Error('the remaining space on the disk is reserved'), { code: 'ENOSPC' })
}

async function writeFully(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at)).bytesWritten
}

/** Opens a file for reading. A link fails with ELOOP, and a named pipe does not wait for a writer. */
export function openPlain(path: string): Promise<FileHandle> {
  return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
}

/** A path that stays the one of the open file, whatever becomes of its name; null where the system has none. */
export function pathOf({ fd }: FileHandle): string | null {
  return process.platform === 'linux' ? `/proc/self/fd/${fd}` : null
}

/**
 * Opens the file at a path in which links were resolved. Throws ELOOP if one has come into it since: only the kernel
 * can say which file was opened, because whatever is looked at by its path may be another one at the next look. Other
 * systems than Linux have no sandbox from which somebody could put a link there.
 */
export async function openReal(real: string): Promise<FileHandle> {
  const handle = await openPlain(real)
  try {
    const path = pathOf(handle)
    if (path === null || (await readlink(path)) === real) return handle
    throw Object.assign(new Error(`${real} was replaced while it was opened`), { code: 'ELOOP' })
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** The bytes of an open file in slices. Each slice is overwritten by the next one. */
export async function* slicesFrom(handle: FileHandle, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(SLICE_BYTES)
  for (;;) {
    signal?.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, null)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

export async function digestOf(handle: FileHandle, signal?: AbortSignal): Promise<Digest> {
  const hasher = new Bun.CryptoHasher('sha256')
  let bytes = 0
  for await (const slice of slicesFrom(handle, signal)) {
    hasher.update(slice)
    bytes += slice.byteLength
  }
  return { bytes, sha256: hasher.digest('hex') }
}

/** The first `bytes` bytes of an open file, or fewer if the file is shorter. */
export async function headOf(handle: FileHandle, bytes: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(bytes)
  let at = 0
  while (at < bytes) {
    const { bytesRead } = await handle.read(buffer, at, bytes - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return buffer.subarray(0, at)
}

/** The digest of content that is small enough to be hashed at once. */
export function digestNow(content: Uint8Array): Digest {
  return { bytes: content.byteLength, sha256: Bun.SHA256.hash(content, 'hex') }
}
