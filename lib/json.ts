// The type of JSON values: the results of templates, what a phase records, and what is sent over the wire.

/**
 * A JSON value.
 * @example const item = (await reply.json()) as Json
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
/**
 * A JSON object. Interfaces for vendors' records extend it, so that they are assignable to Json.
 * @example interface Ticket extends JsonObject { id: number }
 */
export type JsonObject = { [key: string]: Json }

/** Maximum nesting of values that agents return. */
const DEEPEST = 200

/**
 * Describes the first part of `value` that JSON cannot express (`data.when is a Date`), or returns null. `undefined`
 * counts as absent.
 */
export function notJson(value: unknown, place: string, around?: Set<unknown>): string | null {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${place} is ${value}`
  if (typeof value !== 'object') return `${place} is a ${typeof value}`
  // One set for all values: a copy for each of them would cost its depth.
  const above = around ?? new Set()
  if (above.has(value)) return `${place} contains itself`
  if (above.size >= DEEPEST) return `${place.slice(0, 80)}… is nested more than ${DEEPEST} deep`
  const isList = Array.isArray(value)
  const prototype = Object.getPrototypeOf(value)
  if (!isList && prototype !== Object.prototype && prototype !== null)
    return `${place} is a ${prototype.constructor?.name ?? 'class'}`
  above.add(value)
  for (const [key, item] of isList ? value.entries() : Object.entries(value)) {
    const problem = notJson(item, isList ? `${place}[${key}]` : `${place}.${key}`, above)
    if (problem) return problem
  }
  above.delete(value)
  return null
}

/** The path of the first text or key with a NUL or half a surrogate pair. JSON with one cannot be read by PostgreSQL at all. */
export function illFormedText(value: unknown, path = ''): string | null {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0') ? null : path
  if (typeof value !== 'object' || value === null) return null
  for (const [key, item] of Object.entries(value)) {
    const found = illFormedText(key, path) ?? illFormedText(item, `${path}/${key}`)
    if (found !== null) return found
  }
  return null
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string')
}

/** JSON with sorted keys and without blanks, so that the same content always gives the same text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const object = value as Record<string, unknown>
  const fields = Object.keys(object)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonicalJson(object[key])}`)
  return `{${fields.join(',')}}`
}
