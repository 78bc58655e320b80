// JSON Schemas that others wrote, such as a team for the replies of a language model: whether one can be checked here.
// The keywords are those of draft 2020-12, except the few that are refused. foreign-judge.ts judges values by it.
//
// https://json-schema.org/draft/2020-12/json-schema-validation

import { type Detail, messageOf } from '../error.ts'
import { isObject, isTexts, type Json, type JsonObject } from '../json.ts'
import { checkPattern, fromJavaScript } from './linear-regex.ts'
import type { Work } from './work-budget.ts'

/** How many schemas may be entered below each other. */
export const DEEPEST = 200

const KINDS = {
  'a schema': (value: Json) => typeof value === 'boolean' || isObject(value),
  'a list of schemas': (value: Json) => Array.isArray(value) && value.length > 0 && value.every(KINDS['a schema']),
  'a mapping of names to schemas': (value: Json) =>
    isObject(value) && Object.values(value).every(each => KINDS['a schema'](each as Json)),
  'a mapping of names to lists of texts': (value: Json) =>
    isObject(value) && Object.values(value).every(each => KINDS['a list of texts'](each as Json)),
  'a list of texts': isTexts,
  'a list': (value: Json) => Array.isArray(value),
  'a whole number from 0': (value: Json) => Number.isSafeInteger(value) && Number(value) >= 0,
  'a number': (value: Json) => typeof value === 'number',
  'a number above 0': (value: Json) => typeof value === 'number' && value > 0,
  'a text': (value: Json) => typeof value === 'string',
  'true or false': (value: Json) => typeof value === 'boolean',
  'the name of a type, or a list of them': (value: Json) => [value].flat().every(each => TYPES.has(String(each))),
} as const
type Kind = keyof typeof KINDS

export const TYPES = new Map<string, (value: Json) => boolean>([
  ['object', isObject],
  ['array', Array.isArray],
  ['string', value => typeof value === 'string'],
  ['number', value => typeof value === 'number'],
  ['integer', value => Number.isInteger(value)],
  ['boolean', value => typeof value === 'boolean'],
  ['null', value => value === null],
])

/** What the value of each keyword is. Other keywords say nothing about a value. */
const KEYWORDS: Readonly<Record<string, Kind>> = {
  ...of('a schema', 'not', 'if', 'then', 'else', 'items', 'contains', 'additionalProperties', 'propertyNames'),
  ...of('a list of schemas', 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
  ...of('a mapping of names to schemas', 'properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'),
  ...of('a mapping of names to lists of texts', 'dependentRequired'),
  ...of('a list of texts', 'required'),
  ...of('a list', 'enum'),
  ...of('a whole number from 0', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'),
  ...of('a whole number from 0', 'minProperties', 'maxProperties'),
  ...of('a number', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...of('a number above 0', 'multipleOf'),
  ...of('a text', 'pattern', 'format', '$ref'),
  ...of('true or false', 'uniqueItems'),
  ...of('the name of a type, or a list of them', 'type'),
}
const REFUSED = [
  'unevaluatedProperties',
  'unevaluatedItems',
  'dependencies',
  'additionalItems',
  '$dynamicRef',
  '$recursiveRef',
]

function of(kind: Kind, ...names: string[]): Record<string, Kind> {
  return Object.fromEntries(names.map(name => [name, kind]))
}

/**
 * What is wrong with a schema, with JSON pointers: a keyword whose value is of another kind, a pattern that is not RE2,
 * a reference that leads nowhere. Patterns are paid from `work` by their instructions. `skip` leaves texts alone whose
 * value is not known yet.
 */
export function schemaProblems(schema: Json, work: Work, skip: (text: string) => boolean = () => false): Detail[] {
  const found: Detail[] = []
  const seen = new Set<object>()
  const visit = (part: Json, path: string, depth: number): void => {
    if (depth > DEEPEST) return void found.push({ path, message: `is nested deeper than ${DEEPEST} schemas` })
    if (!isObject(part) || seen.has(part)) return
    seen.add(part)
    for (const [key, given] of Object.entries(part)) {
      const value = given as Json
      const at = `${path}/${escaped(key)}`
      if (REFUSED.includes(key)) found.push({ path: at, message: `\`${key}\` cannot be checked here: remove it` })
      const kind = Object.hasOwn(KEYWORDS, key) ? KEYWORDS[key]! : null
      if (kind === null || (typeof value === 'string' && skip(value))) continue
      if (!KINDS[kind](value)) {
        found.push({ path: at, message: `\`${key}\` must be ${kind}` })
        continue
      }
      const pattern = (text: string, place: string) => {
        const problem = patternProblem(text, work)
        if (problem !== null) found.push({ path: place, message: problem })
      }
      if (key === 'pattern') pattern(String(value), at)
      if (key === '$ref') {
        const named = target(schema, String(value))
        if (named !== undefined) visit(named, String(value).slice(1), depth + 1)
        else found.push({ path: at, message: '`$ref` must name a part of this schema, such as #/$defs/item' })
      }
      if (kind === 'a schema') visit(value, at, depth + 1)
      if (kind === 'a list of schemas')
        for (const [n, each] of (value as Json[]).entries()) visit(each, `${at}/${n}`, depth + 1)
      if (kind === 'a mapping of names to schemas') {
        for (const [name, each] of Object.entries(value as JsonObject)) {
          if (key === 'patternProperties' && !skip(name)) pattern(name, `${at}/${escaped(name)}`)
          visit(each, `${at}/${escaped(name)}`, depth + 1)
        }
      }
    }
  }
  visit(schema, '', 0)
  return found
}

function patternProblem(pattern: string, work: Work): string | null {
  try {
    checkPattern(fromJavaScript(pattern), work)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** The part of a schema that a reference names: `#`, or a JSON pointer behind it. */
export function target(root: Json, reference: string): Json | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let part: Json | undefined = root
  for (const piece of reference.split('/').slice(1)) {
    const key = decoded(piece).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, key)) return undefined
    part = Array.isArray(part) ? part[Number(key)] : part[key]
  }
  return part !== undefined && KINDS['a schema'](part) ? part : undefined
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A piece of a JSON pointer. */
export function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}
