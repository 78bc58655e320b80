// Webhooks of a realm, as its members see them: which events there are, and what happened to each message.

import type { Static } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AnyText as Text, Time } from '../parts.ts'
import { HOOK_EVENTS } from './hook-events.ts'

export type HookEvent = (typeof HOOK_EVENTS)[number] | `audit.${string}`
export const HookEvent = Type.Unsafe<HookEvent>(
  Type.String({
    pattern: `^(${HOOK_EVENTS.map(event => event.replace(/[.*]/g, '\\$&')).join('|')}|audit\\.[a-z][a-z0-9_ /-]{0,99})$`,
    'x-expected': `one of ${HOOK_EVENTS.join(', ')}, or audit. and an action such as audit.daemons/approve`,
  }),
)

/** Secrets of webhooks begin with this; 24 to 64 bytes in base64 follow. */
export const SECRET_PREFIX = 'whsec_'

const DeliveryState = Type.Enum(['waiting', 'delivered', 'failed', 'unknown'])
export type DeliveryState = Static<typeof DeliveryState>

export const Webhook = named('webhook', {
  id: Text,
  realm_id: Text,
  url: Text,
  events: Type.Array(HookEvent),
  created_at: Time,
  /** The account that owns it: whoever made it, or took it over. */
  created_by: Type.Integer({ description: 'The id of the account that owns it: whoever made it or took it over.' }),
  owner: Type.String({ description: 'The name of that account.' }),
  state: Type.Enum(['active', 'stopped'], {
    description: 'A webhook is stopped while its owner is no admin of the realm. It then delivers nothing.',
  }),
  reason: nullable(Type.Enum(['owner_lost_role']), { description: 'Why it is stopped.' }),
})

export type Webhook = Static<typeof Webhook>

export const WebhookDelivery = named('webhook_delivery', {
  id: Text,
  webhook_id: Text,
  event: HookEvent,
  subject: Text,
  state: DeliveryState,
  attempts: Type.Integer(),
  next_at: nullable(Time),
  status: nullable(Type.Integer()),
  error: nullable(Text),
  created_at: Time,
  finished_at: nullable(Time),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>
