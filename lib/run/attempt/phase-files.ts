// The folder of the files of a phase, which commands find empty and whose regular files are what the phase leaves.

import { lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileRecord } from '../../agent/agent-context.ts'
import { makeFolders, type Obstacle } from '../../agent/files/folders.ts'
import { recordFiles, type SmallFile } from '../../agent/files.ts'

/** Removes what an earlier attempt left, unless a command has put a link to another place where the files should be. */
export async function removeFolder(stateDir: string, phase: string): Promise<void> {
  const files = join(stateDir, 'files')
  const found = await lstat(files).catch(() => null)
  if (found?.isDirectory()) await rm(join(files, phase), { recursive: true, force: true })
}

/** Makes the empty folder that commands expect, and removes whatever another command put in its place. */
export async function emptyFolder(stateDir: string, phase: string): Promise<void> {
  const obstacle = ({ path, kind }: Obstacle) => new Error(`${path} must be a folder, but it is ${kind}`)
  await makeFolders(stateDir, ['files'], obstacle)
  const folder = join(stateDir, 'files', phase)
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { mode: 0o700 })
  }
}

/** How many names one line of the log has. */
const NAMES_OF_A_LINE = 20

/** Records what a phase left in its folder, and says in the log what it cannot keep. */
export async function filesLeft(
  phase: string,
  { stateDir, log, mask }: { stateDir: string; log(text: string): void; mask(text: string): string },
  small: SmallFile[],
  signal: AbortSignal,
): Promise<FileRecord[]> {
  const special: string[] = []
  const files = await recordFiles(stateDir, phase, {
    signal,
    small: file => void small.push(file),
    leftOut: name => void special.push(name),
    // Names of files stand in results, in the database and on the hub.
    mayHave: name => mask(name) === name,
  })
  if (special.length > 0) {
    const more = special.length > NAMES_OF_A_LINE ? ` and ${special.length - NAMES_OF_A_LINE} more` : ''
    log(
      `not kept, because only regular files without a secret in their names are: ${special.sort().slice(0, NAMES_OF_A_LINE).join(', ')}${more}`,
    )
  }
  return files
}
