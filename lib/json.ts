// JSON as a type: what templates give, what a phase records, what goes over the wire.

/**
 * A value of JSON.
 * @example const item = (await reply.json()) as Json
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
/**
 * An object of JSON: what a vendor's record extends, so that it passes as JSON.
 * @example interface Ticket extends JsonObject { id: number }
 */
export type JsonObject = { [key: string]: Json }

/** Values that agents give nest no deeper than this. */
const DEEPEST = 200

/** Where `value` holds something that JSON has no word for (`data.when is a Date`), or null. `undefined` counts as absent. */
export function notJson(value: unknown, place: string, above: ReadonlySet<unknown> = new Set()): string | null {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${place} is ${value}`
  if (typeof value !== 'object') return `${place} is a ${typeof value}`
  if (above.has(value)) return `${place} contains itself`
  if (above.size >= DEEPEST) return `${place.slice(0, 80)}… is nested more than ${DEEPEST} deep`
  const inside = new Set(above).add(value)
  if (Array.isArray(value))
    return first(
      value.map((item, index) => [`${place}[${index}]`, item]),
      inside,
    )
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    return `${place} is a ${prototype.constructor?.name ?? 'class'}`
  return first(
    Object.entries(value).map(([key, item]) => [`${place}.${key}`, item]),
    inside,
  )
}

function first(
  parts: readonly (readonly [place: string, value: unknown])[],
  above: ReadonlySet<unknown>,
): string | null {
  for (const [place, value] of parts) {
    const problem = notJson(value, place, above)
    if (problem) return problem
  }
  return null
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
