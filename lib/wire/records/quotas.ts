// What a realm may use of a hub, as site admins set it.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'

const Amount = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** What each quota limits. */
export const QUOTAS = {
  waiting: 'Dispatched runs that no daemon has accepted.',
  dispatches_per_minute: 'Runs that are dispatched within a minute.',
  stored_bytes: 'Bytes of files of runs that the hub stores.',
  log_bytes: 'Bytes of log lines that the hub stores.',
  streams: 'Streams of events and logs that are open at the same time.',
} as const
export type Quota = keyof typeof QUOTAS

const of = (name: Quota) => ({ description: QUOTAS[name] })
const Given = (name: Quota) => Type.Optional(Type.Union([Amount, Type.Null()], of(name)))
const Value = (name: Quota) => nullable(Amount, of(name))

/** The quotas that a realm has of its own. Null: none, whatever the site's default is. */
export const GivenQuotas = closed({
  waiting: Given('waiting'),
  dispatches_per_minute: Given('dispatches_per_minute'),
  stored_bytes: Given('stored_bytes'),
  log_bytes: Given('log_bytes'),
  streams: Given('streams'),
})
export type Quotas = Static<typeof GivenQuotas>

const VALUES = {
  waiting: Value('waiting'),
  dispatches_per_minute: Value('dispatches_per_minute'),
  stored_bytes: Value('stored_bytes'),
  log_bytes: Value('log_bytes'),
  streams: Value('streams'),
}
export type QuotaValues = Record<Quota, number | null>

/** What holds for a realm, and what is used in it. Older hubs have no quotas. */
export const REALM_QUOTAS = {
  quotas: Type.Optional(
    Type.Object(VALUES, { description: 'The quotas that hold for the realm; null: there is no such quota.' }),
  ),
  use: Type.Optional(
    Type.Object(VALUES, { description: 'What is used of them; null where there is no quota, so nothing is counted.' }),
  ),
}
