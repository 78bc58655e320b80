// Parts that the bodies of several routes share.

import type { TSchema } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'

export { PAGE, page } from '../../wire/page.ts'

export const RunId = Type.String({ minLength: 1, maxLength: 100 })
export const Name = Type.String({ minLength: 1, maxLength: 200 })

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
