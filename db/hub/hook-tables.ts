// The hub's tables of hooks: their addresses, the secrets that they share with senders, and what came with deliveries.
// Secrets and bodies are sealed (lib/hub/core/sealer.ts).

import type { Columns } from './columns.ts'
import type { triggerTables } from './trigger-tables.ts'

export function hookTables(
  { table, index, uniqueIndex, text, sealed, int }: Columns,
  { triggers, firings }: ReturnType<typeof triggerTables>,
) {
  const triggerId = () =>
    text()
      .notNull()
      .references(() => triggers.id, { onDelete: 'cascade' })

  const hooks = table('hooks', { trigger_id: triggerId().primaryKey(), token: text().notNull() }, row => [
    uniqueIndex('hooks_token').on(row.token),
  ])

  const hookSecrets = table(
    'hook_secrets',
    {
      id: text().primaryKey(),
      trigger_id: triggerId(),
      sealed: sealed().notNull(),
      created_at: int().notNull(),
      /** Since when it fits no more; null while it does. */
      expires_at: int(),
    },
    row => [index('hook_secrets_trigger').on(row.trigger_id)],
  )

  const hookBodies = table(
    'hook_bodies',
    {
      firing_id: text()
        .primaryKey()
        .references(() => firings.id, { onDelete: 'cascade' }),
      sealed: sealed().notNull(),
      /** By the believed time; null: it is kept only while the firing waits. */
      delete_at: int(),
    },
    row => [index('hook_bodies_delete_at').on(row.delete_at)],
  )

  return { hooks, hookSecrets, hookBodies }
}
