// Files of runs in a folder that all hubs share. Daemons send them to a hub, which writes each to a temporary name while
// it comes in, and renames it when it is whole and durable.

import { lstat, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDurable, makeFolders } from '../../agent/files/folders.ts'
import { writeWhole } from '../../agent/files/hashed-file.ts'
import { CadreError } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { downloadHeaders } from '../../http/download.ts'
import { isOfDisk } from '../../http/reply.ts'
import { chunksIn } from '../../stream.ts'
import { type ArtifactStore, type KeptFile, objectKeyOf } from '../core/artifact-store.ts'

/** A temporary file that nobody writes to for so long, by the clock, belongs to an upload that was interrupted. */
const LONGEST_UPLOAD_MS = 24 * 3_600_000
/** How long this process has to see it unchanged besides, because the clock may have jumped. */
const UNCHANGED_MS = 3_600_000

/** `monotonic`: in milliseconds from any start. A step of the clock does not change it. */
export function folderStore(root: string, most: number, monotonic = () => performance.now()): ArtifactStore {
  const pathOf = (file: KeptFile) => join(root, objectKeyOf(file))
  /** Temporary files with their last change, and since when this process has seen that. */
  let seen = new Map<string, { mtimeMs: number; since: number }>()

  async function has(file: KeptFile): Promise<boolean> {
    const found = await lstat(pathOf(file)).catch(absent)
    return found?.isFile() === true && found.size === file.bytes
  }

  return {
    most,
    has,
    upload: async () => ({ url: null, headers: { 'content-type': 'application/octet-stream' } }),
    async receive(file, content) {
      const path = pathOf(file)
      const temporary = join(root, `.${crypto.randomUUID()}`)
      try {
        const folders = await makeFolders(root, [file.realm_id, file.root_run_id], ({ path, kind }) => {
          return new Error(`${join(root, path)} must be a folder, but it is ${kind}`)
        })
        const digest = await writeWhole(temporary, content ? atMost(file.bytes, content) : [])
        if (digest.bytes !== file.bytes || digest.sha256 !== file.sha256) throw otherContent()
        failpoint()
        await rename(temporary, path)
        await makeDurable(folders)
      } catch (error) {
        await rm(temporary, { force: true })
        if (!isOfDisk(error)) throw error
        const message = 'the disk of the store of CADRE_ARTIFACTS takes no more writes: free some space there'
        throw new CadreError('unavailable', message, { cause: error })
      }
    },
    async download(file, name) {
      if (await has(file)) return new Response(Bun.file(pathOf(file)), { headers: downloadHeaders(name) })
      throw new CadreError('unavailable', `${name} is missing in the folder of CADRE_ARTIFACTS`)
    },
    async remove(file) {
      await rm(pathOf(file), { force: true })
      // The folder stays while it has other files.
      await rmdir(dirname(pathOf(file))).catch(() => {})
    },
    async tidy(now) {
      const at = monotonic()
      const still: typeof seen = new Map()
      for (const name of await readdir(root)) {
        if (!name.startsWith('.')) continue
        const found = await lstat(join(root, name)).catch(absent)
        if (!found?.isFile()) continue
        const { mtimeMs } = found
        const known = seen.get(name)
        const since = known?.mtimeMs === mtimeMs ? known.since : at
        const isOld = now - mtimeMs > LONGEST_UPLOAD_MS && at - since >= UNCHANGED_MS
        if (isOld) await rm(join(root, name), { force: true })
        else still.set(name, { mtimeMs, since })
      }
      seen = still
    },
  }
}

/** The chunks of a body that may have `most` bytes. */
async function* atMost(most: number, content: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunksIn(content)) {
    bytes += chunk.byteLength
    if (bytes > most) throw otherContent()
    yield chunk
  }
}

const otherContent = () =>
  new CadreError('invalid_request', 'the content does not have the announced number of bytes and SHA-256')

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}
