// The hub's tables of triggers and of their firings. The unique index of occasions is what keeps two hubs, or a hub that was
// killed and started again, from starting two runs of one occasion.

import { sql } from 'drizzle-orm'
import type { JsonObject } from '../../lib/json.ts'
import type { Requires } from '../../lib/wire/needs.ts'
import type { FiringReason, FiringState, TriggerKind } from '../../lib/wire/records/trigger-words.ts'
import type { Declared, TriggerRecord, TriggerSpec } from '../../lib/wire/records/triggers.ts'
import type { Columns } from './columns.ts'
import type { tenancyTables } from './tenancy-tables.ts'

/** `team` is `@scope/name[@range]`: a range is resolved at each firing. */
interface Spec extends TriggerSpec {
  requires: Requires | null
  priority: number
  queue_timeout: string | null
}

export function triggerTables(
  { table, index, uniqueIndex, id, key, text, int, bool, json }: Columns,
  { realms, users }: ReturnType<typeof tenancyTables>,
) {
  const triggers = table(
    'triggers',
    {
      id: text().primaryKey(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      name: text().notNull(),
      kind: text().$type<TriggerKind>().notNull(),
      spec: json<Spec>().notNull(),
      /** One more with each change. */
      revision: int().notNull(),
      source: json<'manual' | Declared>().notNull(),
      enabled: bool().notNull(),
      paused: json<NonNullable<TriggerRecord['paused']>>(),
      problem: json<NonNullable<TriggerRecord['problem']>>(),
      /** Slots that were due up to here were looked at, by the clock of the database. */
      cursor: int().notNull(),
      /** When the next slot is due; null while none can be. Only rows with it are looked at. */
      next_at: int(),
      /** Its runs start with the rights that this account has at that moment. */
      owner_id: int()
        .notNull()
        .references(() => users.id),
      created_at: int().notNull(),
      created_by: text().notNull(),
      /** Firings are shown after the removal, too. */
      removed_at: int(),
    },
    row => [
      uniqueIndex('triggers_name').on(row.realm_id, row.name).where(sql`${row.removed_at} is null`),
      index('triggers_due').on(row.next_at).where(sql`${row.next_at} is not null`),
      // What the clock is behind of.
      index('triggers_ahead').on(row.cursor).where(sql`${row.next_at} is not null`),
      index('triggers_owner').on(row.owner_id),
      // Whether anything follows runs of a realm that end.
      index('triggers_chains').on(row.realm_id).where(sql`${row.kind} = 'chain' and ${row.removed_at} is null`),
      index('triggers_removed').on(row.removed_at).where(sql`${row.removed_at} is not null`),
    ],
  )

  const firings = table(
    'firings',
    {
      /** Their order. */
      seq: id(),
      id: text().notNull(),
      trigger_id: text()
        .notNull()
        .references(() => triggers.id, { onDelete: 'cascade' }),
      revision: int().notNull(),
      occasion: key().notNull(),
      /** Of several slots the first, and `until` the last. */
      at: int().notNull(),
      until: int(),
      seen_at: int().notNull(),
      started_at: int(),
      state: text().$type<FiringState>().notNull(),
      reason: text().$type<FiringReason>(),
      detail: text(),
      run_id: text(),
      count: int().notNull(),
      late_ms: int(),
      /** How often the delivery of a hook came; null of another kind. */
      deliveries: int(),
      manual: json<{ by: string; backfill?: true }>(),
      /** What `when` and `inputs` may name. */
      variables: json<JsonObject>().notNull(),
      /** The end of a run that a chain follows. */
      end_id: int(),
    },
    row => [
      uniqueIndex('firings_occasion').on(row.trigger_id, row.occasion),
      uniqueIndex('firings_id').on(row.id),
      index('firings_trigger').on(row.trigger_id, row.seq),
      index('firings_waiting').on(row.trigger_id, row.seq).where(sql`${row.state} = 'waiting'`),
      index('firings_started').on(row.trigger_id, row.started_at).where(sql`${row.started_at} is not null`),
      index('firings_run').on(row.run_id).where(sql`${row.run_id} is not null`),
      index('firings_end').on(row.end_id).where(sql`${row.end_id} is not null`),
    ],
  )

  /** How a top run ended, as chains see it: once, however many of them follow it. */
  const runEnds = table(
    'run_ends',
    {
      id: id(),
      realm_id: text()
        .notNull()
        .references(() => realms.id, { onDelete: 'cascade' }),
      run: json<JsonObject>().notNull(),
    },
    row => [index('run_ends_realm').on(row.realm_id)],
  )

  return { triggers, firings, runEnds }
}
