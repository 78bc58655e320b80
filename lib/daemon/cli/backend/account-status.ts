// What `status` says of the accounts that `notify.on_fail` names: those that do not exist.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../../log/log.ts'

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
