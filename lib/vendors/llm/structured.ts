// JSON replies: the form of a schema that a vendor accepts, and the check of what the model wrote.

import type { Detail } from '../../error.ts'
import { isObject, type Json, type JsonObject } from '../../json.ts'
import { valueProblems } from '../../schema/foreign-judge.ts'
import { schemaProblems } from '../../schema/foreign-schema.ts'
import { Refusal, Work } from '../../schema/work-budget.ts'

/** Keywords that Anthropic's structured outputs refuse. They are checked here when the reply has come. */
const REFUSED = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
]
/** Maximum number of instructions of all patterns of a schema. */
const PATTERNS_MOST = 20_000
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
 * without a structured form like to write one. A value that takes too long to judge has a problem, too.
 */
export function readJson(schema: JsonObject, text: string): { value: Json } | { problem: string } {
  const [, inner = text] = /^\s*```\w*\n([\s\S]*?)\n?```\s*$/.exec(text) ?? []
  let value: Json
  try {
    value = JSON.parse(inner) as Json
  } catch {
    return { problem: 'it is not JSON' }
  }
  let wrong: Detail[]
  try {
    wrong = valueProblems(schema, value)
  } catch (error) {
    if (error instanceof Refusal) return { problem: `it cannot be judged: ${error.message}` }
    throw error
  }
  return wrong.length === 0 ? { value } : { problem: textOf(wrong, 'it') }
}

/** What is wrong with a schema; null if nothing is. A schema whose patterns take too long to read is wrong. */
export function whyNoSchema(schema: JsonObject): string | null {
  const wrong = schemaProblems(schema, new Work(PATTERNS_MOST))
  return wrong.length === 0 ? null : textOf(wrong, 'the schema')
}

function textOf(problems: readonly Detail[], whole: string): string {
  return problems
    .slice(0, 5)
    .map(({ path, message }) => `${path || whole} ${message}`)
    .join('; ')
}
