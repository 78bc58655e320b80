// The audit logs of hub and home: what their entries have in common, and what callers ask of them.

import type { Static } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { Moment, NullableText, AnyText as Text, Text as TextUpTo, Time } from '../parts.ts'

/** The position of an entry in its chain. Null until it is sealed; a hub of an earlier version seals nothing. */
export const SEAL = {
  seq: Type.Optional(nullable(Type.Integer())),
  hash: Type.Optional(NullableText),
}

export const HomeAuditEntry = named('home_audit_entry', {
  id: Type.Integer(),
  at: Time,
  actor: Text,
  action: Text,
  target: NullableText,
  ...SEAL,
})
export type HomeAuditEntry = Static<typeof HomeAuditEntry>

export const AUDIT_FILTERS = {
  action: Type.Optional(TextUpTo(100)),
  since: Type.Optional(Moment),
  until: Type.Optional(Moment),
}

export const AUDIT_RANGE = {
  cursor: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  since: Type.Optional(Moment),
  until: Type.Optional(Moment),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
}
