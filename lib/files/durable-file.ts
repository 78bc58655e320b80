// Writes a file atomically and durably: writes and syncs a temporary file in the same folder, gives it its name, and
// syncs the folder.

import { linkSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces `file`, which is readable by its owner only unless `mode` says otherwise. Makes its folder if it does not exist. */
export async function writeDurable(file: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  try {
    const handle = await open(temporary, 'w', mode)
    try {
      await handle.chmod(mode)
      await handle.writeFile(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  const folder = await open(dirname(file), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * Creates `file`, which is readable by its owner only, whole or not at all, whenever the process ends. A file that exists
 * is left as it is, because another process was first.
 */
export function createWhole(file: string, content: string | Uint8Array): void {
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, content, { mode: 0o600, flush: true })
  try {
    linkSync(temporary, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary)
  }
}
