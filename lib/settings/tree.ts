// The settings as a tree of values: its leaves, and which of them are secret. Pure.

import type { TSchema } from 'typebox'
import type { AgentDefinition } from '../agent/define.ts'
import { isSecret, LEND } from '../agent/define.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { soundsSecret } from '../secrets/environment-secrets.ts'

export interface Leaf {
  path: string[]
  value: Json
}

/** Every value that is not a mapping. A list counts as one value. */
export function leavesOf(value: JsonObject, path: string[] = []): Leaf[] {
  return Object.entries(value).flatMap(([key, item]) =>
    isObject(item) ? leavesOf(item as JsonObject, [...path, key]) : [{ path: [...path, key], value: item }],
  )
}

/** The value at `path`. Only own properties are followed. */
export function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let current: Json | undefined = value
  for (const key of path) {
    if (!isObject(current) || !Object.hasOwn(current, key)) return undefined
    current = (current as JsonObject)[key]
  }
  return current
}

/** A copy with `value` at `path`. Anything else than a mapping on the way is replaced by one. */
export function withValue(settings: Json | undefined, [key, ...rest]: readonly string[], value: Json): Json {
  if (key === undefined) return value
  const own = isObject(settings) ? (settings as JsonObject) : {}
  return { ...own, [key]: withValue(valueAt(own, [key]), rest, value) }
}

/** A path of settings.yml as the one above an environment's settings, which is empty for plain ones, and the one below. */
export function inEnvironment(path: readonly string[]): { above: readonly string[]; below: readonly string[] } {
  const length = path[0] === 'environments' && (path[2] === 'agents' || path[2] === 'secrets') ? 2 : 0
  return { above: path.slice(0, length), below: path.slice(length) }
}

const CREDENTIAL_FILE = /(credentials?|key|secret|token)_file$/i

/** The settings that belong to no agent, and whether they are secret. */
export const GLOBAL: Readonly<Record<string, 'value' | 'open'>> = {
  'network.allow': 'open',
  'network.proxy_resolves': 'open',
  'packages.trust': 'open',
  'packages.sandbox': 'open',
  'exec.sandbox': 'open',
  'exec.image': 'open',
  'exec.sandbox_network': 'open',
  'hub.url': 'open',
  'hub.realm_token': 'value',
  'hub.api_key': 'value',
  labels: 'open',
  'notify.on_fail': 'open',
  'references.env': 'open',
  settle: 'open',
  sync: 'open',
}

/**
 * The kind of a setting. `value` is a secret. `unknown` has no schema and is not shown either. `file` is the path of a
 * file that contains secrets. `open` is anything else.
 */
export function secretKind(
  path: readonly string[],
  agents: { get(name: string): AgentDefinition | undefined },
): 'value' | 'unknown' | 'file' | 'open' {
  const { below } = inEnvironment(path)
  const [section, reference = '', ...rest] = below
  if (section === 'secrets') return rest.length === 1 && rest[0] === 'teams' ? 'open' : 'value'
  if (section === 'environments') return rest[0] === 'inherit' || rest[0] === 'review' ? 'open' : 'unknown'
  if (section === 'labels') return 'open'
  if (section !== 'agents') return GLOBAL[below.join('.')] ?? 'unknown'
  if (CREDENTIAL_FILE.test(rest.at(-1) ?? '')) return 'file'
  if (rest.some(soundsSecret)) return 'value'
  const definition = agents.get(reference)
  if (definition?.account && rest.length === 1 && rest[0] === LEND) return 'open'
  const schemas = definition ? schemasAt(definition.settings, rest) : []
  if (schemas.length === 0) return 'unknown'
  return schemas.flatMap(alternatives).some(isSecret) ? 'value' : 'open'
}

/** The schemas of the value at `path`, including the branches of unions; empty when there is none. */
export function schemasAt(schema: TSchema, path: readonly string[]): TSchema[] {
  return path.reduce((above, key) => above.flatMap(alternatives).flatMap(each => propertyOf(each, key)), [schema])
}

/** The fields of a schema that are read here. TypeBox's own type does not declare them. */
export interface JsonSchema extends TSchema {
  type?: string
  default?: Json
  anyOf?: TSchema[]
  oneOf?: TSchema[]
  properties?: Record<string, TSchema>
  patternProperties?: Record<string, TSchema>
  additionalProperties?: TSchema | boolean
  items?: TSchema
}

export interface SchemaField {
  /** Dotted; `[]` for the items of a list, and `<name>` for any key of a mapping. */
  name: string
  required: boolean
  schema: TSchema
}

/** Every field of a schema with those below it, in the order of the schema, each name once, as it occurs first. */
export function fieldsOf(schema: TSchema, prefix = ''): SchemaField[] {
  const found = alternatives(schema).flatMap(each => {
    const { properties = {}, patternProperties = {}, required = [] } = each as JsonSchema & { required?: string[] }
    const open = Object.values(patternProperties).map(value => ['<name>', value] as const)
    return [...Object.entries(properties), ...open].flatMap(([key, value]) => {
      const name = `${prefix}${key}`
      const below = (value as JsonSchema).type === 'array' ? `${name}[].` : `${name}.`
      return [{ name, required: required.includes(key), schema: value }, ...fieldsOf(value, below)]
    })
  })
  return [...Map.groupBy(found, ({ name }) => name).values()].map(([first]) => first!)
}

/** The names of the properties that a schema has below `path`. */
export function namesAt(schema: TSchema, path: readonly string[]): string[] {
  return schemasAt(schema, path)
    .flatMap(alternatives)
    .flatMap(each => Object.keys((each as JsonSchema).properties ?? {}))
}

/** Whether a value is a mapping whose keys are names that people choose, such as channels. */
export function takesNames(schema: TSchema): boolean {
  const { properties, patternProperties, additionalProperties } = schema as JsonSchema
  return properties === undefined && (patternProperties !== undefined || typeof additionalProperties === 'object')
}

/** The branches of a union, or the schema itself. */
function alternatives(schema: TSchema): TSchema[] {
  const { anyOf = [], oneOf = [], items } = schema as JsonSchema
  const branches = [...anyOf, ...oneOf, ...(items ? [items] : [])]
  return [schema, ...branches.flatMap(alternatives)]
}

/** The schemas of the property `key`. */
export function propertyOf(schema: TSchema, key: string): TSchema[] {
  const { properties = {}, patternProperties = {}, additionalProperties } = schema as JsonSchema
  if (Object.hasOwn(properties, key)) return [properties[key]!]
  const matching = Object.entries(patternProperties).filter(([pattern]) => new RegExp(pattern).test(key))
  if (matching.length > 0) return matching.map(([, found]) => found)
  return typeof additionalProperties === 'object' ? [additionalProperties] : []
}
