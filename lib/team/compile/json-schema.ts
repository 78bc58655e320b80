// The JSON Schema of team.yml that `schema` prints, for editors. It includes the agents of the catalogue, so that
// `agent`, `action`, entries and an agent's own fields are completed. Names, order and expressions are left to the
// validator.

import type { TSchema } from 'typebox'
import type { AgentDefinition, Handler } from '../../agent/define.ts'
import type { AgentLookup } from './compilation.ts'
import { ACTION_WORDS, AGENT_WORDS, NOTIFY_WORDS, ownFields, PHASE_FIELDS } from './phase-schema.ts'
import { EVENT_WORDS, TeamSchema } from './team-schema.ts'

type Schema = Record<string, unknown>

/** JSON Schema, draft 2020-12. */
export function teamJsonSchema(agents: AgentLookup): Schema {
  return print(teamSchemaOf(agents)) as Schema
}

/** The same with the keywords that only our own checks use. */
export function teamSchemaOf(agents: AgentLookup): Schema {
  const { properties, ...team } = TeamSchema
  const cases = agents.names().flatMap(name => casesOf(name, agents.get(name)!))
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'team.yml',
    ...team,
    properties: { ...properties, phases: ofPhases(properties.phases) },
    $defs: { phase: phaseSchema(agents, cases) },
  }
}

const ofPhases = (phases: TSchema): Schema => ({ ...phases, items: { $ref: '#/$defs/phase' } })

/** What a map does with each item: of these it has one. What a phase may have, the phase of an agent may have. */
const MAP_FORMS = [
  ...['phases', 'team'].map(form => ({ required: [form], properties: { retry: false, repeat: false } })),
  { required: ['agent'] },
]

function phaseSchema(agents: AgentLookup, cases: Schema[]): Schema {
  const { standard, listener, map, ...others } = PHASE_FIELDS
  const mapFields = { ...map, phases: ofPhases(map.phases) }
  const refused = (fields: object, names: readonly string[]) =>
    Object.fromEntries(names.filter(name => !(name in fields)).map(name => [name, false]))
  const names = agents.names()
  const account = { pattern: `^(${names.join('|')})@[A-Za-z0-9_-]+$`, type: 'string' }
  const agent = {
    anyOf: [{ enum: names }, account],
    examples: ['exec'],
    'x-expected': `one of ${names.join(', ')}, or one of them with an account: NAME@ACCOUNT`,
    description: AGENT_WORDS,
  }
  return {
    type: 'object',
    required: ['name'],
    properties: { ...standard, agent },
    examples: [{ name: 'count', agent: 'exec', commands: [{ name: 'lines', run: 'wc -l < tickets.json' }] }],
    allOf: [
      ...Object.entries(others).map(([type, fields]) => ({
        if: { properties: { type: { const: type } }, required: ['type'] },
        // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own word.
        then: {
          properties: { ...fields, ...never(type), ...refused(fields, ['agent', 'action']) },
          required: requiredOf(fields),
        },
      })),
      {
        if: { properties: { type: { const: 'map' } }, required: ['type'] },
        // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own word.
        then: { properties: mapFields, required: requiredOf(map), oneOf: MAP_FORMS },
      },
      {
        if: { required: ['notify'] },
        // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own word.
        then: {
          properties: { notify: listener.notify, ...refused({ ...listener, action: true }, Object.keys(standard)) },
          required: ['agent'],
        },
      },
      ...cases,
    ],
    unevaluatedProperties: false,
  }
}

/** What no phase of this type may have, although the schema of every phase has it, so that the error says why. */
const never = (type: string) => (type === 'team' ? { retry: false } : { retry: false, repeat: false })

function requiredOf(fields: Record<string, TSchema>): string[] {
  return Object.entries(fields).flatMap(([key, schema]) => ('~optional' in schema ? [] : [key]))
}

/** The fields of a phase that names the agent: one case for the agent, and one for each action and for `notify`. */
function casesOf(name: string, definition: AgentDefinition): Schema[] {
  const { actions = {}, source, target, phase, notify } = definition
  const agent = { anyOf: [{ const: name }, { type: 'string', pattern: `^${name}@` }] }
  const actionNames = Object.keys(actions)
  const direct = fieldsOf({ source, target, phase })
  const isNamed = actionNames.length > 0
  if (!isNamed && !notify?.entry.properties.action) direct.action = false
  const named = { action: { enum: actionNames, description: ACTION_WORDS } }
  const cases = [when({ agent }, isNamed ? named : direct)]
  if (isNamed && Object.keys(direct).length > 0) cases.push(when({ agent }, direct, 'action'))
  for (const [action, handler] of Object.entries(actions)) {
    const own = fieldsOf({ [handler.direction]: handler })
    cases.push(when({ agent, action: { const: action } }, { action: described(handler), ...own }))
  }
  if (notify) {
    const options = { type: 'object', properties: { when: EVENT_CONDITION, ...ownFields(notify.entry) } }
    const events = Object.entries(EVENT_WORDS).map(([event, description]) => [event, { ...options, description }])
    const byEvent = { type: 'object', properties: Object.fromEntries(events) }
    const own = {
      ...ownFields(notify.entry),
      notify: { anyOf: [{ type: 'array' }, byEvent], description: NOTIFY_WORDS },
    }
    cases.push(when({ agent, notify: {} }, own))
  }
  return cases
}

const EVENT_CONDITION = { type: 'string', description: 'CEL that gives a bool; when it is false, nothing is sent.' }

/** `absent` is a field without which the case holds. */
function when(test: Schema, properties: Schema, absent?: string): Schema {
  const not = absent === undefined ? {} : { not: { required: [absent] } }
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own word.
  return { if: { properties: test, required: Object.keys(test), ...not }, then: { properties } }
}

function fieldsOf(handlers: Partial<Record<'source' | 'target' | 'phase', Handler | undefined>>): Schema {
  const { source, target, phase } = handlers
  return {
    ...(source && { sources: entries(source) }),
    ...(target && { target_entries: entries(target) }),
    ...(phase && ownFields(phase.entry)),
  }
}

/** What a handler does and returns, for the hover of editors. */
function described({ description, data }: Handler): Schema {
  const fields = data ? namesIn(data) : []
  const returned = fields.length > 0 ? `\`data\` has ${fields.join(', ')}.` : ''
  const words = [description, returned].filter(Boolean).join(' ')
  return words ? { description: words } : {}
}

function namesIn(data: TSchema): string[] {
  const { properties = {}, anyOf = [] } = data as { properties?: object; anyOf?: TSchema[] }
  return [...new Set([...Object.keys(properties), ...anyOf.flatMap(namesIn)])]
}

/** The list of entries of a handler. `ref` may be a number, and a template may replace any value that is not text. */
function entries(handler: Handler): Schema {
  const { entry } = handler
  const fields = Object.entries(entry.properties).map(([key, schema]) => [
    key,
    key === 'ref' ? refOf(schema as Schema) : orTemplate(schema as Schema),
  ])
  const required = [...new Set(['name', ...(entry.required ?? [])])]
  const { anyOf, not } = entry as { anyOf?: unknown; not?: unknown }
  const items = {
    type: 'object',
    properties: Object.fromEntries(fields),
    required,
    additionalProperties: false,
    ...(anyOf !== undefined && { anyOf }),
    ...(not !== undefined && { not }),
  }
  return { type: 'array', minItems: 1, items, ...described(handler) }
}

function refOf({ description }: Schema): Schema {
  return { type: ['string', 'number'], ...(description !== undefined && { description }) }
}

/** The description is that of the whole, so that editors show it for a template, too. */
function orTemplate(schema: Schema): Schema {
  if (schema.type === 'string' && !schema.pattern) return schema
  const { description, ...rest } = schema
  return {
    anyOf: [rest, { type: 'string', pattern: '\\{\\{' }],
    ...(description !== undefined && { description }),
  }
}

/** Removes the keywords that only our own checks use, and allows a template wherever templates are read. */
function print(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(print)
  if (typeof schema !== 'object' || schema === null) return schema
  const { 'x-template': templated, 'x-expected': _, 'x-literal': __, ...more } = schema as Schema
  const { 'x-json-schema': ___, 'x-item-expression': ____, ...rest } = more
  const printed = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, print(value)]))
  return templated === true && printed.type !== 'object' && Object.keys(printed).length > 0
    ? orTemplate(printed)
    : printed
}
