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
  return listeners.flatMap(({ name, agent }) => {
    const handler = listenerHandler(agents, agent)
    return handler ? writeOf(agents, [...path, name], { agent }, handler) : []
  })
}

/** What a phase writes. What its commands do is not known. */
export function phaseWrites(agents: Agents, phase: StandardPhase, path: readonly string[]): Write[] {
  return handledCalls(agents, phase).flatMap(({ handler, entry }) =>
    writeOf(agents, [...path, phase.name], phase, handler, entry),
  )
}

/**
 * Whether `retry` repeats none of the writes of a phase whose reply was lost: all of them may happen only once, and the
 * other system cannot be asked, so a person is.
 */
export function retriesNoWrite(agents: Agents, phase: StandardPhase): boolean {
  if (phase.retry.attempts === 1 || phase.agent === 'exec') return false
  const writes = handledCalls(agents, phase).flatMap(({ handler, entry }) => {
    const effect = effectOf(handler, entry)
    return effect === 'read' ? [] : [effect === 'once' && !handler.find]
  })
  return writes.length > 0 && writes.every(Boolean)
}

/** The entry that a call may write only once, as far as the file says it: its name, empty for a call as a whole. */
export function onceEntry(agents: Agents, call: AgentCall): string | undefined {
  return handledCalls(agents, call).find(({ handler, entry }) => effectOf(handler, entry) === 'once')?.name
}

/** A call of an agent as written, and what answers it. */
interface HandledCall {
  /** Empty for a call as a whole. */
  name: string
  entry: Json
  handler: Handler
}

/** What a phase asks of its agent, call by call, without what an agent or an action does not have. */
export function handledCalls(agents: Agents, call: AgentCall): HandledCall[] {
  const definition = agents.get(nameOf(call.agent))
  const handled = (kind: 'source' | 'target' | 'phase', name: string, entry: Json): HandledCall[] => {
    const handler = call.action === undefined ? definition?.[kind] : definition?.actions?.[call.action]
    return handler ? [{ name, entry, handler }] : []
  }
  const { sources, targets, fields } = call
  if (sources.length + targets.length === 0) return handled('phase', '', fields.source)
  return [
    ...sources.flatMap(({ name, entry }) => handled('source', name, entry.source)),
    ...targets.flatMap(({ name, entry }) => handled('target', name, entry.source)),
  ]
}

/** What answers an event of which a listener is told. */
export const listenerHandler = (agents: Agents, agent: string): Handler | undefined => agents.get(nameOf(agent))?.notify

/** `issues` for `issues@eu`. */
const nameOf = (agent: string): string => agent.split('@', 1)[0]!

function writeOf(
  agents: Agents,
  phase: string[],
  { agent, action = null }: { agent: string; action?: string | null },
  handler: Handler,
  entry?: Json,
): Write[] {
  if (agent === 'exec') return []
  const effect = effectOf(handler, entry)
  if (effect === 'read') return []
  const owner = (entry !== undefined && accountIn(agent, entry)) || agent
  const lender = agents.get(nameOf(owner))
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
