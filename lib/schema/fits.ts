// Recognises values that match a schema, without TypeBox's validator: loading its 235 files takes longer than a small
// run. It knows the keywords of which most of our schemas consist. `true` is certain. `false` says nothing, and the
// caller asks TypeBox, which also finds the reasons. A keyword that is missing here costs time and changes no answer.

import type { TSchema } from 'typebox'
import { isObject } from '../json.ts'

interface Keywords {
  type: string
  const: unknown
  enum: unknown[]
  anyOf: TSchema[]
  required: string[]
  properties: Record<string, TSchema>
  patternProperties: Record<string, TSchema>
  additionalProperties: TSchema | boolean
  items: TSchema
  minItems: number
  maxItems: number
  minLength: number
  maxLength: number
  pattern: string
  minimum: number
  maximum: number
}

/** What does not restrict a value: words for people, our own `x-…`, and the marks of plain TypeBox schemas. */
const ASIDE = /^(\$id|title|description|default|examples|x-.*|~(kind|optional|readonly|unsafe|standard))$/

/** Whether the value certainly matches. */
export function fits(schema: TSchema, value: unknown): boolean {
  return Object.getOwnPropertyNames(schema).every(keyword => ASIDE.test(keyword) || holds(keyword, schema, value))
}

function holds(keyword: string, schema: Partial<Keywords>, value: unknown): boolean {
  switch (keyword) {
    case 'type':
      return isOfType(schema.type!, value)
    case 'const':
      return value === schema.const
    case 'enum':
      return schema.enum!.includes(value)
    case 'anyOf':
      return schema.anyOf!.some(branch => fits(branch, value))
    case 'required':
    case 'properties':
    case 'patternProperties':
    case 'additionalProperties':
      return !isObject(value) || fieldsHold(keyword, schema, value)
    case 'items':
      return !Array.isArray(value) || (isObject(schema.items) && value.every(item => fits(schema.items!, item)))
    case 'minItems':
      return !Array.isArray(value) || value.length >= schema.minItems!
    case 'maxItems':
      return !Array.isArray(value) || value.length <= schema.maxItems!
    case 'minLength':
      // Schemas count characters, and a character has one or two units of `length`.
      return (
        typeof value !== 'string' || value.length >= 2 * schema.minLength! || [...value].length >= schema.minLength!
      )
    case 'maxLength':
      return typeof value !== 'string' || value.length <= schema.maxLength!
    case 'pattern':
      return typeof value !== 'string' || regExp(schema.pattern!).test(value)
    case 'minimum':
      return typeof value !== 'number' || value >= schema.minimum!
    case 'maximum':
      return typeof value !== 'number' || value <= schema.maximum!
    default:
      return false
  }
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    case 'number':
      return Number.isFinite(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return (type === 'string' || type === 'boolean') && typeof value === type
  }
}

function fieldsHold(
  keyword: 'required' | 'properties' | 'patternProperties' | 'additionalProperties',
  { required = [], properties = {}, patternProperties = {}, additionalProperties = true }: Partial<Keywords>,
  value: Record<string, unknown>,
): boolean {
  const patterns = Object.entries(patternProperties)
  switch (keyword) {
    case 'required':
      return required.every(name => Object.hasOwn(value, name))
    case 'properties':
      return Object.entries(properties).every(([name, schema]) => !(name in value) || fits(schema, value[name]))
    case 'patternProperties':
      return patterns.every(([pattern, schema]) =>
        Object.entries(value).every(([name, item]) => !regExp(pattern).test(name) || fits(schema, item)),
      )
    case 'additionalProperties': {
      if (additionalProperties === true) return true
      const isDeclared = (name: string) =>
        Object.hasOwn(properties, name) || patterns.some(([pattern]) => regExp(pattern).test(name))
      return Object.keys(value).every(
        name => isDeclared(name) || (additionalProperties !== false && fits(additionalProperties, value[name])),
      )
    }
  }
}

const regExps = new Map<string, RegExp>()

function regExp(pattern: string): RegExp {
  const found = regExps.get(pattern) ?? new RegExp(pattern, 'u')
  regExps.set(pattern, found)
  return found
}
