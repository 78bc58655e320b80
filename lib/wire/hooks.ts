// Webhooks of a realm, as its members see them: which events there are, and what happened to each message.

import type { Static } from 'typebox'
import { named, nullable } from '../schema.ts'
import { Type } from '../type.ts'
import { HOOK_EVENTS } from './hook-events.ts'
import { AnyText as Text, Time } from './parts.ts'

export const HookEvent = Type.Enum([...HOOK_EVENTS])
export type HookEvent = Static<typeof HookEvent>

const DeliveryState = Type.Enum(['waiting', 'delivered', 'failed'])
export type DeliveryState = Static<typeof DeliveryState>

export const Webhook = named('webhook', {
  id: Text,
  realm_id: Text,
  url: Text,
  events: Type.Array(HookEvent),
  created_at: Time,
  created_by: Type.Integer(),
})

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
