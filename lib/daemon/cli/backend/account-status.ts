// What `status` and `doctor` say of the accounts that `notify.on_fail` names: those that do not exist, and what was not
// delivered to them lately.

import { SQLiteError } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openForReading } from '../../../../db/open.ts'
import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { databaseFile } from '../../home/home.ts'
import { TellTable } from '../../tells/tell-table.ts'
import { clock } from '../terminal/table.ts'

const LATELY_MS = 7 * 86_400_000

/** One line for each account that cannot be used, whatever the environment of the daemon is. */
export async function problemsOfAccounts(home: string): Promise<string[]> {
  // What reads settings and agents is loaded only where somebody is to be told.
  if (!existsSync(join(home, 'settings.yml'))) return []
  const { openSettings } = await import('../../../settings/settings.ts')
  const settings = await openSettings(home, { log: createLog({ level: 'error' }) })
  const agents = settings.onFail().map(({ agent }) => agent)
  if (agents.length === 0) return []
  const { findAgents } = await import('../../../agent/catalogue.ts')
  const catalogue = await findAgents({ home, extra: process.env.CADRE_AGENTS }).load(agents)
  return settings.onFailProblems(catalogue, 'names').map(({ message }) => message)
}

/**
 * One line for each account to which a message that is about no run was not delivered, or may not have been. `subject`: the
 * id of a trigger, if only what is about it is asked for.
 */
export function lostTells(home: string, subject: string | null = null): string[] {
  if (!existsSync(databaseFile(home))) return []
  try {
    using db = openForReading(databaseFile(home))
    return new TellTable(db).lost(Date.now() - LATELY_MS, subject).map(({ account, count, at, error }) => {
      const what = count === 1 ? 'a message' : `${count} messages`
      return `notify.on_fail: ${account} did not get ${what}, or may not have got it, the last at ${clock(at)}: ${error}`
    })
  } catch (error) {
    // Another part of the report says that the database cannot be read, or is of an older version.
    if (error instanceof SQLiteError || (error instanceof CadreError && error.code === 'unavailable')) return []
    throw error
  }
}
