// The fields that a team asks for as inputs, and a gate as its answer's form.

import type { Static } from 'typebox'
import { Type } from '../../schema/type.ts'
import { AnyJson, AnyText } from '../parts.ts'

export const FIELD_TYPES = ['string', 'number', 'boolean', 'list', 'object', 'file'] as const
export type FieldType = (typeof FIELD_TYPES)[number]

export const Field = Type.Object({
  name: AnyText,
  type: Type.Enum([...FIELD_TYPES]),
  required: Type.Boolean(),
  secret: Type.Boolean(),
  default: Type.Optional(AnyJson),
  choices: Type.Optional(Type.Array(AnyJson)),
  description: Type.Optional(AnyText),
})
export type Field = Static<typeof Field>
