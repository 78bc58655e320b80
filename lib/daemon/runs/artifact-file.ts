// The files that phases wrote, as they are found by what callers call them. A file is opened once, and then read by its
// handle: commands of the phase may put a link in the place of a folder while somebody reads.

import type { FileHandle } from 'node:fs/promises'
import { realpath } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { openReal, pathOf, slicesFrom } from '../../agent/files/hashed-file.ts'
import { CadreError } from '../../error.ts'
import { isSafeName } from '../../files/file-name.ts'

export interface Artifact extends AsyncDisposable {
  name: string
  bytes: number
  handle: FileHandle
  /** The same file, for as long as this is not disposed. */
  file: Bun.BunFile
}

/**
 * Opens `files/<phase>/<name>` of a run. An unsafe name, or one that leads outside through a link, is answered like a
 * missing file.
 */
export async function openArtifact(stateDir: string, runId: string, path: string): Promise<Artifact> {
  const missing = () => new CadreError('not_found', `run ${runId} has no file ${path}`)
  if (!path.startsWith('files/') || !isSafeName(path)) throw missing()
  const base = join(stateDir, 'files')
  try {
    const [real, realBase] = await Promise.all([realpath(join(base, path.slice('files/'.length))), realpath(base)])
    if (!real.startsWith(realBase + sep)) throw missing()
    const handle = await openReal(real)
    const close = () => handle.close()
    const stats = await handle.stat()
    if (stats.isFile()) {
      const file = Bun.file(pathOf(handle) ?? real, { type: Bun.file(real).type })
      return { name: basename(real), bytes: stats.size, handle, file, [Symbol.asyncDispose]: close }
    }
    await close()
  } catch {
    // The error is thrown below, as for every file that cannot be read.
  }
  throw missing()
}

/** What a file has for those who get it. */
export interface ArtifactContent {
  name: string
  bytes: number
  chunks: AsyncGenerator<Uint8Array, void>
}

/** The content of a file of a run: `unwritten` when the database has it and its file may still be missing. */
export async function readArtifact(
  stateDir: string,
  runId: string,
  path: string,
  unwritten: Uint8Array | null,
): Promise<ArtifactContent> {
  if (unwritten) return { name: basename(path), bytes: unwritten.byteLength, chunks: whole(unwritten) }
  const artifact = await openArtifact(stateDir, runId, path)
  return { name: artifact.name, bytes: artifact.bytes, chunks: contentOf(artifact) }
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes.slice()
}

/** As many bytes as the file had when it was opened. It is closed behind them. */
async function* contentOf(artifact: Artifact): AsyncGenerator<Uint8Array, void> {
  await using _ = artifact
  let left = artifact.bytes
  for await (const slice of slicesFrom(artifact.handle)) {
    yield slice.slice(0, left)
    left -= slice.byteLength
    if (left <= 0) return
  }
  if (left > 0) throw new CadreError('conflict', `${artifact.name} became shorter while it was read`)
}
