// Where the files of teams come from: a folder on disk, or memory. Reads only regular files, up to a size.

import { realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { MAX_BYTES } from '../yaml/yaml.ts'

/** Paths to contents, as a package carries them: `team.yml`, `ticket/team.yml`. */
export type FileMap = ReadonlyMap<string, string | Uint8Array>

export interface Files {
  /** The absolute folder; null for files in memory. */
  readonly folder: string | null
  /** The bytes of the file at a relative path; null when there is none, or when a closed folder does not hold it. */
  read(path: string): Promise<Uint8Array | null>
}

/**
 * Reads an absolute path in place of the disk, as an editor does with what is not saved. What it throws is reported where the
 * team is named.
 */
export type ReadFile = (path: string, fromDisk: () => Promise<Uint8Array | null>) => Promise<Uint8Array | null>

/** With `closed`, nothing outside the folder is read, not even through links. */
export function filesOnDisk(folder: string, closed: boolean, readFile: ReadFile = (_, fromDisk) => fromDisk()): Files {
  const base = resolve(folder)
  return {
    folder: base,
    read: path => readFile(join(base, path), () => fromDisk(path)),
  }

  async function fromDisk(path: string): Promise<Uint8Array | null> {
    try {
      const real = await realpath(join(base, path))
      if (closed && !real.startsWith((await realpath(base)) + sep)) return null
      if (!(await stat(real)).isFile()) return null
      // One byte more than is allowed, so that the reader refuses a file that is too large.
      return await Bun.file(real)
        .slice(0, MAX_BYTES + 1)
        .bytes()
    } catch {
      return null
    }
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
