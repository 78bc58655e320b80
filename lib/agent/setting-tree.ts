// The settings as a tree of values: its leaves, and which of them are secret. Pure.

import type { TSchema } from 'typebox'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { AgentDefinition } from './define.ts'
import { isSecret } from './define.ts'

export interface Leaf {
  path: string[]
  value: Json
}

/** Every value that is no mapping; a list is one value. */
export function leavesOf(value: JsonObject, path: string[] = []): Leaf[] {
  return Object.entries(value).flatMap(([key, item]) =>
    isObject(item) ? leavesOf(item as JsonObject, [...path, key]) : [{ path: [...path, key], value: item }],
  )
}

/** The value at `path`, own properties only. */
export function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let current: Json | undefined = value
  for (const key of path) {
    if (!isObject(current) || !Object.hasOwn(current, key)) return undefined
    current = (current as JsonObject)[key]
  }
  return current
}

const CREDENTIAL = /(token|password|passwd|passphrase|secret|credential|(^|_)key)s?$/i
const CREDENTIAL_FILE = /(credentials?|key|secret|token)_file$/i

/** Whether a name sounds like that of a credential. */
export function soundsSecret(name: string): boolean {
  return CREDENTIAL.test(name)
}

/** `value`: to be masked; `file`: the path of a file that holds secrets; null: neither. */
export function secretKind(
  path: readonly string[],
  agents: { get(name: string): AgentDefinition | undefined },
): 'value' | 'file' | null {
  const [section, reference = '', ...rest] = path
  const name = path.at(-1) ?? ''
  if (CREDENTIAL_FILE.test(name)) return 'file'
  if (soundsSecret(name)) return 'value'
  const definition = section === 'agents' ? agents.get(reference) : undefined
  return definition && marked([definition.settings], rest) ? 'value' : null
}

function marked(schemas: TSchema[], path: readonly string[]): boolean {
  const open = schemas.flatMap(alternatives)
  if (open.some(isSecret)) return true
  const [key, ...rest] = path
  return key === undefined
    ? false
    : marked(
        open.flatMap(schema => propertyOf(schema, key)),
        rest,
      )
}

interface JsonSchema {
  anyOf?: TSchema[]
  oneOf?: TSchema[]
  properties?: Record<string, TSchema>
  patternProperties?: Record<string, TSchema>
  additionalProperties?: TSchema | boolean
  items?: TSchema
}

/** The schema itself, or the branches of a union. */
function alternatives(schema: TSchema): TSchema[] {
  const { anyOf = [], oneOf = [], items } = schema as JsonSchema
  const branches = [...anyOf, ...oneOf, ...(items ? [items] : [])]
  return [schema, ...branches.flatMap(alternatives)]
}

/** What a schema says of its property `key`. */
export function propertyOf(schema: TSchema, key: string): TSchema[] {
  const { properties = {}, patternProperties = {}, additionalProperties } = schema as JsonSchema
  if (Object.hasOwn(properties, key)) return [properties[key]!]
  const matching = Object.entries(patternProperties).filter(([pattern]) => new RegExp(pattern).test(key))
  if (matching.length > 0) return matching.map(([, found]) => found)
  return isObject(additionalProperties) ? [additionalProperties as unknown as TSchema] : []
}
