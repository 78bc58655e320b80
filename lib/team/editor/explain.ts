// What a field of team.yml is, in words: read from the schema that `schema` prints and `validate` checks by.

import type { TSchema } from 'typebox'
import { stringify } from 'yaml'
import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { didYouMean, listed } from '../../text/spelling.ts'
import { type AgentLookup, expected, OTHER_FIELDS, teamSchemaOf } from '../compile/compile.ts'
import type { Node } from '../yaml/yaml.ts'
import { type Form, fieldsIn, formsAt, type Path, type Schema, schemaAt } from './schema-fields.ts'

/** A field, in one of the forms that it has. */
export interface Explained {
  /** The phases in which it has this form, such as `type: gate`; empty: in all. */
  of: string[]
  description: string
  /** What is expected. */
  value: string
  required: boolean
  default?: Json
  /** YAML. Absent for a form of an agent, whose manual has one. */
  example?: string
  /** The fields in it. */
  fields: { name: string; of: string[]; required: boolean; value: string; description: string }[]
}

/** Deeper than any field stands. */
const MAX_DEPTH = 8

/**
 * Explains the field with this path, such as `phases.retry`; an empty path is the whole file. Throws `invalid_request` that
 * names what is near.
 */
export function explainField(agents: AgentLookup, path: string): Explained[] {
  const root = teamSchemaOf(agents) as Schema
  const words = path
    .replaceAll(/\[[^\]]*\]/g, '')
    .split('.')
    .filter(Boolean)
  let forms: Form[] = [{ schema: root, of: null, required: false }]
  for (const [at, word] of words.entries()) {
    const fields = fieldsIn(forms, root)
    const found = fields.get(word)
    if (!found) throw unknown(words.slice(0, at), word, fields, root)
    forms = found
  }
  return grouped(forms).map(({ of, form }) => explained(form, of, words, root))
}

/** Explains what stands at a place of a file, as what stands around it decides; null where the schema has nothing. */
export function explainPlace(root: Schema, file: Node, path: Path): Explained | null {
  const forms = formsAt(root, file, path)
  if (forms.length === 0) return null
  // What holds for one agent or action narrows what holds for all.
  const schema: Schema = Object.assign({}, ...forms.map(form => form.schema))
  const words = path.filter(step => typeof step === 'string')
  return explained({ schema, of: null, required: forms.some(({ required }) => required) }, [], words, root)
}

function explained({ schema, required }: Form, of: string[], words: readonly string[], root: Schema): Explained {
  const fields = fieldsIn([{ schema, of: null, required }], root)
  // An agent's manual has examples of what the agent takes.
  const isAgents = of.some(each => each.startsWith('agent:'))
  const example = words.length === 0 || isAgents ? null : exampleOf(words, schema, of, root)
  return {
    of,
    description: schema.description ?? '',
    value: valueWords(schema),
    required,
    ...(schema.default !== undefined && { default: schema.default }),
    ...(example !== null && { example: stringify(example, { lineWidth: 0 }) }),
    fields: [...fields].map(([name, forms]) => {
      const [{ form, of }, ...more] = grouped(forms) as [Group, ...Group[]]
      const description = more.length === 0 ? (form.schema.description ?? '') : ''
      const all = [of, ...more.map(each => each.of)].flat()
      return { name, of: all, required: form.required, value: valueWords(form.schema), description }
    }),
  }
}

function valueWords(schema: Schema): string {
  const isBound = ['type', 'enum', 'const', 'anyOf', 'oneOf', 'x-expected'].some(word => word in schema)
  return isBound ? expected(schema as TSchema) : 'any value'
}

function unknown(
  above: readonly string[],
  word: string,
  fields: ReadonlyMap<string, Form[]>,
  root: Schema,
): CadreError {
  const where = above.length === 0 ? 'team.yml' : `\`${above.join('.')}\``
  const near = didYouMean(word, fields.keys(), OTHER_FIELDS)
  const elsewhere = pathsTo(word, root)
  const hint = near
    ? near
    : elsewhere.length > 0
      ? `: there is ${listed(elsewhere.slice(0, 5).map(each => `\`${each}\``))}`
      : fields.size > 0
        ? `: there are ${listed([...fields.keys()])}`
        : ': it has no fields'
  return new CadreError('invalid_request', `${where} has no field \`${word}\`${hint}`)
}

/** The paths of fields with this name, wherever they are; those of agents are left to their manuals. */
function pathsTo(word: string, root: Schema): string[] {
  const found: string[] = []
  const walk = (forms: Form[], path: readonly string[]): void => {
    if (path.length > MAX_DEPTH) return
    for (const [name, below] of fieldsIn(forms, root)) {
      if (name === word) found.push([...path, name].join('.'))
      // Phases in a map have the fields of all phases.
      if (name === 'phases' && path.includes('phases')) continue
      const own = below.filter(({ of }) => !of?.startsWith('agent:'))
      if (own.length > 0) walk(own, [...path, name])
    }
  }
  walk([{ schema: root, of: null, required: false }], [])
  return found
}

interface Group {
  of: string[]
  form: Form
}

/** Equal forms together. Where all phases have one, the others only narrow it. */
function grouped(forms: readonly Form[]): Group[] {
  const general = forms.find(({ of }) => of === null)
  if (general) return [{ of: [], form: general }]
  const equal = Map.groupBy(forms, ({ schema, required }) => JSON.stringify([schema, required]))
  return [...equal.values()].map(each => ({ of: [...new Set(each.map(({ of }) => of!))], form: each[0]! }))
}

/** A piece of team.yml with the field in it; null when no value of it is known. */
function exampleOf(words: readonly string[], schema: Schema, of: readonly string[], root: Schema): Json {
  const value = sampleOf(schema, root)
  if (value === null) return null
  return words.reduceRight<Json>((inside, word, depth) => {
    const object: JsonObject = { ...(depth === 1 && words[0] === 'phases' ? headOf(of, word) : {}), [word]: inside }
    const above = depth > 0 ? fieldAt(words.slice(0, depth), root) : null
    return above?.type === 'array' ? [object] : object
  }, value)
}

function fieldAt(words: readonly string[], root: Schema): Schema {
  let forms: Form[] = [{ schema: root, of: null, required: false }]
  for (const word of words) forms = fieldsIn(forms, root).get(word)!
  return forms[0]!.schema
}

/** How a phase begins that has the field. */
function headOf(of: readonly string[], field: string): JsonObject {
  const type = /^type: (\w+)$/.exec(of[0] ?? '')?.[1]
  return { ...(field !== 'name' && { name: 'step' }), ...(type && { type }) }
}

/** Null when no value is known. */
function sampleOf(schema: Schema, root: Schema): Json {
  const { $ref, examples, anyOf, oneOf, items, properties = {}, required = [], minimum = 1 } = schema
  if ($ref) return sampleOf(schemaAt(root, $ref), root)
  const given = examples?.[0] ?? schema.const ?? schema.enum?.find(value => value !== schema.default) ?? schema.default
  if (given !== undefined) return given
  const [first] = anyOf ?? oneOf ?? []
  if (first && schema.type !== 'object') return sampleOf(first, root)
  if (schema.type === 'array') {
    const item = items ? sampleOf(items, root) : null
    return item === null ? null : [item]
  }
  if (schema.type === 'integer' || schema.type === 'number') return Math.max(1, minimum)
  if (schema.type === 'boolean') return true
  if (schema.type !== 'object') return null
  const shown = Object.entries(properties).filter(([name]) => required.length === 0 || required.includes(name))
  const inside = shown.flatMap(([name, field]) => {
    const value = field ? sampleOf(field, root) : null
    return value === null ? [] : [[name, value] as const]
  })
  return inside.length === 0 ? null : Object.fromEntries(inside)
}
