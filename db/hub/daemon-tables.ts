// The hub's table of daemons: what each of them offers, when it called, and what it has reported.

import type { OfferedAgent } from '../../lib/wire/needs.ts'
import type { Standing } from '../../lib/wire/standing.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

export function daemonTables(
  { table, index, text, int, bool, json }: Columns,
  { realms, tokens }: ReturnType<typeof tenancyTables>,
) {
  const daemons = table(
    'daemons',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      token_id: int()
        .notNull()
        .references(() => tokens.id),
      name: text().notNull(),
      hostname: text(),
      version: text(),
      /** The commit that its program is made of; null: it does not say. */
      commit: text(),
      capacity: int(),
      agents: json<OfferedAgent[]>().notNull(),
      workspaces: json<string[]>().notNull(),
      /** Null: the daemon sent none. */
      labels: json<Record<string, string>>(),
      /** Where it runs the commands of dispatched runs; null: it does not say. */
      sandbox: text(),
      /** The kinds of jobs that it takes besides those about runs; null: it does not say. */
      kinds: json<string[]>(),
      /** Where it can tell people something, as `agent:channel`; null: it does not say. */
      accounts: json<string[]>(),
      /** The environments of its settings, which runs can have there; null: it does not say. */
      environments: json<string[]>(),
      registered_at: int().notNull(),
      /** When it last called, in lived time, which decides how long it is silent. */
      last_seen_at: int().notNull(),
      /** The same by the clock, for people; null: a hub from before lived time wrote the other. */
      called_at: int(),
      stuck: bool().notNull(),
      /**
       * When the daemon was last found silent, in lived time, for the event `daemon.stale`. It counts until the daemon calls
       * again.
       */
      stale_at: int(),
      removed_at: int(),
      /** Since when it may take jobs; null while it waits for an operator of its realm. */
      approved_at: int(),
      /** Whether an operator lets it take no more runs. */
      paused: bool().notNull().default(false),
      /** How it stands, as it said last; null: it does not say. */
      standing: json<Standing>(),
      /** When an operator last asked that its doctors look now. */
      examine: int(),
      /** The `examine` for which they have. */
      examined: int(),
      /** The epoch of the daemon's outbox from which changes have been applied. */
      epoch: text(),
      acked_seq: int().notNull(),
      /** The latest start of its home that has called: its number, and which one of that number. Null: it does not say. */
      starts: int(),
      start: text(),
    },
    row => [index('daemons_realm').on(row.realm_id), index('daemons_token').on(row.token_id)],
  )

  return { daemons }
}
