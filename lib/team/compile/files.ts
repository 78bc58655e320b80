// Where a team's files come from: a folder on disk or files in memory. Reads small regular files and nothing else.

import { realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { MAX_BYTES } from '../yaml/yaml.ts'

/** Paths to contents, as a package carries them: `team.yml`, `ticket/team.yml`. */
export type FileMap = ReadonlyMap<string, string | Uint8Array>

export interface Files {
  /** Absolute; null for files in memory. */
  readonly folder: string | null
  /** The bytes of the file at a relative path; null when there is none, or when a closed folder does not hold it. */
  read(path: string): Promise<Uint8Array | null>
}

/** `closed`: nothing outside the folder is read, not through links either. */
export function filesOnDisk(folder: string, closed: boolean): Files {
  const base = resolve(folder)
  return {
    folder: base,
    async read(path) {
      try {
        const real = await realpath(join(base, path))
        if (closed && !real.startsWith((await realpath(base)) + sep)) return null
        if (!(await stat(real)).isFile()) return null
        // One byte more than is allowed: enough for the reader to refuse it.
        return await Bun.file(real)
          .slice(0, MAX_BYTES + 1)
          .bytes()
      } catch {
        return null
      }
    },
  }
}

export function filesInMemory(files: FileMap): Files {
  return {
    folder: null,
    async read(path) {
      const content = files.get(path)
      return typeof content === 'string' ? new TextEncoder().encode(content) : (content ?? null)
    },
  }
}
