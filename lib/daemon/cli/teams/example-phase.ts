// A phase of team.yml that calls an agent, to be pasted.

import type { TSchema } from 'typebox'
import { stringify } from 'yaml'
import type { Action, AgentDefinition, Handler } from '../../../agent/define.ts'
import type { Json, JsonObject } from '../../../json.ts'
import type { JsonSchema } from '../../../settings/settings.ts'

/** One thing that an agent does. */
export interface Call {
  /** Empty where the agent has no actions. */
  action: string
  direction: Action['direction'] | 'notify'
  handler: Handler
}

/** What an agent does, in the order of its manual. */
export function callsOf({ actions = {}, source, target, phase, notify }: AgentDefinition): Call[] {
  const named = Object.entries(actions).map(([action, handler]) => ({ action, direction: handler.direction, handler }))
  const handlers = Object.entries({ source, target, phase, notify }) as [Call['direction'], Handler | undefined][]
  return [
    ...named,
    ...handlers.flatMap(([direction, handler]) => (handler ? [{ action: '', direction, handler }] : [])),
  ]
}

/** The lines of a phase with the example of the agent, or else with what an entry must have. */
export function examplePhase(reference: string, { action, direction, handler }: Call): string[] {
  const entry = (handler.example ?? sample(handler.entry)) as JsonObject
  const [agent] = reference.split('@')
  const phase = { name: action || agent!, agent: reference, ...(action && { action }), ...placed(entry, direction) }
  return stringify([phase], { lineWidth: 0 }).trimEnd().split('\n')
}

function placed(entry: JsonObject, direction: Call['direction']): JsonObject {
  if (direction === 'source') return { sources: [entry] }
  if (direction === 'target') return { target_entries: [entry] }
  return direction === 'notify' ? { notify: { on_fail: entry } } : entry
}

function sample(schema: TSchema): Json {
  const {
    type,
    anyOf,
    items,
    properties = {},
    ...rest
  } = schema as JsonSchema & {
    const?: Json
    enum?: Json[]
    examples?: Json[]
    required?: string[]
  }
  const value = rest.examples?.[0] ?? rest.default ?? rest.const ?? rest.enum?.[0]
  if (value !== undefined) return value
  if (type === 'object') {
    const required = Object.entries(properties).filter(([name]) => rest.required?.includes(name))
    return Object.fromEntries(required.map(([name, each]) => [name, sample(each)]))
  }
  if (anyOf) return sample(anyOf[0]!)
  if (type === 'array') return items ? [sample(items)] : []
  if (type === 'integer' || type === 'number') return 1
  return type === 'boolean' ? true : '…'
}
