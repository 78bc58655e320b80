// Judges values by JSON Schemas that others wrote. Whatever a schema contains, that ends in a bounded time: patterns run
// on RE2, every step is paid from a budget, and no code is generated from it, as TypeBox does for ours.
//
// https://json-schema.org/draft/2020-12/json-schema-validation

import type { TLocalizedValidationError } from 'typebox/error'
import type { Detail } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { DEEPEST, escaped, TYPES, target } from './foreign-schema.ts'
import { fromJavaScript, matches } from './linear-regex.ts'
import { misfitsIn } from './schema.ts'
import { Refusal, Work } from './work-budget.ts'

/** Maximum number of characters of a text that has a `format`: the expressions for formats are not RE2. */
const FORMAT_LENGTH = 1_000
/** Units of work to hold a value against a schema, and to report what is wrong with it. */
const SCHEMA_COST = 4
const PROBLEM_COST = 20
/** How many problems of a value are collected: more help nobody, and a short schema can find millions in a short value. */
const PROBLEMS_MOST = 20
/** How many choices are compared for one unit of work, and how many of them a problem names. */
const CHOICES_PER_UNIT = 8
const CHOICES_TOLD = 20

/**
 * What is wrong with a value, with JSON pointers, by a schema in which `schemaProblems` finds nothing: the first
 * problems of it. Throws a Refusal when judging it takes too many steps.
 */
export function valueProblems(schema: Json, value: Json, work = new Work()): Detail[] {
  return new Judge(schema, work).problems(schema, value, '', 0)
}

const TOO_DEEP = `this is nested deeper than ${DEEPEST} schemas, or the schema refers to itself without end`

class Judge {
  readonly #root: Json
  readonly #work: Work
  /** The patterns of the schema in the syntax of RE2, because one is held against many texts. */
  readonly #patterns = new Map<string, string>()

  constructor(root: Json, work: Work) {
    this.#root = root
    this.#work = work
  }

  problems(schema: Json, value: Json, at: string, depth: number): Detail[] {
    this.#work.spend(SCHEMA_COST)
    if (depth > DEEPEST) throw new Refusal(TOO_DEEP)
    if (schema === false) return [{ path: at, message: 'unknown property' }]
    if (!isObject(schema)) return []
    const rule = schema as JsonObject
    const found: Detail[] = []
    const place: Place = {
      rule,
      fits: (part, inner = value) => this.problems(part, inner, at, depth + 1).length === 0,
      inside: (part, inner, key) => {
        // Also when nothing more is collected, because the list that this belongs to is passed through to its end.
        this.#work.spend(1)
        if (found.length >= PROBLEMS_MOST) return
        const below = key === undefined ? at : `${at}/${escaped(String(key))}`
        collect(this.problems(part, inner, below, depth + 1))
      },
      say: (keyword, params, message = '') => {
        this.#work.spend(PROBLEM_COST)
        if (found.length >= PROBLEMS_MOST) return
        const error = { keyword, params, message, instancePath: at, schemaPath: '' } as TLocalizedValidationError
        const problems = misfitsIn(error, rule).map(({ path, message }) => ({ path, message }))
        for (const problem of problems) this.#work.passText(problem.message, 1)
        collect(problems)
      },
    }
    const collect = (problems: Detail[]) => {
      this.#work.spend(problems.length)
      found.push(...problems.slice(0, PROBLEMS_MOST - found.length))
    }
    this.#general(value, place)
    if (typeof value === 'string') this.#text(value, place)
    else if (typeof value === 'number') number(value, place)
    else if (Array.isArray(value)) this.#list(value, place)
    else if (isObject(value)) this.#object(value as JsonObject, place)
    return found
  }

  #general(value: Json, { rule, fits, inside, say }: Place): void {
    const { type, enum: choices, allOf, anyOf, oneOf, not, $ref } = rule
    this.#work.pass(type)
    if (type !== undefined && ![type].flat().some(name => TYPES.get(String(name))!(value))) {
      say('type', { type: [type].flat().map(String) })
    }
    if (Array.isArray(choices)) {
      this.#work.spend(choices.length / CHOICES_PER_UNIT)
      if (!choices.some(each => this.#same(each, value))) {
        const shown = choices.slice(0, CHOICES_TOLD)
        say('enum', { allowedValues: shown.map(each => (typeof each === 'string' ? each : JSON.stringify(each))) })
      }
    }
    if (rule.const !== undefined && !this.#same(rule.const, value)) say('const', { allowedValue: rule.const })
    if (typeof $ref === 'string') inside(target(this.#root, $ref) ?? true, value)
    for (const each of listOf(allOf)) inside(each, value)
    if (anyOf !== undefined && !listOf(anyOf).some(each => fits(each))) say('anyOf', {})
    if (oneOf !== undefined) {
      const passing = listOf(oneOf).flatMap((each, index) => (fits(each) ? index : []))
      if (passing.length !== 1) say('oneOf', { passingSchemas: passing })
    }
    if (not !== undefined && fits(not)) say('not', {}, 'must not have this form')
    const branch = rule.if === undefined ? undefined : fits(rule.if) ? rule.then : rule.else
    if (branch !== undefined) inside(branch, value)
  }

  #text(value: string, { rule, say }: Place): void {
    const { minLength, maxLength, pattern, format } = rule
    this.#work.passText(value, 1)
    const length = minLength === undefined && maxLength === undefined ? 0 : characters(value)
    if (typeof minLength === 'number' && length < minLength) say('minLength', { limit: minLength })
    if (typeof maxLength === 'number' && length > maxLength) say('maxLength', { limit: maxLength })
    if (typeof pattern === 'string' && !this.#matches(value, pattern)) say('pattern', { pattern })
    if (typeof format === 'string' && !this.#hasFormat(value, format)) {
      say('format', { format }, `must have the format ${format}`)
    }
  }

  #matches(text: string, pattern: string): boolean {
    let translated = this.#patterns.get(pattern)
    if (translated === undefined) {
      this.#work.spend(pattern.length)
      translated = fromJavaScript(pattern)
      this.#patterns.set(pattern, translated)
    }
    return matches(text, translated, this.#work)
  }

  /** The first of the names in a list of a schema that a value does not have. */
  #lacking(value: JsonObject, names: Json | undefined): string[] {
    this.#work.pass(names)
    const lacking = listOf(names).map(String)
    return lacking.filter(name => !Object.hasOwn(value, name)).slice(0, PROBLEMS_MOST)
  }

  #hasFormat(text: string, format: string): boolean {
    const { Format } = require('typebox/format') as typeof import('typebox/format')
    if (!Format.Has(format)) return true
    if (text.length > FORMAT_LENGTH) return false
    this.#work.spend(1 + text.length ** 2 / 100)
    return Format.Test(format, text)
  }

  #list(value: Json[], { rule, fits, inside, say }: Place): void {
    const { prefixItems, items, contains, minItems, maxItems, minContains = 1, maxContains, uniqueItems } = rule
    const first = listOf(prefixItems)
    for (const [index, item] of value.entries()) {
      const schema = index < first.length ? first[index]! : items
      if (schema !== undefined) inside(schema, item, index)
    }
    if (typeof minItems === 'number' && value.length < minItems) say('minItems', { limit: minItems })
    if (typeof maxItems === 'number' && value.length > maxItems) say('maxItems', { limit: maxItems })
    if (contains !== undefined) {
      const count = value.filter(item => fits(contains, item)).length
      const [least, most] = [Number(minContains), maxContains === undefined ? value.length : Number(maxContains)]
      const message = `must have from ${least} to ${most} items of a certain form`
      if (count < least || count > most) say('contains', { minContains: least, maxContains: most }, message)
    }
    if (uniqueItems === true) {
      const seen = new Set<string>()
      const twice = value.findIndex(item => seen.size === seen.add(this.#canonical(item)).size)
      if (twice !== -1) say('uniqueItems', { duplicateItems: [twice] })
    }
  }

  #object(value: JsonObject, { rule, fits, inside, say }: Place): void {
    const { required, properties, patternProperties, additionalProperties, propertyNames } = rule
    const names = Object.keys(value)
    const { minProperties, maxProperties, dependentRequired, dependentSchemas } = rule
    if (typeof minProperties === 'number' && names.length < minProperties)
      say('minProperties', { limit: minProperties })
    if (typeof maxProperties === 'number' && names.length > maxProperties)
      say('maxProperties', { limit: maxProperties })
    const missing = this.#lacking(value, required)
    if (missing.length > 0) say('required', { requiredProperties: missing })
    const patterns = Object.entries(mapping(patternProperties))
    this.#work.pass(patterns)
    for (const name of names) {
      this.#work.spend(1 + patterns.length)
      const own = Object.hasOwn(mapping(properties), name) ? mapping(properties)[name] : undefined
      const fitting = patterns.filter(([pattern]) => this.#matches(name, pattern))
      if (own !== undefined) inside(own, value[name]!, name)
      for (const [, schema] of fitting) inside(schema, value[name]!, name)
      const isOther = own === undefined && fitting.length === 0
      if (isOther && additionalProperties !== undefined) inside(additionalProperties, value[name]!, name)
      if (propertyNames !== undefined && !fits(propertyNames, name)) {
        say('propertyNames', { propertyNames: [name] }, `has the field ${name}, whose name is not accepted`)
      }
    }
    const schemas = Object.entries(mapping(dependentSchemas))
    this.#work.pass(schemas)
    for (const [name, schema] of schemas) if (Object.hasOwn(value, name)) inside(schema, value)
    const needs = Object.entries(mapping(dependentRequired))
    this.#work.pass(needs)
    for (const [name, needed] of needs) {
      const lacking = Object.hasOwn(value, name) ? this.#lacking(value, needed) : []
      if (lacking.length > 0) say('required', { requiredProperties: lacking })
    }
  }

  #same(one: Json, other: Json): boolean {
    if (typeof one !== 'object' || typeof other !== 'object') return one === other
    return this.#canonical(one) === this.#canonical(other)
  }

  /** A text that equal values share, for which the order of fields means nothing. */
  #canonical(value: Json, depth = 0): string {
    this.#work.spend(1)
    if (depth > DEEPEST) throw new Refusal(TOO_DEEP)
    if (typeof value === 'string') this.#work.passText(value, 1)
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    if (Array.isArray(value)) return `[${value.map(each => this.#canonical(each, depth + 1)).join()}]`
    const fields = Object.keys(value).sort()
    return `{${fields.map(name => `${JSON.stringify(name)}:${this.#canonical(value[name]!, depth + 1)}`).join()}}`
  }
}

/** A schema at a value, and what its keywords do with them. */
interface Place {
  rule: JsonObject
  /** Whether the value, or a part of it, fits a part of the schema. */
  fits(part: Json, inner?: Json): boolean
  /** Reports what is wrong with the value, or with the part of it under `key`. */
  inside(part: Json, inner: Json, key?: string | number): void
  say<K extends TLocalizedValidationError['keyword']>(
    keyword: K,
    params: Extract<TLocalizedValidationError, { keyword: K }>['params'],
    message?: string,
  ): void
}

function number(value: number, { rule, say }: Place): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rule
  if (typeof minimum === 'number' && value < minimum) say('minimum', { comparison: '>=', limit: minimum })
  if (typeof maximum === 'number' && value > maximum) say('maximum', { comparison: '<=', limit: maximum })
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) {
    say('exclusiveMinimum', { comparison: '>', limit: exclusiveMinimum })
  }
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) {
    say('exclusiveMaximum', { comparison: '<', limit: exclusiveMaximum })
  }
  if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf)) say('multipleOf', { multipleOf })
}

/** With the tolerance that decimals need: 0.3 is a multiple of 0.1. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Math.abs(times - Math.round(times)) <= Math.abs(times) * Number.EPSILON * 4
}

function characters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : []
}

function mapping(value: Json | undefined): JsonObject {
  return isObject(value) ? (value as JsonObject) : {}
}
