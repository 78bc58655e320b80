// The agents in whose name the entries of http send requests: `account: crm`. An account stands in the file itself and is
// never the value of a template, so that people see before a run whose credential it uses.

import { isObject, type Json } from '../../json.ts'
import type { AgentCall, Team } from './compiled-team.ts'

/** The agent whose entries may have `account`. */
const BORROWER = 'http'
/** An agent, perhaps with which account of it: `crm` or `crm@eu`. */
const REFERENCE = /^[a-z][a-z0-9_-]*(@[A-Za-z0-9_-]+)?$/

/** The account of an entry as written, which the agent `agent` gets; null when it has none. */
export function accountIn(agent: string, entry: Json): string | null {
  const written = isObject(entry) && mayHaveAccount(agent) ? entry.account : undefined
  return typeof written === 'string' && REFERENCE.test(written) ? written : null
}

export const mayHaveAccount = (agent: string): boolean => agent.split('@', 1)[0] === BORROWER

/** The accounts of a team's entries, each once, in file order. */
export function accountsOf({ phases }: Pick<Team, 'phases'>): string[] {
  const calls = phases.filter(phase => phase.type === 'standard')
  const inCall = ({ agent, sources, targets }: AgentCall) =>
    [...sources, ...targets].flatMap(({ entry }) => accountIn(agent, entry.source) ?? [])
  return [...new Set(calls.flatMap(inCall))]
}
