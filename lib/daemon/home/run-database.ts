// The run database of a home for reading, whether or not a process holds the home. One that an older program has written
// is first brought to the form that this program reads, as a start of the daemon would.

import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import {
  countMigrations,
  isDiskError,
  openForReading,
  openRunDatabase,
  readMigrations,
  versionOf,
} from '../../../db/open.ts'
import { CadreError } from '../../error.ts'
import { ROOT } from '../../program/install-root.ts'
import { databaseFile } from './home.ts'
import { holderOf, takeLock } from './lock.ts'

export const MIGRATIONS = join(ROOT, 'db/daemon/migrations')

/** How long to wait for another process that brings the database up to date. */
const PATIENCE_MS = 10_000
const LOOK_MS = 20
/** What Node says of a folder in which no file can be made. */
const UNWRITABLE = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT'])

/** What is done with a database of an older program: it is brought up to date, or left as it is and refused. */
export type Older = 'update' | 'refuse'

/**
 * Throws `conflict` when a process of an older program holds the home, or when an `older` database is refused, and
 * `unavailable` when it cannot be written.
 */
export async function readRunDatabase(home: string, older: Older = 'update'): Promise<Database> {
  const file = databaseFile(home)
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const db = openForReading(file)
    if (versionOf(db) >= countMigrations(MIGRATIONS)) return db
    db.close()
    if (older === 'refuse') throw new CadreError('conflict', `${file} was written by an older program`)
    try {
      await bringUpToDate(home)
    } catch (error) {
      // A process that has no address yet, or has just ended, may be doing the same.
      const isMoving = error instanceof CadreError && error.code === 'conflict' && !holderOf(home)?.address
      if (!isMoving || performance.now() > deadline) throw explained(error, home)
      await Bun.sleep(LOOK_MS)
    }
  }
}

async function bringUpToDate(home: string): Promise<void> {
  const migrations = await readMigrations(MIGRATIONS)
  const lock = takeLock(home, 'migrate')
  try {
    openRunDatabase(databaseFile(home), migrations).close()
  } finally {
    lock.release()
  }
}

function explained(error: unknown, home: string): unknown {
  const older = `${databaseFile(home)} was written by an older program, and this one must bring it up to date before it reads it`
  if (error instanceof CadreError) return new CadreError(error.code, `${older}: ${error.message}`, { cause: error })
  if (!isDiskError(error) && !UNWRITABLE.has((error as NodeJS.ErrnoException).code ?? '')) return error
  const advice = 'free some space, or make the folder writable, then try again'
  return new CadreError('unavailable', `${older}, but ${home} takes no writes: ${advice}`, { cause: error })
}
