// The webhooks of a realm. Its admins add and remove them, and its operators see them and what happened to their
// messages.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Text, Uuid } from '../parts.ts'
import { HookEvent, SECRET_PREFIX, Webhook, WebhookDelivery } from '../records/hooks.ts'
import { withMore } from '../records/hub-records.ts'

const Secret = Type.String({
  pattern: `^${SECRET_PREFIX}([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`,
})

export const AddWebhook = call('/v1/realms/add_webhook', {
  summary: 'Add a webhook to a realm; only this reply shows its secret',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({
    realm_id: Uuid,
    url: Text(2_000, 1),
    events: Type.Array(HookEvent, { minItems: 1, uniqueItems: true }),
    secret: Type.Optional(Secret),
  }),
  data: withMore(Webhook, { secret: Type.String() }),
})
export const ListWebhooks = call('/v1/realms/webhooks', {
  summary: 'List the webhooks of a realm',
  hub: { user: { grant: { realms: 'read' }, realm: 'operator' } },
  body: listBody({ realm_id: Uuid }),
  data: listOf('webhooks', Webhook),
})
export const RemoveWebhook = call('/v1/realms/remove_webhook', {
  summary: 'Remove a webhook with the log of its deliveries',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({ realm_id: Uuid, id: Uuid }),
  data: Type.Object({ id: Type.String(), realm_id: Type.String() }),
})
export const TakeOverWebhook = call('/v1/realms/webhook_take_over', {
  summary: 'Become the owner of a webhook, which then delivers again',
  hub: { user: { grant: { realms: 'admin' }, realm: 'admin' } },
  body: closed({
    realm_id: Type.Optional(Uuid),
    id: Type.Optional(Uuid),
    webhook_id: Type.Optional(Uuid),
  }),
  data: Webhook,
})
export const RedeliverMessage = call('/v1/realms/redeliver_webhook', {
  summary: 'Send a message of a webhook again, under the same id',
  hub: { user: { grant: { realms: 'write' }, realm: 'operator' } },
  body: closed({
    realm_id: Uuid,
    id: Type.Optional(Text(200, 1)),
    delivery_id: Type.Optional(Text(200, 1)),
  }),
  data: WebhookDelivery,
})
export const ListDeliveries = call('/v1/realms/webhook_deliveries', {
  summary: 'What happened to the messages of a realm’s webhooks, newest first',
  hub: { user: { grant: { realms: 'read' }, realm: 'operator' } },
  body: listBody({ realm_id: Uuid, webhook_id: Type.Optional(Uuid) }),
  data: listOf('deliveries', WebhookDelivery),
})
