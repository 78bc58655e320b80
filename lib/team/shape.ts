// Checks a YAML value against a JSON Schema (TypeBox), for people: every mistake at once, each at its place, saying what
// was expected. A value that is a template passes: its value is checked when it is known.

import type { TSchema } from 'typebox'
import { DURATION_PATTERN } from '../duration.ts'
import type { Json } from '../json.ts'
import { kindOf, type Mapping, type Node, type Place, type Scalar } from './node.ts'
import { didYouMean, listed } from './spelling.ts'
import { COMMAND_TEXT, hasTemplate } from './template.ts'

/** The parts of JSON Schema that are read. The `x-` words are ours. */
interface Shape {
  type?: string
  const?: Json
  enum?: Json[]
  anyOf?: TSchema[]
  oneOf?: TSchema[]
  allOf?: TSchema[]
  not?: TSchema
  properties?: Record<string, TSchema>
  patternProperties?: Record<string, TSchema>
  additionalProperties?: boolean | TSchema
  required?: string[]
  items?: TSchema
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  /** What to say is expected, where the pattern would not tell. */
  'x-expected'?: string
  /** Templates are read in it and below; `text`: `{{` is ordinary text. */
  'x-template'?: boolean | 'text'
}

export interface Finding {
  place: Place
  message: string
}

/** Whether `{{ }}` is read at a place. */
type Templates = boolean | 'text'

export function checkShape(node: Node, schema: TSchema, templates: Templates = false): Finding[] {
  const shape = schema as Shape
  const read = shape['x-template'] ?? templates
  if (node.kind === 'scalar' && typeof node.value === 'string' && read !== 'text' && hasTemplate(node.value)) {
    // Told where it is compiled, at each template.
    if (COMMAND_TEXT.test(node.path)) return []
    if (!read) return [{ place: node, message: 'templates are not read here' }]
    if (isAlone(node.value) || accepts(shape, 'string')) return []
    return [{ place: node, message: `expected ${expected(shape)}, not text with a template in it` }]
  }
  const branches = unionOf(shape)
  if (branches) return checkUnion(node, shape, branches, read)
  if (shape.allOf) return shape.allOf.flatMap(each => checkShape(node, each, read))
  if (shape.const !== undefined || shape.enum) return checkChoice(node, shape)
  switch (shape.type) {
    case 'object':
      return node.kind === 'map'
        ? [...checkObject(node, shape, read), ...checkTogether(node, schema)]
        : [wrong(node, shape)]
    case 'array':
      return checkList(node, shape, read)
    case undefined:
      return []
    default:
      return node.kind === 'scalar' ? checkScalar(node, shape) : [wrong(node, shape)]
  }
}

function isAlone(text: string): boolean {
  return text.startsWith('{{') && text.endsWith('}}')
}

function wrong(node: Node, shape: Shape): Finding {
  return { place: node, message: `expected ${expected(shape)}, not ${kindOf(node)}` }
}

/** What a value may be of. The `anyOf` of an object with properties is about its fields: `checkTogether`. */
function unionOf({ anyOf, oneOf, properties }: Shape): TSchema[] | undefined {
  return properties ? undefined : (anyOf ?? oneOf)
}

/** Of several branches, the mistakes of the one that was meant: the only one of the value's kind. */
function checkUnion(node: Node, shape: Shape, branches: TSchema[], templates: Templates): Finding[] {
  const results = branches.map(branch => ({ branch: branch as Shape, found: checkShape(node, branch, templates) }))
  if (results.some(({ found }) => found.length === 0)) return []
  const kind = node.kind === 'map' ? 'object' : node.kind === 'list' ? 'array' : null
  const meant = results.filter(({ branch }) => branch.type === kind)
  return kind && meant.length === 1 ? meant[0]!.found : [wrong(node, shape)]
}

function checkChoice(node: Node, shape: Shape): Finding[] {
  const choices = shape.enum ?? [shape.const!]
  if (node.kind === 'scalar' && choices.includes(node.value)) return []
  const near = node.kind === 'scalar' ? didYouMean(String(node.value), choices.map(String)) : ''
  return [{ place: node, message: `expected ${expected(shape)}, not ${kindOf(node)}${near}` }]
}

function checkObject(node: Mapping, shape: Shape, templates: Templates): Finding[] {
  const found: Finding[] = []
  const properties = shape.properties ?? {}
  for (const [key, { key: place, node: value }] of node.entries) {
    const schema = Object.hasOwn(properties, key) ? properties[key]! : schemaOfOther(shape, key)
    if (schema === null) {
      const near = didYouMean(key, Object.keys(properties))
      const known = Object.keys(properties).length > 0 && !near ? `: there are ${listed(Object.keys(properties))}` : ''
      found.push({ place, message: `unknown field \`${key}\`${near}${known}` })
    } else if (schema !== true && !(key === 'ref' && isNumber(value) && accepts(schema as Shape, 'string'))) {
      found.push(...checkShape(value, schema, templates))
    }
  }
  for (const key of shape.required ?? []) {
    if (node.entries.has(key)) continue
    found.push({ place: { offset: node.offset, path: `${node.path}/${key}` }, message: `\`${key}\` is missing` })
  }
  return found
}

/** What an object's schema says of several fields at once: `anyOf` which are needed, `not` which exclude each other. */
export function checkTogether(node: Mapping, schema: TSchema): Finding[] {
  const { anyOf = [], not } = schema as Shape
  const fits = (branch: TSchema) => checkObject(node, { additionalProperties: true, ...branch }, true).length === 0
  const listed = (branches: TSchema[], word: string) => {
    const names = [...new Set(branches.flatMap(branch => (branch as Shape).required ?? []))]
    const place = { offset: node.offset, path: names.length > 0 ? `${node.path}/${names[0]}` : node.path }
    return { place, text: names.map(name => `\`${name}\``).join(` ${word} `) || 'these fields' }
  }
  const found: Finding[] = []
  if (anyOf.length > 0 && !anyOf.some(fits)) {
    const { place, text } = listed(anyOf, 'or')
    found.push({ place, message: `${text} is missing` })
  }
  if (not && fits(not)) {
    const { place, text } = listed([not], 'and')
    found.push({ place, message: `${text} exclude each other: give one of them` })
  }
  return found
}

/** What a field that is not among the properties must be: a schema, anything (true), or nothing at all (null). */
function schemaOfOther(shape: Shape, key: string): TSchema | true | null {
  for (const [pattern, schema] of Object.entries(shape.patternProperties ?? {})) {
    if (regex(pattern).test(key)) return schema
  }
  const other = shape.additionalProperties
  return typeof other === 'object' ? other : other === true ? true : null
}

function isNumber(node: Node): boolean {
  return node.kind === 'scalar' && typeof node.value === 'number'
}

function checkList(node: Node, shape: Shape, templates: Templates): Finding[] {
  if (node.kind !== 'list') return [wrong(node, shape)]
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = shape
  if (node.items.length < minItems) return [{ place: node, message: `expected at least ${minItems} in this list` }]
  if (node.items.length > maxItems) return [{ place: node.items[maxItems]!, message: `expected at most ${maxItems}` }]
  return shape.items ? node.items.flatMap(item => checkShape(item, shape.items!, templates)) : []
}

function checkScalar(node: Scalar, shape: Shape): Finding[] {
  const { value } = node
  switch (shape.type) {
    case 'string':
      if (typeof value === 'string') return fits(value, shape) ? [] : [wrong(node, shape)]
      return [{ place: node, message: `expected ${expected(shape)}, not ${kindOf(node)}${quoteHint(node, shape)}` }]
    case 'number':
    case 'integer':
      return typeof value === 'number' && within(value, shape) ? [] : [wrong(node, shape)]
    case 'boolean':
      return typeof value === 'boolean' ? [] : [wrong(node, shape)]
    case 'null':
      return value === null ? [] : [wrong(node, shape)]
    default:
      return []
  }
}

function quoteHint({ value, written }: Scalar, shape: Shape): string {
  if (shape.pattern === DURATION_PATTERN) return typeof value === 'number' ? ': a bare number has no unit' : ''
  return value === null ? '' : `: write it in quotes, "${written}"`
}

function fits(value: string, { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }: Shape): boolean {
  return value.length >= minLength && value.length <= maxLength && (!pattern || regex(pattern).test(value))
}

const compiled = new Map<string, RegExp>()

/** Patterns come from schemas: there are few, and each is met a thousand times. */
function regex(pattern: string): RegExp {
  const known = compiled.get(pattern) ?? new RegExp(pattern, 'u')
  compiled.set(pattern, known)
  return known
}

function within(value: number, shape: Shape): boolean {
  const { type, minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity } = shape
  if (type === 'integer' && !Number.isInteger(value)) return false
  return value >= minimum && value <= maximum && value > exclusiveMinimum
}

/** Whether a value of this JSON type can pass. */
function accepts(shape: Shape, type: string): boolean {
  const branches = unionOf(shape)
  if (branches) return branches.some(branch => accepts(branch as Shape, type))
  if (shape.enum || shape.const !== undefined)
    return [...(shape.enum ?? []), shape.const].some(each => typeof each === type)
  return shape.type === undefined || shape.type === type
}

const KINDS: Record<string, string> = {
  object: 'a mapping',
  array: 'a list',
  boolean: 'true or false',
  null: 'nothing',
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
}

function expected(shape: Shape): string {
  if (shape['x-expected']) return shape['x-expected']
  const branches = unionOf(shape)
  if (branches) return [...new Set(branches.map(branch => expected(branch as Shape)))].join(' or ')
  if (shape.enum) return `one of ${shape.enum.join(', ')}`
  if (shape.const !== undefined) return `\`${shape.const}\``
  const kind = KINDS[shape.type ?? ''] ?? 'something else'
  if (shape.pattern === DURATION_PATTERN) return 'a duration such as 90s, 5m or 2h'
  if (shape.pattern) return `${kind} like ${shape.pattern}`
  const { minimum, maximum, minLength, maxLength } = shape
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `${kind} of at least ${minimum}`
  if (maximum !== undefined) return `${kind} of at most ${maximum}`
  if (maxLength !== undefined) return `${kind} of at most ${maxLength} characters`
  return minLength ? `${kind} that is not empty` : kind
}
