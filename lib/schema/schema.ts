// TypeBox schemas, also in the form that Elysia accepts (Standard Schema). Each is compiled once, at first use. Checks
// are strict: nothing is coerced, defaulted or removed. Problems become a list of `{path, message}`.

import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { TLocalizedValidationError } from 'typebox/error'
import type { Validator } from 'typebox/schema'
import { A_DURATION, DURATION_PATTERN } from '../duration.ts'
import type { Detail } from '../error.ts'
import { isObject } from '../json.ts'
import { fits } from './fits.ts'
import { Type } from './type.ts'

/** The interface of https://standardschema.dev, with which Elysia checks a value and infers its type. */
export interface Standard<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'typebox'
    readonly types?: { readonly input: T; readonly output: T }
    validate(value: unknown): { value: T } | { issues: { message: string; path: string[] }[] }
  }
}

/** Makes `schema` a body or query that Elysia takes. The schema stays as it is, and the copy has the same JSON. */
export function standard<S extends TSchema>(schema: S): S & Standard<Static<S>> {
  const interface_: Standard<Static<S>>['~standard'] = {
    version: 1,
    vendor: 'typebox',
    validate(value) {
      if (matches(schema, value)) return { value: value as Static<S> }
      return { issues: problems(schema, value).map(({ path, message }) => ({ message, path: segments(path) })) }
    },
  }
  // A copy, with TypeBox's marks, which are not enumerable: a schema of the wire serves several apps.
  const copy: S = Object.create(Object.getPrototypeOf(schema), Object.getOwnPropertyDescriptors(schema))
  return Object.defineProperty(copy as S & Standard<Static<S>>, '~standard', { value: interface_ })
}

/**
 * An object without additional properties. All bodies have this form, except those that must accept fields of newer
 * versions.
 */
export function closed<P extends TProperties>(properties: P): TObject<P> & Standard<Static<TObject<P>>> {
  return standard(Type.Object(properties, { additionalProperties: false }))
}

/**
 * A record that several replies contain. It becomes a component of this name in OpenAPI. It allows additional
 * properties, because replies may grow.
 */
export function named<P extends TProperties>(name: string, properties: P): TObject<P> {
  return Type.Object(properties, { $id: name })
}

export function nullable<S extends TSchema>(schema: S, options: { description?: string } = {}) {
  return Type.Union([schema, Type.Null()], options)
}

/** A schema that was checked this often is compiled, which loads TypeBox. A run of a few phases does without it. */
const FEW = 16
const checked = new WeakMap<TSchema, number>()

export function matches<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  const ready = compiled.get(schema)
  if (ready) return ready.Check(value)
  const times = checked.get(schema) ?? 0
  checked.set(schema, times + 1)
  return (times < FEW && fits(schema, value)) || validator(schema).Check(value)
}

/** Maximum number of problems in a reply. */
const MOST = 64

/** A problem with its kind, for code that treats kinds differently. */
export interface Misfit extends Detail {
  kind: 'missing' | 'unknown' | 'form'
}

/** The problems of `value` in document order, one for each place. Paths are JSON pointers. */
export function problems(schema: TSchema, value: unknown): Detail[] {
  return misfits(schema, value).map(({ path, message }) => ({ path, message }))
}

/** `problems`, with their kinds. */
export function misfits(schema: TSchema, value: unknown): Misfit[] {
  // A valid value is recognised with the fast check, which does not collect errors.
  if (matches(schema, value)) return []
  const found = new Map<string, Misfit>()
  for (const error of withoutBranches(validator(schema).Errors(value)[1])) {
    for (const misfit of misfitsIn(error, ruleAt(schema, error))) {
      if (found.size < MOST && !found.has(misfit.path)) found.set(misfit.path, misfit)
    }
  }
  return [...found.values()]
}

/** The bounds that a value can exceed although it has the form of a branch of a union. */
const BOUNDS = ['minLength', 'maxLength', 'minItems', 'maxItems']

/**
 * The branches of a union contradict each other, so only the union itself is reported. If a value has the form of
 * one branch, and is too long or has a problem further down, that problem is reported instead.
 */
function withoutBranches(all: TLocalizedValidationError[]): TLocalizedValidationError[] {
  let errors = all
  for (const union of all.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')) {
    const { instancePath: at, schemaPath, keyword } = union
    const branches = Map.groupBy(
      errors.filter(
        error =>
          isBelow(error.schemaPath, `${schemaPath}/${keyword}`) &&
          (error.instancePath === at || isBelow(error.instancePath, at)),
      ),
      error => error.schemaPath.slice(`${schemaPath}/${keyword}/`.length).split('/', 1)[0],
    )
    const meant = [...branches.values()].filter(those =>
      those.every(({ instancePath, keyword }) => instancePath !== at || BOUNDS.includes(keyword)),
    )
    const kept = new Set(meant.length === 1 ? meant[0] : [union])
    const dropped = new Set([union, ...[...branches.values()].flat()]).difference(kept)
    errors = errors.filter(error => !dropped.has(error))
  }
  return errors
}

const isBelow = (path: string, parent: string): boolean => path.startsWith(`${parent}/`)

/** An error of TypeBox in words, and one place for each. `rule` is the part of the schema to which it belongs. */
export function misfitsIn(error: TLocalizedValidationError, rule: unknown): Misfit[] {
  const at = (name: string) => `${error.instancePath}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
  switch (error.keyword) {
    // An unknown property is reported here. TypeBox reports it a second time with the object, and that report is
    // dropped.
    case 'boolean':
      return [unknown(error.instancePath)]
    case 'additionalProperties':
      return error.params.additionalProperties.map(name => unknown(at(name)))
    case 'required':
      return error.params.requiredProperties.map(name => ({ kind: 'missing', path: at(name), message: 'is required' }))
    default:
      return [{ kind: 'form', path: error.instancePath, message: inWords(error, rule) }]
  }
}

const unknown = (path: string): Misfit => ({ kind: 'unknown', path, message: 'unknown property' })

/** The part of a schema to which an error belongs. */
function ruleAt(schema: TSchema, { schemaPath }: TLocalizedValidationError): unknown {
  return segments(schemaPath).reduce<unknown>(
    (part, key) => (isObject(part) || Array.isArray(part) ? Reflect.get(part, key) : undefined),
    schema,
  )
}

/** What a value must be, without the words of JSON Schema. A schema with a pattern says it as `x-expected`. */
function inWords(error: TLocalizedValidationError, rule: unknown): string {
  const { 'x-expected': expected, pattern } = isObject(rule) ? rule : {}
  switch (error.keyword) {
    case 'enum':
      return `must be one of ${error.params.allowedValues.join(', ')}`
    case 'const':
      return `must be ${JSON.stringify(error.params.allowedValue)}`
    case 'anyOf':
    case 'oneOf':
      return forms(rule, error)
    case 'type': {
      if (typeof expected === 'string') return `must be ${expected}`
      const types = [error.params.type].flat()
      return `must be ${types.map(type => FORMS[type] ?? type).join(' or ')}`
    }
    case 'minLength':
      return error.params.limit === 1 ? 'must not be empty' : `must have at least ${error.params.limit} characters`
    case 'maxLength':
      return `must have at most ${error.params.limit} characters`
    case 'minItems':
    case 'minProperties':
      return error.params.limit === 1 ? 'must not be empty' : `must have at least ${error.params.limit} items`
    case 'maxItems':
    case 'maxProperties':
      return `must have at most ${error.params.limit} items`
    case 'minimum':
      return `must be at least ${error.params.limit}`
    case 'maximum':
      return `must be at most ${error.params.limit}`
    case 'exclusiveMinimum':
      return `must be more than ${error.params.limit}`
    case 'exclusiveMaximum':
      return `must be less than ${error.params.limit}`
    case 'multipleOf':
      return `must be a multiple of ${error.params.multipleOf}`
    case 'uniqueItems':
      return 'must not have the same item twice'
    case 'pattern':
      if (pattern === DURATION_PATTERN) return `must be ${A_DURATION}`
      return typeof expected === 'string' ? `must be ${expected}` : 'has a form that is not accepted'
    default:
      return error.message
  }
}

const FORMS: Record<string, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

/**
 * Describes the branches of a union. A branch's own description takes precedence. Branches that only require properties
 * are described by those properties.
 */
function forms(union: unknown, { keyword }: TLocalizedValidationError): string {
  if (isObject(union) && typeof union['x-expected'] === 'string') return `must be ${union['x-expected']}`
  const given = isObject(union) ? union[keyword] : undefined
  const branches = Array.isArray(given) ? given.filter(isObject) : []
  const needed = branches.map(({ required, ...rest }) =>
    Array.isArray(required) && Object.keys(rest).length === 0 ? required.join(' with ') : '',
  )
  if (branches.length > 0 && needed.every(Boolean)) {
    return `needs ${keyword === 'oneOf' ? 'exactly one' : 'at least one'} of ${needed.join(', ')}`
  }
  const words = branches.map(({ 'x-expected': expected, description, const: value, type }) =>
    String(expected ?? description ?? (value === undefined ? (FORMS[String(type)] ?? type) : JSON.stringify(value))),
  )
  return words.length === 0
    ? 'must be of another form'
    : `must be ${[words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ')}`
}

function segments(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

type Compile = typeof import('typebox/schema').Compile
let compile: Compile | null = null

/** Loaded at the first check, because most commands check nothing themselves. */
function compiler(): Compile {
  if (compile) return compile
  const { Settings } = require('typebox/system') as typeof import('typebox/system')
  // TypeBox stops at eight errors by default and counts an unknown property twice, so a reply would not list all
  // problems.
  Settings.Set({ maxErrors: 2 * MOST })
  compile = (require('typebox/schema') as typeof import('typebox/schema')).Compile
  return compile
}

const compiled = new WeakMap<TSchema, Validator>()

function validator(schema: TSchema): Validator {
  let found = compiled.get(schema)
  if (!found) {
    found = compiler()(schema) as Validator
    compiled.set(schema, found)
  }
  return found
}
