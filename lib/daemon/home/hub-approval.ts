// Whether the hub gives this daemon jobs, as it last reported. A daemon that a plain member of the realm enrolled gets
// none until an operator approves it.

import { SQLiteError } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { openForReading } from '../../../db/open.ts'
import { Store } from '../../run/engine.ts'
import { databaseFile } from './home.ts'

/** The name of a fact in the run database: whether the hub has approved this daemon, `no` or `yes`. */
export const APPROVED = 'approved'

/** The same: whether an operator has paused it. */
export const PAUSED = 'paused'

export const WAITS_FOR_APPROVAL =
  'this daemon takes no jobs until an operator of its realm approves it (daemons/approve at the hub)'

/** The reason why the daemon of this home gets no jobs, or null when the hub has not said so. */
export function whyNoJobs(home: string): string | null {
  const file = databaseFile(home)
  if (!existsSync(file)) return null
  try {
    using db = openForReading(file)
    const { facts } = new Store(db)
    return facts.get(APPROVED) === 'no' ? `daemon ${facts.get('daemon_id')}: ${WAITS_FOR_APPROVAL}` : null
  } catch (error) {
    // The database is held by another process or cannot be read. Other commands report that.
    if (error instanceof SQLiteError) return null
    throw error
  }
}
