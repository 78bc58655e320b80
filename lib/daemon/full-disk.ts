// What a full disk makes of a command: whatever failed on it, however deep, is told as one sentence that names the home.

import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDiskError } from '../../db/open.ts'
import { CadreError } from '../error.ts'
import { sizeText } from '../size.ts'

const FULL = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL']
/** With less than this the run database cannot be opened for writing. */
const ROOM_BYTES = 1_048_576

/** The sentence for an error that a full disk caused; null for any other. */
export function fullDisk(thrown: unknown, home: string): CadreError | null {
  const causes = [...causesOf(thrown)]
  const isFull = causes.some(cause => FULL.includes((cause as NodeJS.ErrnoException).code ?? ''))
  // SQLite calls the same an input or output error where it wants to grow a file.
  if (!isFull && !causes.some(isDiskError)) return null
  const free = freeBytes(home)
  if (free !== null && free < ROOM_BYTES) return homeIsFull(home, `${sizeText(free)} are free`, thrown)
  if (!isFull) return null
  const { path } = causes.find(cause => 'path' in (cause as object)) as { path?: string }
  return new CadreError('unavailable', `the disk${path ? ` of ${path}` : ''} is full; free some space`, {
    cause: thrown,
  })
}

/** `how`: what is known of the free space, in words. */
export function homeIsFull(home: string, how: string, cause?: unknown): CadreError {
  return new CadreError('unavailable', `the disk of ${home} is full: ${how}; free some space`, { cause })
}

function* causesOf(thrown: unknown): Generator<Error> {
  for (let error = thrown; error instanceof Error; error = error.cause) yield error
}

/** Of the disk that holds `home`, or would. 0 where it has no room for another file. */
function freeBytes(home: string): number | null {
  try {
    let folder = home
    while (!existsSync(folder)) folder = dirname(folder)
    const { bavail, bsize, ffree, files } = statfsSync(folder)
    return files > 0 && ffree === 0 ? 0 : bavail * bsize
  } catch {
    return null
  }
}
