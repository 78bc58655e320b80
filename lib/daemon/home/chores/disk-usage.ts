// The disk space of runs. The files of a tree do not change after its end, so they are counted once and the result is
// kept.

import type { Database } from 'bun:sqlite'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunId } from '../../../files/run-id.ts'

export class TreeSizes {
  readonly #db: Database
  readonly #stateDir: (runId: RunId) => string
  readonly #known = new Map<string, { endedAt: number; bytes: number }>()

  constructor(db: Database, stateDir: (runId: RunId) => string) {
    this.#db = db
    this.#stateDir = stateDir
  }

  /** Bytes on the disk of all files of an ended tree. A tree that was resumed and has ended again is counted again. */
  async of(rootId: string, endedAt: number): Promise<number> {
    const known = this.#known.get(rootId)
    if (known?.endedAt === endedAt) return known.bytes
    const seen = new Set<number>()
    let bytes = 0
    for (const { id } of this.#db.query<{ id: RunId }, [string]>('SELECT id FROM runs WHERE root_id = ?').all(rootId)) {
      bytes += await folderBytes(this.#stateDir(id), seen)
    }
    this.#known.set(rootId, { endedAt, bytes })
    return bytes
  }

  /** Drops the results of all other trees. */
  keep(rootIds: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) if (!rootIds.has(id)) this.#known.delete(id)
  }
}

/** The size of the content of the run database. Free pages are not counted. */
export function databaseBytes(db: Database): number {
  const number = (pragma: string) => Object.values(db.query<Record<string, number>, []>(`PRAGMA ${pragma}`).get()!)[0]!
  return (number('page_count') - number('freelist_count')) * number('page_size')
}

/** The size of a folder. A file that a sub-run handed over has several names in a tree and is counted once. */
async function folderBytes(folder: string, seen: Set<number>): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await folderBytes(path, seen)
    else {
      const file = await lstat(path).catch(() => null)
      if (!file || (file.nlink > 1 && seen.has(file.ino))) continue
      seen.add(file.ino)
      bytes += file.blocks * 512
    }
  }
  return bytes
}
