// Checks a YAML value against a JSON Schema (TypeBox) and reports for people: all mistakes at once, each with its place
// and with what was expected. A template passes, because its value is checked when it is known.

import type { TSchema } from 'typebox'
import { A_DURATION, DURATION_PATTERN } from '../../duration.ts'
import type { Json } from '../../json.ts'
import { didYouMean, listed } from '../../text/spelling.ts'
import { COMMAND_TEXT, formFor, type Given, type Givens, givesAnother, hasTemplate, type Kind } from '../cel/cel.ts'
import { kindOf, type Mapping, type Node, type Place, type Scalar } from '../yaml/yaml.ts'
import { OTHER_FIELDS, OTHER_TYPES } from './other-fields.ts'

/** The parts of JSON Schema that are checked. The `x-` keywords are our own. */
interface JsonSchema {
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
  /** The description of the expected value for messages, where the pattern itself would explain nothing. */
  'x-expected'?: string
  /** Whether templates are read in the value and below; `text`: `{{` is ordinary text. */
  'x-template'?: boolean | 'text'
  /** Templates are never read in this text. The sentence says where values go instead. */
  'x-literal'?: string
  /** What to write where none of `oneOf` seems to fit. */
  'x-none'?: string
}

export interface Finding {
  place: Place
  message: string
}

/** Whether `{{ }}` is read at a place. */
type Templates = boolean | 'text'

/** `givens`: what templates give. It is known once they are compiled. */
export function checkValue(node: Node, schema: TSchema, templates: Templates = false, givens?: Givens): Finding[] {
  const rule = schema as JsonSchema
  const read = rule['x-literal'] === undefined && (rule['x-template'] ?? templates)
  if (node.kind === 'scalar' && typeof node.value === 'string' && read !== 'text' && hasTemplate(node.value)) {
    // Reported by the compiler, at each template.
    if (COMMAND_TEXT.test(node.path)) return []
    const literal = literalIn(rule)
    if (!read || literal) return [{ place: node, message: `templates are not read here${literal && `: ${literal}`}` }]
    const given = givens?.get(node)
    if (given && !takes(rule, given.kind)) return [{ place: given.place, message: anotherKind(rule, given) }]
    if (isAlone(node.value) || accepts(rule, 'string')) return []
    return [{ place: node, message: `expected ${expected(rule)}, not text with a template in it` }]
  }
  const branches = unionOf(rule)
  if (branches) return checkUnion(node, rule, branches, read, givens)
  if (rule.allOf) return rule.allOf.flatMap(each => checkValue(node, each, read, givens))
  if (rule.const !== undefined || rule.enum) return checkChoice(node, rule)
  switch (rule.type) {
    case 'object':
      return node.kind === 'map'
        ? [...checkObject(node, rule, read, givens), ...checkTogether(node, schema)]
        : [wrong(node, rule, read)]
    case 'array':
      return checkList(node, rule, read, givens)
    case undefined:
      return []
    default:
      return node.kind === 'scalar' ? checkScalar(node, rule, read) : [wrong(node, rule, read)]
  }
}

/**
 * What is said about the first literal text in a value; empty when it has none. A template that gives the whole value
 * would give this text too.
 */
function literalIn(rule: JsonSchema): string {
  if (rule['x-literal'] !== undefined) return rule['x-literal']
  const below = [...Object.values(rule.properties ?? {}), ...(rule.items ? [rule.items] : [])]
  return below.map(schema => literalIn(schema as JsonSchema)).find(Boolean) ?? ''
}

function isAlone(text: string): boolean {
  return text.startsWith('{{') && text.endsWith('}}')
}

function wrong(node: Node, rule: JsonSchema, templates: Templates): Finding {
  const hint = templates === true ? templateHint(node) : ''
  return { place: node, message: `expected ${expected(rule)}, not ${kindOf(node)}${hint}` }
}

/** How to write a text that looks like an expression, such as `inputs.names`. */
function templateHint(node: Node): string {
  const text = node.kind === 'scalar' && typeof node.value === 'string' ? node.value.trim() : ''
  if (!/^(?:inputs|phases|item)[.[]/.test(text)) return ''
  const quote = text.includes('"') ? "'" : '"'
  return `: write it as a template, ${quote}{{ ${text} }}${quote}`
}

/** The alternatives of a value. In an object with properties they are rules over its fields (see `checkTogether`). */
function unionOf({ anyOf, oneOf, properties }: JsonSchema): TSchema[] | undefined {
  return properties ? undefined : (anyOf ?? oneOf)
}

/**
 * Checks against alternatives. Reports the mistakes of the only one of the value's kind, which is the one that was
 * meant.
 */
function checkUnion(
  node: Node,
  rule: JsonSchema,
  branches: TSchema[],
  templates: Templates,
  givens?: Givens,
): Finding[] {
  const results = branches.map(branch => {
    return { branch: branch as JsonSchema, found: checkValue(node, branch, templates, givens) }
  })
  if (results.some(({ found }) => found.length === 0)) return []
  const kind = node.kind === 'map' ? 'object' : node.kind === 'list' ? 'array' : null
  const meant = results.filter(({ branch }) => branch.type === kind)
  return kind && meant.length === 1 ? meant[0]!.found : [wrong(node, rule, templates)]
}

function checkChoice(node: Node, rule: JsonSchema): Finding[] {
  const choices = rule.enum ?? [rule.const!]
  if (node.kind === 'scalar' && choices.includes(node.value)) return []
  const near = node.kind === 'scalar' ? didYouMean(String(node.value), choices.map(String), OTHER_TYPES) : ''
  return [{ place: node, message: `expected ${expected(rule)}, not ${kindOf(node)}${near}` }]
}

/** `{ description: The folder, in the workspace }` has a field `in the workspace` without a value. */
const isRestOfText = (key: string, value: Node): boolean =>
  /\s/.test(key) && value.kind === 'scalar' && value.value === null
const CUT_TEXT = ': a comma ends a text within { }, so put the text before it in quotes'

function checkObject(node: Mapping, rule: JsonSchema, templates: Templates, givens?: Givens): Finding[] {
  const found: Finding[] = []
  const properties = rule.properties ?? {}
  for (const [key, { key: place, node: value }] of node.entries) {
    const schema = Object.hasOwn(properties, key) ? properties[key]! : schemaOfOther(rule, key)
    if (schema === null) {
      const near = isRestOfText(key, value) ? CUT_TEXT : didYouMean(key, Object.keys(properties), OTHER_FIELDS)
      const known = Object.keys(properties).length > 0 && !near ? `: there are ${listed(Object.keys(properties))}` : ''
      found.push({ place, message: `unknown field \`${key}\`${near}${known}` })
    } else if (
      schema !== true &&
      !(key === 'ref' && isNumber(value, givens) && accepts(schema as JsonSchema, 'string'))
    ) {
      found.push(...checkValue(value, schema, templates, givens))
    }
  }
  for (const key of rule.required ?? []) {
    if (node.entries.has(key)) continue
    found.push({ place: { offset: node.offset, path: `${node.path}/${key}` }, message: `\`${key}\` is missing` })
  }
  return found
}

/**
 * Checks rules over several fields of an object: `anyOf` says which are needed, `oneOf` of which exactly one is, and `not`
 * which exclude each other.
 */
export function checkTogether(node: Mapping, schema: TSchema): Finding[] {
  const { anyOf = [], oneOf = [], not, 'x-none': none } = schema as JsonSchema
  const fits = (branch: TSchema) => checkObject(node, { additionalProperties: true, ...branch }, true).length === 0
  const listed = (branches: TSchema[], word: string) => {
    const names = [...new Set(branches.flatMap(branch => (branch as JsonSchema).required ?? []))]
    const place = { offset: node.offset, path: names.length > 0 ? `${node.path}/${names[0]}` : node.path }
    return { place, text: names.map(name => `\`${name}\``).join(` ${word} `) || 'these fields' }
  }
  const found: Finding[] = []
  if (anyOf.length > 0 && !anyOf.some(fits)) {
    const { place, text } = listed(anyOf, 'or')
    found.push({ place, message: `${text} is missing` })
  }
  const given = oneOf.filter(fits)
  if (oneOf.length > 0 && given.length === 0) {
    const { place, text } = listed(oneOf, 'or')
    found.push({ place, message: `${text} is missing: give one of them${none === undefined ? '' : ` (${none})`}` })
  }
  const excluded = not && fits(not) ? [not] : given.length > 1 ? given : null
  if (excluded) {
    const { place, text } = listed(excluded, 'and')
    found.push({ place, message: `${text} exclude each other: give one of them` })
  }
  return found
}

/**
 * The schema of a field that is not among the properties; true when any value is allowed, null when the field is not
 * allowed.
 */
function schemaOfOther(rule: JsonSchema, key: string): TSchema | true | null {
  for (const [pattern, schema] of Object.entries(rule.patternProperties ?? {})) {
    if (regex(pattern).test(key)) return schema
  }
  const other = rule.additionalProperties
  return typeof other === 'object' ? other : other === true ? true : null
}

function isNumber(node: Node, givens?: Givens): boolean {
  return (node.kind === 'scalar' && typeof node.value === 'number') || givens?.get(node)?.kind === 'a number'
}

function checkList(node: Node, rule: JsonSchema, templates: Templates, givens?: Givens): Finding[] {
  if (node.kind !== 'list') return [wrong(node, rule, templates)]
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = rule
  if (node.items.length < minItems) return [{ place: node, message: `expected at least ${minItems} in this list` }]
  if (node.items.length > maxItems) return [{ place: node.items[maxItems]!, message: `expected at most ${maxItems}` }]
  return rule.items ? node.items.flatMap(item => checkValue(item, rule.items!, templates, givens)) : []
}

function checkScalar(node: Scalar, rule: JsonSchema, templates: Templates): Finding[] {
  const { value } = node
  switch (rule.type) {
    case 'string':
      if (typeof value === 'string') return fits(value, rule) ? [] : [wrong(node, rule, templates)]
      return [{ place: node, message: `expected ${expected(rule)}, not ${kindOf(node)}${quoteHint(node, rule)}` }]
    case 'number':
    case 'integer':
      return typeof value === 'number' && within(value, rule) ? [] : [wrong(node, rule, templates)]
    case 'boolean':
      return typeof value === 'boolean' ? [] : [wrong(node, rule, templates)]
    case 'null':
      return value === null ? [] : [wrong(node, rule, templates)]
    default:
      return []
  }
}

function quoteHint({ value, written }: Scalar, rule: JsonSchema): string {
  if (rule.pattern === DURATION_PATTERN) return typeof value === 'number' ? ': a bare number has no unit' : ''
  if (value === null || (rule.pattern && !regex(rule.pattern).test(written))) return ''
  return `: write it in quotes, "${written}"`
}

function fits(value: string, { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }: JsonSchema): boolean {
  return value.length >= minLength && value.length <= maxLength && (!pattern || regex(pattern).test(value))
}

const compiled = new Map<string, RegExp>()

/** Compiled patterns are cached, because there are few and each is used many times. */
function regex(pattern: string): RegExp {
  const known = compiled.get(pattern) ?? new RegExp(pattern, 'u')
  compiled.set(pattern, known)
  return known
}

function within(value: number, rule: JsonSchema): boolean {
  const { type, minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity } = rule
  if (type === 'integer' && !Number.isInteger(value)) return false
  return value >= minimum && value <= maximum && value > exclusiveMinimum
}

/** Whether a value of this JSON type can pass. */
function accepts(rule: JsonSchema, type: string): boolean {
  const branches = unionOf(rule)
  if (branches) return branches.some(branch => accepts(branch as JsonSchema, type))
  if (rule.enum || rule.const !== undefined)
    return [...(rule.enum ?? []), rule.const].some(each => typeof each === type)
  return rule.type === undefined || rule.type === type
}

/** The JSON types of a kind. */
const TYPES: Readonly<Record<Kind, readonly string[]>> = {
  text: ['string'],
  'a number': ['number', 'integer'],
  'true or false': ['boolean'],
  'a list': ['array'],
  'an object': ['object'],
}

/** Whether a value of this kind can pass. */
function takes(rule: JsonSchema, kind: Kind): boolean {
  return rule.allOf
    ? rule.allOf.every(each => takes(each as JsonSchema, kind))
    : TYPES[kind].some(type => accepts(rule, type))
}

function anotherKind(rule: JsonSchema, given: Given): string {
  const wanted = (Object.keys(TYPES) as Kind[]).find(kind => takes(rule, kind))
  const isWhole = accepts(rule, 'integer') && !accepts(rule, 'number')
  const isAny = wanted !== undefined && !rule.enum && rule.const === undefined
  return givesAnother(given, expected(rule), isAny ? formFor(given, wanted, isWhole) : null)
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

/** What a value has to be, in words. */
export function expected(schema: TSchema): string {
  const rule = schema as JsonSchema
  if (rule['x-expected']) return rule['x-expected']
  const branches = unionOf(rule)
  if (branches) return [...new Set(branches.map(expected))].join(' or ')
  if (rule.enum) return `one of ${rule.enum.join(', ')}`
  if (rule.const !== undefined) return `\`${rule.const}\``
  const kind = KINDS[rule.type ?? ''] ?? 'something else'
  if (rule.pattern === DURATION_PATTERN) return A_DURATION
  if (rule.pattern) return `${kind} like ${rule.pattern}`
  const { minimum, maximum, minLength, maxLength } = rule
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `${kind} of at least ${minimum}`
  if (maximum !== undefined) return `${kind} of at most ${maximum}`
  if (maxLength !== undefined) return `${kind} of at most ${maxLength} characters`
  return minLength ? `${kind} that is not empty` : kind
}
