// What `status` and `doctor` say of the accounts that `notify.on_fail` names: those that do not exist, and what was not
// delivered to them lately, nor to listeners of teams.

import { type Database, SQLiteError } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openForReading } from '../../../../db/open.ts'
import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { Store } from '../../../run/engine.ts'
import type { Settings } from '../../../settings/settings.ts'
import { databaseFile } from '../../home/home.ts'
import { TellTable } from '../../tells/tell-table.ts'
import { clock } from '../terminal/table.ts'

const LATELY_MS = 7 * 86_400_000

/** One line for each account that cannot be used, whatever the environment of the daemon is. */
export async function problemsOfAccounts(home: string): Promise<string[]> {
  const settings = await settingsOf(home)
  const agents = settings?.onFail().map(({ agent }) => agent) ?? []
  if (!settings || agents.length === 0) return []
  const { findAgents } = await import('../../../agent/catalogue.ts')
  const catalogue = await findAgents({ home, extra: process.env.CADRE_AGENTS }).load(agents)
  return settings.onFailProblems(catalogue, 'names').map(({ message }) => message)
}

/** Whether the home names an account that is told of runs that fail. */
export const tellsOfFailures = async (home: string): Promise<boolean> =>
  ((await settingsOf(home))?.onFail().length ?? 0) > 0

/** What reads settings is loaded only where there are any. */
async function settingsOf(home: string): Promise<Settings | null> {
  if (!existsSync(join(home, 'settings.yml'))) return null
  const { openSettings } = await import('../../../settings/settings.ts')
  return openSettings(home, { log: createLog({ level: 'error' }) })
}

/**
 * One line for each account to which a message that is about no run was not delivered, or may not have been. `subject`: the
 * id of a trigger, if only what is about it is asked for.
 */
export function lostTells(home: string, subject: string | null = null): string[] {
  const lost = readHome(home, db => new TellTable(db).lost(Date.now() - LATELY_MS, subject))
  return lost.map(({ account, count, at, error }) => {
    const what = count === 1 ? 'a message' : `${count} messages`
    return `notify.on_fail: ${account} did not get ${what}, or may not have got it, the last at ${clock(at)}: ${error}`
  })
}

/** One line for each listener that did not deliver messages about runs of a team, or may not have. */
export function lostDeliveries(home: string): string[] {
  const lost = readHome(home, db => new Store(db).deliveries.lost(Date.now() - LATELY_MS))
  return lost.map(({ listener, team, count, run_id, error }) => {
    const what = count === 1 ? 'a message' : `${count} messages`
    return `${listener} did not deliver ${what} about ${team}, or may not have, the last about run ${run_id}: ${error}`
  })
}

function readHome<T>(home: string, read: (db: Database) => T[]): T[] {
  if (!existsSync(databaseFile(home))) return []
  try {
    using db = openForReading(databaseFile(home))
    return read(db)
  } catch (error) {
    // Another part of the report says that the database cannot be read, or is of an older version.
    if (error instanceof SQLiteError || (error instanceof CadreError && error.code === 'unavailable')) return []
    throw error
  }
}
