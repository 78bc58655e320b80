// How lists are requested and returned, by hub and daemon alike.

import type { TProperties, TSchema } from 'typebox'
import { closed } from '../schema.ts'
import { Type } from '../type.ts'

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

/** The items of a page under the resource's name, and the total number of items. */
export function listOf<K extends string, S extends TSchema>(name: K, item: S) {
  const items = { [name]: Type.Array(item) } as { [N in K]: ReturnType<typeof Type.Array<S>> }
  return Type.Object({ ...items, total: Type.Integer() })
}
