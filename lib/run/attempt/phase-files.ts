// The folder for the files of a phase: commands find it empty, and its regular files become the files of the phase.

import { lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileRecord } from '../../agent/agent-context.ts'
import { makeFolders, type Obstacle } from '../../agent/files/folders.ts'
import { recordFiles, type SmallFile } from '../../agent/files.ts'

/** Removes the files of an earlier attempt, unless a command has put a link in the place of `files`. */
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

/** The names that one line of the log has. */
const NAMES_OF_A_LINE = 20

/** Records the files in the folder of a phase, and names in the log those that it cannot keep. */
export async function recordPhaseFiles(
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
