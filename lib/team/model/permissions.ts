// Which permissions the phases and listeners of a team need of the agents that they call, as the agents declare them.

import type { Handler } from '../../agent/define.ts'
import { isTexts, type Json, type JsonObject } from '../../json.ts'
import type { Team } from './compiled-team.ts'
import { type Agents, handledCalls, listenerHandler } from './writes.ts'

/** What a phase or a listener needs of an agent. */
export interface Need {
  /** As written: `issues` or `issues@eu`. */
  agent: string
  team: string
  phase: string
  /** Null where the agent does not say: any permission may be needed then. */
  permissions: readonly string[] | null
}

/** What a team needs itself, without the teams below it. Agents and actions that do not exist need nothing. */
export function permissionNeeds(agents: Agents, team: Team): Need[] {
  const phases = team.phases.flatMap(phase => {
    if (phase.type !== 'standard') return []
    const { name, agent } = phase
    return handledCalls(agents, phase).map(({ handler, entry }) => ({ name, agent, handler, entry }))
  })
  const listeners = team.listeners.flatMap(({ name, agent, fields, on }) =>
    Object.values(on).map(({ options }) => {
      const entry = { ...(fields.source as JsonObject), ...(options.source as JsonObject) }
      return { name, agent, handler: listenerHandler(agents, agent), entry }
    }),
  )
  return [...phases, ...listeners].flatMap(({ name, agent, handler, entry }) =>
    handler ? { agent, team: team.name, phase: name, permissions: permissionsOf(handler, entry) } : [],
  )
}

/** A function of an agent may fail here, because the entry still has a template in place of a value. */
function permissionsOf({ permissions }: Handler, entry: Json): readonly string[] | null {
  if (typeof permissions !== 'function') return permissions ?? null
  try {
    const found: unknown = permissions(entry)
    return isTexts(found) ? found : null
  } catch {
    return null
  }
}
