// Whether the hub gives this daemon jobs, as it last said: it gives none to a daemon that a plain member of the realm
// enrolled until an operator approves it.

import { SQLiteError } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { openForReading } from '../../db/open.ts'
import { Store } from '../run/engine.ts'
import { databaseFile } from './home.ts'
import { APPROVED, WAITS_FOR_APPROVAL } from './link/link.ts'

/** Why a home takes no jobs; null when nobody said that it does not. */
export function whyNoJobs(home: string): string | null {
  const file = databaseFile(home)
  if (!existsSync(file)) return null
  try {
    using db = openForReading(file)
    const { facts } = new Store(db)
    return facts.get(APPROVED) === 'no' ? `daemon ${facts.get('daemon_id')}: ${WAITS_FOR_APPROVAL}` : null
  } catch (error) {
    // Held by another process, or not to be read at all, which is for other commands to tell.
    if (error instanceof SQLiteError) return null
    throw error
  }
}
