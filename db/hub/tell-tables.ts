// The hub's table of what the daemons of a realm are asked to tell: jobs of kind `tell`, which are about no run.

import { sql } from 'drizzle-orm'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

export function tellTables(
  { table, index, uniqueIndex, text, int }: Columns,
  { realms }: ReturnType<typeof tenancyTables>,
) {
  const tells = table(
    'tells',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      /** `agent:channel`. */
      account: text().notNull(),
      text: text().notNull(),
      /** The run or the trigger that it is about. */
      subject: text().notNull(),
      /** The same for what may come twice, such as the end of an attempt. */
      once: text().notNull(),
      state: text().$type<'waiting' | 'leased' | 'accepted' | 'done' | 'failed' | 'unknown'>().notNull(),
      leased_to: text(),
      lease_id: text(),
      /** In lived time. */
      lease_until: int(),
      deliveries: int().notNull(),
      /** In lived time. */
      created_at: int().notNull(),
      /** By the time that is believed; null until it has ended. */
      finished_at: int(),
      error: text(),
    },
    row => [
      index('tells_open').on(row.realm_id, row.created_at).where(sql`${row.finished_at} is null`),
      index('tells_subject').on(row.realm_id, row.subject, row.account, row.created_at),
      uniqueIndex('tells_once').on(row.realm_id, row.account, row.once),
      index('tells_finished').on(row.finished_at),
    ],
  )

  return { tells }
}
