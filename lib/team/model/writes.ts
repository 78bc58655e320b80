// What the phases and listeners of a team write to other systems: by which agent, how often, and with whose credential.

import type { Effect } from '../../agent/core/effect.ts'
import { type AgentDefinition, type Handler, isSecret } from '../../agent/define.ts'
import type { Json } from '../../json.ts'
import { accountIn } from './accounts.ts'
import type { AgentCall, StandardPhase, Team } from './compiled-team.ts'

/** The agents that teams name. */
export interface Agents {
  get(name: string): AgentDefinition | undefined
}

export interface Write {
  /** Names of the phases from the top team down. */
  phase: string[]
  agent: string
  action: string | null
  effect: Exclude<Effect, 'read'> | 'by entry'
  /** As written in the file; absent for a listener. */
  entry?: Json
  /** Settings that authorize it. */
  credentials: string[]
}

/** What the listeners of a team write. `path` are the phases above it. */
export function listenerWrites(agents: Agents, { listeners }: Team, path: readonly string[]): Write[] {
  return listeners.flatMap(({ name, agent }) => writeOf(agents, [...path, name], agent, null, 'notify'))
}

/** What a phase writes. What its commands do is not known. */
export function phaseWrites(agents: Agents, phase: StandardPhase, path: readonly string[]): Write[] {
  const { agent, action = null } = phase
  return callsOf(phase).flatMap(({ kind, entry }) => writeOf(agents, [...path, phase.name], agent, action, kind, entry))
}

/**
 * Whether `retry` repeats none of the writes of a phase whose reply was lost: all of them may happen only once, and the
 * other system cannot be asked, so a person is.
 */
export function retriesNoWrite(agents: Agents, phase: StandardPhase): boolean {
  const { agent, action = null, retry } = phase
  if (retry.attempts === 1 || agent === 'exec') return false
  const writes = callsOf(phase).flatMap(({ kind, entry }) => {
    const handler = handlerOf(agents, agent, action, kind)
    const effect = handler && effectOf(handler, entry)
    return !effect || effect === 'read' ? [] : [effect === 'once' && !handler.find]
  })
  return writes.length > 0 && writes.every(Boolean)
}

/** The entry that a call may write only once, as far as the file says it: its name, empty for a call as a whole. */
export function onceEntry(agents: Agents, call: AgentCall): string | undefined {
  const { action = null } = call
  const name = call.agent.split('@', 1)[0]!
  return callsOf(call).find(({ kind, entry }) => {
    const handler = handlerOf(agents, name, action, kind)
    return handler && effectOf(handler, entry) === 'once'
  })?.name
}

type Kind = 'source' | 'target' | 'phase' | 'notify'

/** What a phase asks of its agent, call by call, as written. */
export function callsOf({ sources, targets, fields }: AgentCall): { kind: Kind; name: string; entry: Json }[] {
  if (sources.length + targets.length === 0) return [{ kind: 'phase', name: '', entry: fields.source }]
  return [
    ...sources.map(({ name, entry }) => ({ kind: 'source' as const, name, entry: entry.source })),
    ...targets.map(({ name, entry }) => ({ kind: 'target' as const, name, entry: entry.source })),
  ]
}

export function handlerOf(agents: Agents, agent: string, action: string | null, kind: Kind): Handler | undefined {
  const definition = agents.get(agent)
  return action === null ? definition?.[kind] : definition?.actions?.[action]
}

function writeOf(
  agents: Agents,
  phase: string[],
  agent: string,
  action: string | null,
  kind: Kind,
  entry?: Json,
): Write[] {
  const definition = agents.get(agent)
  const handler = handlerOf(agents, agent, action, kind)
  if (!definition || !handler || agent === 'exec') return []
  const effect = effectOf(handler, entry)
  if (effect === 'read') return []
  const owner = (entry !== undefined && accountIn(agent, entry)) || agent
  const lender = agents.get(owner)
  const credentials = lender ? credentialsOf(owner, lender) : []
  return [{ phase, agent, action, effect, ...(entry !== undefined && { entry }), credentials }]
}

/**
 * A handler whose effect depends on the entry may fail here, because the entry still has a template in place of a
 * value.
 */
function effectOf({ effect }: Handler, entry: Json | undefined): Effect | 'by entry' {
  if (typeof effect !== 'function') return effect
  try {
    return effect(entry)
  } catch {
    return 'by entry'
  }
}

/** The secret settings of an agent. */
export function credentialsOf(agent: string, { settings }: AgentDefinition): string[] {
  return Object.entries(settings.properties ?? {})
    .filter(([, schema]) => isSecret(schema))
    .map(([name]) => `agents.${agent}.${name}`)
}
