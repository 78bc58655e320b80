// The fields that the schema of team.yml has at a place: in all phases (for `explain`), or in the one phase that stands there
// (for editors, whose text may be broken).

import type { Json } from '../../json.ts'
import { field, type Node, textOf } from '../yaml/yaml.ts'

/** The part of JSON Schema that the schema of team.yml uses. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  default?: Json
  examples?: Json[]
  enum?: Json[]
  const?: Json
  pattern?: string
  required?: string[]
  properties?: Record<string, Schema | false>
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  if?: Schema
  then?: Schema
  minimum?: number
}

/** A schema that a field has, and the phases in which it has it; null: in all. */
export interface Form {
  schema: Schema
  of: string | null
  required: boolean
}

/** Where something stands in a file: the names of fields, and positions in lists. */
export type Path = readonly (string | number)[]

/**
 * The fields of a mapping, of the mappings in a list, and of each alternative. `value` is the mapping that stands there; without
 * it, the fields of all phases are meant.
 */
export function fieldsIn(forms: readonly Form[], root: Schema, value?: Node): Map<string, Form[]> {
  const fields = new Map<string, Form[]>()
  const refused = new Set<string>()
  const add = (schema: Schema, of: string | null): void => {
    const { $ref, properties = {}, items, anyOf = [], oneOf = [], allOf = [], required = [] } = schema
    if ($ref) add(schemaAt(root, $ref), of)
    for (const [name, field] of Object.entries(properties)) {
      if (!field) refused.add(name)
      else fields.set(name, [...(fields.get(name) ?? []), { schema: field, of, required: required.includes(name) }])
    }
    if (items) add(items, of)
    // Beside properties these are rules over several fields.
    if (Object.keys(properties).length === 0) for (const each of [...anyOf, ...oneOf]) add(each, of)
    for (const each of allOf) {
      if (each.if && each.then && (!value || holds(each.if, value))) add(each.then, conditionOf(each.if))
    }
  }
  for (const { schema, of } of forms) add(schema, of)
  if (value) for (const name of refused) fields.delete(name)
  return fields
}

/** The forms of the value at `path`, as what stands around it decides; empty where the schema has none. */
export function formsAt(root: Schema, file: Node | undefined, path: Path): Form[] {
  let forms: Form[] = [{ schema: root, of: null, required: true }]
  let value = file
  for (const step of path) {
    if (typeof step === 'number') value = value?.kind === 'list' ? value.items[step] : undefined
    else {
      forms = fieldsIn(forms, root, value ?? NOTHING).get(step) ?? []
      value = field(value, step)
    }
  }
  return forms
}

/** A mapping in which nothing stands yet. */
export const NOTHING: Node = { kind: 'map', offset: 0, path: '', entries: new Map() }

/** Whether a mapping meets the condition of a case of the schema. */
function holds({ properties = {}, required = [] }: Schema, value: Node): boolean {
  if (!required.every(name => field(value, name))) return false
  return Object.entries(properties).every(([name, schema]) => {
    const given = field(value, name)
    return !schema || !given || fits(schema, textOf(given))
  })
}

function fits({ anyOf, const: constant, pattern }: Schema, text: string | undefined): boolean {
  if (anyOf) return anyOf.some(each => fits(each, text))
  if (constant !== undefined) return text === constant
  return pattern === undefined || (text !== undefined && new RegExp(pattern).test(text))
}

export function schemaAt(root: Schema, pointer: string): Schema {
  const parts = pointer.split('/').slice(1)
  return parts.reduce<unknown>((schema, part) => (schema as Record<string, unknown>)[part], root) as Schema
}

/** `type: gate`, or `agent: issues, action: search`. Null for what all listeners have. */
function conditionOf({ properties = {} }: Schema): string | null {
  const named = Object.entries(properties).flatMap(([name, schema]) => {
    const value = schema && (schema.const ?? schema.anyOf?.[0]?.const)
    return value ? [`${name}: ${value}`] : [name]
  })
  return named.length > 0 ? named.join(', ') : null
}
