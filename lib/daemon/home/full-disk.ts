// Turns every error that a full disk caused, however deep, into one sentence that names the home.

import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDiskError } from '../../../db/open.ts'
import { CadreError } from '../../error.ts'
import { sizeText } from '../../size.ts'

const FULL = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL']
/** With less free space than this, the run database cannot be opened for writing. */
const ROOM_BYTES = 1_048_576

/** The error to report if a full disk caused `thrown`, and null otherwise. */
export function fullDisk(thrown: unknown, home: string): CadreError | null {
  const causes = [...causesOf(thrown)]
  const isFull = causes.some(cause => FULL.includes((cause as NodeJS.ErrnoException).code ?? ''))
  // When SQLite cannot extend a file, it reports the full disk as an input or output error.
  if (!isFull && !causes.some(isDiskError)) return null
  const free = freeBytes(home)
  if (free !== null && free < ROOM_BYTES) return homeIsFull(home, `${sizeText(free)} are free`, thrown)
  if (!isFull) return null
  const { path } = causes.find(cause => 'path' in (cause as object)) as { path?: string }
  return new CadreError('unavailable', `the disk${path ? ` of ${path}` : ''} is full; free some space`, {
    cause: thrown,
  })
}

/** `how` says in words what is known about the free space. */
export function homeIsFull(home: string, how: string, cause?: unknown): CadreError {
  return new CadreError('unavailable', `the disk of ${home} is full: ${how}; free some space`, { cause })
}

function* causesOf(thrown: unknown): Generator<Error> {
  for (let error = thrown; error instanceof Error; error = error.cause) yield error
}

/** Free bytes on the disk that contains `home` or would contain it. 0 when there is no room for another file. */
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
