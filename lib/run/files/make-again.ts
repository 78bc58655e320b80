// Makes a small file from the bytes that the database has: under a temporary name, without a sync, and only in plain
// folders.

import { lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import {
  foldersOn,
  forgetDurable,
  kindOf,
  makeFolders,
  moveInto,
  type Obstacle,
  openFolder,
} from '../../agent/files/folders.ts'
import { writeUnsynced } from '../../agent/files/hashed-file.ts'
import { type SmallFile, temporaryIn } from '../../agent/files.ts'
import { failpoint } from '../../failpoint.ts'

const refuse = ({ path, kind }: Obstacle) => new Error(`${path} is ${kind}`)

export async function makeAgain(stateDir: string, { path, bytes }: SmallFile): Promise<void> {
  const temporary = temporaryIn(stateDir)
  try {
    await makeFolders(stateDir, path.split('/').slice(0, -1), refuse)
    await writeUnsynced(temporary, bytes)
    failpoint()
    await moveInto(stateDir, path, temporary, refuse)
    failpoint()
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** The same without waiting for another thread. */
export function makeAgainNow(stateDir: string, { path, bytes }: SmallFile): void {
  const names = path.split('/')
  const above = names.slice(0, -1)
  const temporary = temporaryIn(stateDir)
  try {
    for (const [at, folder] of foldersOn(stateDir, above).entries()) {
      const found = lstatSync(folder, { throwIfNoEntry: false })
      if (!found) {
        forgetDurable([folder])
        // Not an error if another thread makes it meanwhile: `openFolder` refuses what is no folder.
        mkdirSync(folder, { recursive: true, mode: 0o700 })
      } else if (at > 1 && !found.isDirectory())
        throw refuse({ path: above.slice(0, at - 1).join('/'), kind: kindOf(found) })
    }
    writeFileSync(temporary, bytes, { flag: 'wx', mode: 0o600 })
    failpoint()
    using folder = openFolder(stateDir, above, refuse)
    renameSync(temporary, folder.at(names.at(-1)!))
    failpoint()
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
