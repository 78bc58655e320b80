// How lists are requested and returned, by hub and daemon alike.

import type { TProperties, TSchema } from 'typebox'
import { closed } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { MOST_COUNTED } from './budget.ts'

/** The properties of every list request. `page` has the defaults. */
export const PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
}

/** The body of a list: its page and its filters. */
export function listBody<P extends TProperties>(filters: P) {
  return closed({ ...PAGE, ...filters })
}

export function page({ limit = 50, offset = 0 }: { limit?: number; offset?: number }): {
  limit: number
  offset: number
} {
  return { limit, offset }
}

const ROWS = new WeakSet<TSchema>()

/** A list whose items stand for themselves: whoever reads a reply goes on when one of them has another form. */
export function rowsOf<S extends TSchema>(item: S) {
  const rows = Type.Array(item)
  ROWS.add(rows)
  return rows
}

/** The names of such lists in `schema`, each with the form of its items. */
export function rowsIn(schema: TSchema): [name: string, item: TSchema][] {
  const { properties = {} } = schema as { properties?: Record<string, TSchema & { items?: TSchema }> }
  return Object.entries(properties).flatMap(([name, rows]) =>
    ROWS.has(rows) && rows.items ? [[name, rows.items]] : [],
  )
}

/** The items of a page under the resource's name, and the total number of items. */
export function listOf<K extends string, S extends TSchema>(name: K, item: S) {
  const items = { [name]: rowsOf(item) } as { [N in K]: ReturnType<typeof Type.Array<S>> }
  return Type.Object({ ...items, total: Type.Integer() })
}

/** The total of a long list, of which at most `MOST_COUNTED + 1` items were counted. */
export function counted(found: number): { total: number; total_more?: true } {
  return found > MOST_COUNTED ? { total: MOST_COUNTED, total_more: true } : { total: found }
}

/** The same as `listOf`, for a list that is long enough to be counted only up to `MOST_COUNTED`. */
export function longListOf<K extends string, S extends TSchema>(name: K, item: S) {
  return Type.Object({ ...listOf(name, item).properties, total_more: Type.Optional(Type.Literal(true)) })
}
