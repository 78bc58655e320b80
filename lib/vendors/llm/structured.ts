// JSON replies: the form of a schema that a vendor accepts, and the check of what the model wrote.

import { isObject, type Json, type JsonObject } from '../../json.ts'
import { problems } from '../../schema.ts'

/** Keywords that Anthropic's structured outputs refuse. They are checked here when the reply has come. */
const REFUSED = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
]
/** Keywords whose values are schemas by name. */
const BY_NAME = ['properties', '$defs', 'definitions', 'patternProperties']

/** The schema without limits on sizes, in which no object has fields that are not declared. */
export function withoutLimits(schema: JsonObject): JsonObject {
  const copy: JsonObject = {}
  for (const [key, value] of Object.entries(schema)) {
    if (REFUSED.includes(key)) continue
    copy[key] = BY_NAME.includes(key) && isObject(value) ? mapped(value as JsonObject, below) : below(value)
  }
  return schema.type === 'object' ? { ...copy, additionalProperties: false } : copy
}

function below(value: Json): Json {
  if (Array.isArray(value)) return value.map(below)
  return isObject(value) ? withoutLimits(value as JsonObject) : value
}

function mapped(values: JsonObject, map: (value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}

/** Whether each object requires all of its fields and allows no others, as OpenAI's strict form demands. */
export function isStrict(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict)
  if (!isObject(schema)) return true
  const { type, properties, required, additionalProperties } = schema as JsonObject
  if (type === 'object') {
    const names = isObject(properties) ? Object.keys(properties) : []
    const needed = Array.isArray(required) ? required : []
    if (additionalProperties !== false || !names.every(name => needed.includes(name))) return false
  }
  return Object.values(schema as JsonObject).every(isStrict)
}

/**
 * The JSON value of a reply, or what is wrong with it. A value in a Markdown code block is accepted, because models
 * without a structured form like to write one. Throws for a schema that cannot be used.
 */
export function readJson(schema: JsonObject, text: string): { value: Json } | { problem: string } {
  const [, inner = text] = /^\s*```\w*\n([\s\S]*?)\n?```\s*$/.exec(text) ?? []
  let value: Json
  try {
    value = JSON.parse(inner) as Json
  } catch {
    return { problem: 'it is not JSON' }
  }
  const wrong = problems(schema, value).slice(0, 5)
  if (wrong.length === 0) return { value }
  return { problem: wrong.map(({ path, message }) => `${path || 'it'} ${message}`).join('; ') }
}
