// Parts that the bodies of several routes share.

import type { TSchema } from 'typebox'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'

export const RunId = Type.String({ minLength: 1, maxLength: 100 })
export const Name = Type.String({ minLength: 1, maxLength: 200 })

/** `limit` 1–100 and `offset`, as every list takes them; see `page` for the defaults. */
export const PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  offset: Type.Optional(Type.Integer({ minimum: 0 })),
}

export function page({ limit = 50, offset = 0 }: { limit?: number; offset?: number }): {
  limit: number
  offset: number
} {
  return { limit, offset }
}

const NullableText = Type.Optional(Type.Union([Type.String(), Type.Null()]))

/** The message envelope, wire protocol version 1. */
export function envelope<T extends string, P extends TSchema>(type: T, payload: P) {
  return closed({
    type: Type.Literal(type),
    version: Type.Literal(1),
    id: Type.String({ minLength: 1 }),
    timestamp: Type.Integer(),
    run_id: NullableText,
    instance_id: NullableText,
    payload,
  })
}
