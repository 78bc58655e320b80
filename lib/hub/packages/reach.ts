// What a package reaches with everything that it calls: what it writes, the commands that it runs, the hosts that its
// files name, and the credentials that it uses. People compare versions by it before they let one run.

import { isObject, type Json } from '../../json.ts'
import {
  type AgentLookup,
  accountsOf,
  agentRefs,
  type Bundle,
  credentialsOf,
  hasSubRuns,
  listenerWrites,
  literalOrigins,
  phaseWrites,
  type StandardPhase,
  teamsOf,
  type Write,
} from '../../team/team.ts'
import type { Reach } from '../../wire/records/packages.ts'

/** A longer command is cut: its file is shown beside it. */
const LONGEST_COMMAND = 500

export function reachOf(bundle: Bundle, agents: AgentLookup): Omit<Reach, 'unseen'> {
  const teams = teamsOf(bundle).map(([, team]) => team)
  const writes: Write[] = []
  const commands: string[] = []
  walk(bundle.root, [], [])
  const accounts = [...new Set(teams.flatMap(accountsOf))].sort()
  return {
    writes: writes.map(({ entry, ...write }) => ({ ...write, to: urlOf(entry) })),
    commands,
    hosts: [...new Set(teams.flatMap(team => [...literalOrigins(team)]))].sort(),
    ...(accounts.length > 0 && { accounts }),
    secrets: [...new Set(teams.flatMap(({ secrets }) => secrets))].sort(),
    agents: [...new Set(teams.flatMap(agentRefs))].sort().map(name => {
      const definition = agents.get(name)
      return { name, credentials: definition ? credentialsOf(name, definition) : [] }
    }),
  }

  function walk(key: string, path: readonly string[], above: readonly string[]): void {
    if (above.includes(key)) return
    const team = bundle.team(key)
    writes.push(...listenerWrites(agents, team, path))
    for (const phase of team.phases) {
      if (phase.type === 'standard') {
        writes.push(...phaseWrites(agents, phase, path))
        commands.push(...commandsOf(phase).map(run => `${[...path, phase.name].join(' › ')}: ${run}`))
      } else if (hasSubRuns(phase)) walk(phase.team, [...path, phase.name], [...above, key])
    }
  }
}

function urlOf(entry: Json | undefined): string | null {
  return isObject(entry) && typeof entry.url === 'string' ? entry.url : null
}

function commandsOf({ agent, fields: { source } }: StandardPhase): string[] {
  if (agent !== 'exec' || !isObject(source) || !Array.isArray(source.commands)) return []
  return source.commands.flatMap(each =>
    isObject(each) && typeof each.run === 'string' ? [each.run.slice(0, LONGEST_COMMAND)] : [],
  )
}
