// The manual of an agent, from its definition: settings, actions with their fields, and a phase with each. It fits into 80
// columns.

import type { TSchema } from 'typebox'
import { type AgentDefinition, isSecret } from '../../../agent/define.ts'
import { commandLine } from '../../../program/called-as.ts'
import { fieldsOf, type JsonSchema } from '../../../settings/settings.ts'
import { type Call, callsOf, examplePhase } from './example-phase.ts'

const WIDTH = 80
/** Names longer than this have their text on the next line. */
const NAME = 22

export function manualOf(reference: string, definition: AgentDefinition, file: string): string[] {
  const { type, version, description, settings } = definition
  const calls = callsOf(definition)
  return [
    `${reference}  ${version}  ${type}`,
    ...wrapped(description, 0),
    file,
    '',
    ...settingsOf(reference, settings),
    ...(definition.account ? accountOf(reference) : []),
    ...calls.flatMap(each => ['', ...manualOfCall(reference, each)]),
    ...(calls.some(({ handler }) => handler.data) ? ['', ...HOW_TO_READ] : []),
  ]
}

const HOW_TO_READ = [
  'DATA',
  ...wrapped('Later phases read `{{ phases.PHASE.data.FIELD }}`. Where the phase has several', 2),
  ...wrapped('entries, it is `phases.PHASE.data.entries.ENTRY.FIELD`.', 2),
  ...wrapped("A field that may be null or absent: `or(phases.PHASE.data.FIELD, '-')`.", 2),
]

function settingsOf(reference: string, settings: TSchema): string[] {
  const fields = fieldsOf(settings)
  if (fields.length === 0) return ['SETTINGS', '  none']
  const set = `set with: ${commandLine('settings', 'set', `agents.${reference}.KEY`, '-')}`
  return [
    `SETTINGS  ${set}`,
    '          - reads the value from stdin',
    ...fields.flatMap(field => line(field, entryNotes(field))),
  ]
}

function accountOf(reference: string): string[] {
  const uses = `Entries of http with \`account: ${reference}\` send requests in the name of this agent.`
  const leave = `Packages may if the setting agents.${reference}.lend lists them.`
  return ['', 'ACCOUNT', ...wrapped(uses, 2), ...wrapped(leave, 2)]
}

function manualOfCall(reference: string, call: Call): string[] {
  const { effect, entry, data, description, find } = call.handler
  const title = call.action ? `${call.action}  ${call.direction}` : call.direction.toUpperCase()
  const asks = find ? ', asks the vendor after a lost reply' : ''
  return [
    `${title}  (${typeof effect === 'function' ? 'effect by entry' : effect}${asks})`,
    ...(description ? wrapped(description, 2) : []),
    ...fieldsOf(entry).flatMap(field => line(field, entryNotes(field))),
    ...(data ? dataOf(data) : []),
    '  example:',
    ...examplePhase(reference, call).map(text => `    ${text}`),
  ]
}

interface Field {
  name: string
  required: boolean
  schema: TSchema
}

function entryNotes({ required, schema }: Field): string[] {
  const { default: standard } = schema as JsonSchema
  return [
    required ? 'required' : '',
    isSecret(schema) ? 'secret' : '',
    standard === undefined ? '' : `default ${JSON.stringify(standard)}`,
    choices(schema),
  ]
}

/** What a result has: its fields with their types, or for a value of any form what it is. */
function dataOf(data: TSchema): string[] {
  const { description } = data as JsonSchema & { description?: string }
  return [
    '  data:',
    ...(description ? wrapped(description, 4) : []),
    ...fieldsOf(data).flatMap(field => line(field, [field.required ? '' : 'optional', typesOf(field.schema)], 4)),
  ]
}

function typesOf(schema: TSchema): string {
  const { type, anyOf = [] } = schema as JsonSchema
  return type ?? [...new Set(anyOf.map(typesOf).filter(Boolean))].join(' or ')
}

/** `name  (required, secret) What it is.` */
function line({ name, schema }: Field, given: string[], indent = 2): string[] {
  const { description } = schema as JsonSchema & { description?: string }
  const notes = given.filter(Boolean)
  const text = [notes.length > 0 ? `(${notes.join(', ')})` : '', description].filter(Boolean).join(' ')
  const [first = '', ...more] = wrapped(text, NAME + 4)
  const [begin, width] = [' '.repeat(indent), NAME + 2 - indent]
  if (name.length > width) return [begin + name, ...(first ? [first] : []), ...more]
  return [`${begin}${name.padEnd(width)}  ${first.trimStart()}`.trimEnd(), ...more]
}

function choices(schema: TSchema): string {
  const { enum: values, anyOf = [] } = schema as JsonSchema & { enum?: unknown[] }
  const literals = anyOf.map(branch => (branch as { const?: unknown }).const)
  const all = values ?? (literals.every(value => value !== undefined) ? literals : [])
  return all.length > 0 ? `one of ${all.join(', ')}` : ''
}

/** The text in lines of at most 80 columns, each indented. A word that is longer stays whole. */
function wrapped(text: string, indent: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(' '.repeat(indent) + word)
  }
  return lines
}
