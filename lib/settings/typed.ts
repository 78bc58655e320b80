// Converts settings to the types of an agent's schema. A text from the command line, the environment or a keychain
// becomes the declared number or bool, and missing values get their defaults. A value that does not fit is left for the
// validator.

import type { TSchema } from 'typebox'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { type JsonSchema, propertyOf } from './tree.ts'

export function typed(value: Json, schema: TSchema): Json {
  const { type, properties = {} } = schema as JsonSchema
  if (type === 'object' && isObject(value)) {
    const given = Object.entries(value as JsonObject).map(([key, item]) => {
      const [property] = propertyOf(schema, key)
      return [key, property ? typed(item, property) : item] as const
    })
    const defaults = Object.entries(properties).flatMap(([key, property]) => {
      const { default: standard } = property as JsonSchema
      return standard === undefined ? [] : [[key, standard] as const]
    })
    return { ...Object.fromEntries(defaults), ...Object.fromEntries(given) }
  }
  if (type === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return String(value)
  if (typeof value !== 'string') return value
  if ((type === 'number' || type === 'integer') && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return type === 'object' || type === 'array' ? fromJson(value) : value
}

function fromJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
