// Converts JSON to CEL values and back. Objects become Maps, so that properties of JavaScript objects (`constructor`,
// `__proto__`) cannot be named.

import type { Json, JsonObject } from '../../json.ts'
import type { Work } from '../../schema/work-budget.ts'

export type CelValue = null | boolean | number | bigint | string | CelValue[] | Map<string, CelValue>

/** Maximum depth of a value. Deeper values do not occur in practice and would overflow the stack. */
const MAX_DEPTH = 500

/** Whole numbers within 2^53 are int, others double. */
export function toCel(value: Json, work: Work, depth = 0): CelValue {
  work.spend(1)
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) throw new Error(`a value is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) return value.map(item => toCel(item, work, depth + 1))
  const map = new Map<string, CelValue>()
  for (const key of Object.keys(value)) map.set(key, toCel(value[key]!, work, depth + 1))
  return map
}

/** Converts a CEL value to JSON. Throws an Error for a value that JSON cannot express. */
export function fromCel(value: unknown, work: Work, depth = 0): Json {
  work.spend(1)
  switch (typeof value) {
    case 'string':
      work.passText(value, 2)
      return value
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value
      throw new Error(`the result is ${value}, which JSON does not have`)
    case 'bigint':
      return whole(value)
    case 'object':
      if (depth > MAX_DEPTH) throw new Error(`the result is nested deeper than ${MAX_DEPTH} levels`)
      return fromObject(value, work, depth)
    default:
      throw new Error(`the result is a ${typeof value}, which is not a JSON value`)
  }
}

function whole(value: bigint): number {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  throw new Error(`${value} lies beyond 2^53, where JSON numbers are not exact: use string()`)
}

function fromObject(value: object | null, work: Work, depth: number): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map(item => fromCel(item, work, depth + 1))
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Map) return fromEntries(value, work, depth)
  if (Object.getPrototypeOf(value) === Object.prototype) return fromEntries(Object.entries(value), work, depth)
  if (isOptional(value)) return value.hasValue() ? fromCel(value.value(), work, depth + 1) : null
  const plain = value.valueOf()
  if (typeof plain === 'bigint') return whole(plain)
  if (Object.prototype.toString.call(value) === '[object google.protobuf.Duration]') return String(value)
  throw new Error('the result is not a JSON value: convert it, for instance with string()')
}

function fromEntries(entries: Iterable<[unknown, unknown]>, work: Work, depth: number): Json {
  const object: JsonObject = {}
  for (const [key, value] of entries) {
    const name = String(key)
    // Adding a key to an object is slow, so it is charged separately.
    work.spend(4)
    if (name === '__proto__') throw new Error('`__proto__` cannot be the name of a field')
    object[name] = fromCel(value, work, depth + 1)
  }
  return object
}

/** CEL's optional value: `value.?field`. */
export interface Optional {
  hasValue(): boolean
  value(): unknown
}

export function isOptional(value: unknown): value is Optional {
  return Object.prototype.toString.call(value) === '[object optional]'
}

/** CEL's `==` of lists and maps. Ints and doubles compare by their value; other kinds differ. */
export function equals(a: unknown, b: unknown, work: Work): boolean {
  work.spend(1)
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length === b.length) work.passText(a, 1)
    return a === b
  }
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    // biome-ignore lint/suspicious/noDoubleEquals: 1n == 1 is what CEL asks for.
    return isNumber(a) && isNumber(b) && a == b
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => equals(item, b[at], work))
  }
  const [left, right] = [entriesOf(a), entriesOf(b)]
  if (left && right) {
    if (left.size !== right.size) return false
    work.pass(left)
    for (const [key, value] of left) if (!right.has(key) || !equals(value, right.get(key), work)) return false
    return true
  }
  if (a.constructor !== b.constructor) return false
  work.pass(a)
  return a instanceof Uint8Array ? Buffer.compare(a, b as Uint8Array) === 0 : a.valueOf() === b.valueOf()
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** The entries of a map of the data, or of a map literal of an expression, which is small. Null for other objects. */
function entriesOf(value: object): Map<unknown, unknown> | null {
  if (value instanceof Map) return value
  return Object.getPrototypeOf(value) === Object.prototype ? new Map(Object.entries(value)) : null
}
