// One hub at a time serves a SQLite database, because hubs inform each other of changes through PostgreSQL only. The
// kernel ends the lock with the process, however the process ends.

import { Database } from 'bun:sqlite'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { CadreError } from '../../lib/error.ts'
import { unopened } from './open-store.ts'
import { isPostgres } from './store.ts'

/**
 * Locks the database at `location` for this process. Throws `conflict` while another hub serves it, and `unavailable`
 * when its folder cannot be used.
 */
export function serveAlone(location: string): { release(): void } {
  if (isPostgres(location)) return { release() {} }
  const lock = openLock(location)
  try {
    lock.run('BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new CadreError(
      'conflict',
      `another hub serves ${location}: stop it first; several hubs at once need PostgreSQL (--database postgres://…)`,
      { cause },
    )
  }
  return { release: () => lock.close() }
}

function openLock(location: string): Database {
  const file = `${location}.lock`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'a', 0o600))
    return new Database(file)
  } catch (cause) {
    throw unopened(location, cause)
  }
}
