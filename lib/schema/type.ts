// TypeBox's `Type` without the 370 files of its type engine, whose loading took a fifth of a daemon's start. The
// builders that our schemas use are defined here and produce the same result as TypeBox's own, including its internal
// marks (tests/type.test.ts compares them). Any other member, such as `Omit`, loads TypeBox at first use.

import type { Static as StaticOf, TObjectOptions, TProperties, TSchema, TSchemaOptions, Type as TypeBox } from 'typebox'

const whole = (): typeof TypeBox => require('typebox').Type

/** The same schema with one of the marks by which TypeBox recognises its schemas. The marks do not appear in JSON. */
function marked(schema: object, name: string, value: unknown): object {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema))
  return Object.defineProperty(copy, name, { value, configurable: true, writable: true, enumerable: false })
}

const made = (kind: string, fields: object, options?: object) => marked({ ...fields, ...options }, '~kind', kind)

const plain = (kind: string, fields: object) => (options?: object) => made(kind, fields, options)

const isKind = (value: unknown, kind: string): boolean =>
  typeof value === 'object' && value !== null && '~kind' in value && value['~kind'] === kind

const builders = {
  Any: plain('Any', {}),
  Array: (items: TSchema, options?: object) => made('Array', { type: 'array', items }, options),
  Boolean: plain('Boolean', { type: 'boolean' }),
  Enum: (values: string[] | Record<string, string>, options?: TSchemaOptions) =>
    Array.isArray(values) ? made('Enum', { enum: values }, options) : whole().Enum(values, options),
  Integer: plain('Integer', { type: 'integer' }),
  IsObject: (value: unknown) => isKind(value, 'Object'),
  Literal: (value: string | number | boolean, options?: object) =>
    made('Literal', { type: typeof value, const: value }, options),
  Null: plain('Null', { type: 'null' }),
  Number: plain('Number', { type: 'number' }),
  Object(properties: TProperties, options?: object) {
    const required = Object.keys(properties).filter(name => !('~optional' in properties[name]!))
    return made('Object', { type: 'object', ...(required.length > 0 && { required }), properties }, options)
  },
  /** Only named properties of an object are handled here. */
  Pick(type: TSchema & { properties: TProperties }, names: string[], options?: TObjectOptions) {
    if (!isKind(type, 'Object') || !Array.isArray(names)) return whole().Pick(type, names, options)
    const picked = Object.entries(type.properties).filter(([name]) => names.includes(name))
    return builders.Object(Object.fromEntries(picked), options)
  },
  Optional: (schema: TSchema) => marked(schema, '~optional', true),
  /** Only string keys are handled here. TypeBox computes the pattern for other keys. */
  Record(key: TSchema, value: TSchema, options?: TObjectOptions) {
    if (!isKind(key, 'String')) return whole().Record(key, value, options)
    const pattern = 'pattern' in key ? String(key.pattern) : '^.*$'
    return made('Record', { type: 'object', patternProperties: { [pattern]: value } }, options)
  },
  String: plain('String', { type: 'string' }),
  Union: (anyOf: TSchema[], options?: object) => made('Union', { anyOf }, options),
  Unknown: plain('Unknown', {}),
  Unsafe: (schema: TSchema) => marked(schema, '~unsafe', null),
}

/**
 * Builds schemas, which are JSON Schema for editors and checks, and types for the compiler.
 * @example
 * const Settings = Type.Object({ base_url: Type.String(), retries: Type.Optional(Type.Integer({ minimum: 0 })) }) type
 * Settings = Type.Static<typeof Settings>
 */
export const Type = new Proxy<object>(builders, {
  get: (own, name) => Reflect.get(name in own ? own : whole(), name),
}) as typeof TypeBox

/** The types of TypeBox's namespace `Type` that are used under this name. */
export declare namespace Type {
  type Static<S extends TSchema> = StaticOf<S>
}
