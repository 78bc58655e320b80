// The files that phases wrote, as they are found by what callers call them.

import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { CadreError } from '../error.ts'
import { isSafeName } from '../file-name.ts'

/**
 * The absolute path of `files/<phase>/<name>` of a run. An unsafe name, or one that leads outside through a link, is
 * answered like a missing file.
 */
export async function artifactFile(stateDir: string, runId: string, path: string): Promise<string> {
  const missing = () => new CadreError('not_found', `run ${runId} has no file ${path}`)
  if (!path.startsWith('files/') || !isSafeName(path)) throw missing()
  const base = join(stateDir, 'files')
  try {
    const [real, realBase] = await Promise.all([realpath(join(base, path.slice('files/'.length))), realpath(base)])
    const stat = await Bun.file(real).stat()
    if (real.startsWith(realBase + sep) && stat.isFile()) return real
  } catch {
    // The error is thrown below, as for every file that cannot be read.
  }
  throw missing()
}
