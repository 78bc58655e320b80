// JSON to CEL and back. Objects become Maps: nothing of JavaScript's own (`constructor`, `__proto__`) can be named.

import type { Json, JsonObject } from '../../json.ts'

export type CelValue = null | boolean | number | bigint | string | CelValue[] | Map<string, CelValue>

/** Whole numbers within 2^53 are int, others double. */
export function toCel(value: Json): CelValue {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(toCel)
  const map = new Map<string, CelValue>()
  for (const key of Object.keys(value)) map.set(key, toCel(value[key]!))
  return map
}

/** Throws an Error for what JSON does not have. */
export function fromCel(value: unknown): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value
      throw new Error(`the result is ${value}, which JSON does not have`)
    case 'bigint':
      return whole(value)
    case 'object':
      return fromObject(value)
    default:
      throw new Error(`a ${typeof value} is no JSON value`)
  }
}

function whole(value: bigint): number {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  throw new Error(`${value} lies beyond 2^53, where JSON numbers are not exact: use string()`)
}

function fromObject(value: object | null): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map(fromCel)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Map) return fromEntries(value)
  if (Object.getPrototypeOf(value) === Object.prototype) return fromEntries(Object.entries(value))
  const plain = value.valueOf()
  if (typeof plain === 'bigint') return whole(plain)
  if (Object.prototype.toString.call(value) === '[object google.protobuf.Duration]') return String(value)
  throw new Error('the result is no JSON value: convert it, for instance with string()')
}

function fromEntries(entries: Iterable<[unknown, unknown]>): Json {
  const object: JsonObject = {}
  for (const [key, value] of entries) {
    const name = String(key)
    if (name === '__proto__') throw new Error('`__proto__` is no name for a field')
    object[name] = fromCel(value)
  }
  return object
}
