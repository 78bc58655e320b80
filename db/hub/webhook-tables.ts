// The hub's tables of webhooks and of their deliveries.

import type { DeliveryState, HookEvent } from '../../lib/wire/records/hooks.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

export function webhookTables(
  { table, index, text, sealed, int, json }: Columns,
  { realms }: ReturnType<typeof tenancyTables>,
) {
  const webhooks = table(
    'webhooks',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      url: text().notNull(),
      events: json<HookEvent[]>().notNull(),
      /** Signs the messages. */
      secret: sealed().notNull(),
      created_at: int().notNull(),
      created_by: int().notNull(),
    },
    row => [index('webhooks_realm').on(row.realm_id, row.created_at)],
  )

  const webhookDeliveries = table(
    'webhook_deliveries',
    {
      /** The same for every attempt, so that the receiver knows a message that it already has. */
      id: text().primaryKey(),
      webhook_id: text()
        .notNull()
        .references(() => webhooks.id, { onDelete: 'cascade' }),
      event: text().$type<HookEvent>().notNull(),
      /** The run, the daemon or the trigger that the message is about. */
      subject: text().notNull(),
      /** The bytes that are sent, the same for every attempt. */
      body: text().notNull(),
      state: text().$type<DeliveryState>().notNull(),
      attempts: int().notNull(),
      /** When the next attempt is due, in lived time. While an attempt is made, when another hub may repeat it. Null at the end. */
      next_at: int(),
      /** The HTTP status of the last attempt, and what went wrong. Both are null while an attempt is made. */
      status: int(),
      error: text(),
      created_at: int().notNull(),
      finished_at: int(),
    },
    row => [
      index('webhook_deliveries_due').on(row.next_at),
      index('webhook_deliveries_webhook').on(row.webhook_id, row.created_at),
      index('webhook_deliveries_finished').on(row.finished_at),
    ],
  )

  return { webhooks, webhookDeliveries }
}
