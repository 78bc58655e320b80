// The hub's tables of its own lineage: which database this is, how much it has committed, which older copies it was started
// on, and which daemons and hubs have to confirm what they know before a copy is trusted. Its lived time stands here too.
// Some names in the database are older than those here.

import type { Columns } from './columns.ts'

/** What a daemon offered when the copy was made: it decides which jobs it may have taken since. */
export interface OfferAtCopy {
  labels: Record<string, string> | null
  agents: { name: string; version: string }[]
  workspaces: string[]
  /** Copies of before there were any leave them out. */
  environments?: string[] | null
}

/** `wrong_key`: values of the database are sealed with a key that it lacks. `no_key`: it has none. */
export type RefusedStart = 'wrong_key' | 'no_key'

export function lineageTables({ table, index, primaryKey, text, int, bool, json }: Columns) {
  /** One row. It is copied with the database, so it says what the copy was. */
  const lineage = table('memory', {
    id: int().primaryKey(),
    /** Born with the database, and the same in all of its copies. */
    lineage: text().notNull(),
    /** Signs the counts that daemons keep. */
    secret: text().notNull(),
    /** The count of a commit is at least this. It is raised when an older copy is found. */
    base: int().notNull(),
    /** What no copy of the database has in common with it: its inode, or its server, timeline and number. */
    identity: text('place').notNull(),
    /** The same text as in the file beside a SQLite database. */
    mark: text().notNull(),
  })

  /** One row: the clock of the limits and of retention. lib/hub/core/lived-time.ts has the rules. All in milliseconds. */
  const livedTime = table('lived_time', {
    id: int().primaryKey(),
    lived: int().notNull(),
    /** The database's clock when the row was last moved. */
    at: int().notNull(),
    /** The time that retention goes by, and the latest one that it went by, unless that was forgotten. Both move with lived time. */
    believed: int().notNull(),
    latest: int().notNull(),
    /** The time that the database's clock claims, and how long it has been lived with, or, below 0, how long it has been behind. */
    claimed: int().notNull(),
    claimed_for: int().notNull(),
  })

  /** The count of the last commit of each writer. The highest one is that of the database. */
  const commitCounts = table('memory_counts', { writer: text('lane').primaryKey(), count: int().notNull() })

  /** The hubs that serve the database. */
  const hubProcesses = table('hub_processes', {
    id: text().primaryKey(),
    started_at: int().notNull(),
    /** The last one, in lived time, and when that was. */
    beat_at: int().notNull(),
    beat_time: int(),
    /** When it stopped by itself: everything that it wrote is older. */
    left_at: int(),
    /** The ids of the keys of its `CADRE_HUB_KEY`, with spaces between them, the one that it seals with first; null: not said. */
    keys: text(),
    /** By how many milliseconds the clock of its machine is ahead of that of the database; null: not said. */
    clock_ahead: int(),
  })

  /** Keys that sealed values of the database may need. A hub without one of them does not start. */
  const sealingKeys = table('sealing_keys', {
    /** Made from the key, which it does not tell. */
    id: text().primaryKey(),
    created_at: int().notNull(),
  })

  /** Hubs that refused to start with the keys that they have, so that those that serve can tell it. */
  const refusedStarts = table('refused_starts', {
    /** The name of its machine, and its port. */
    hub: text().primaryKey(),
    reason: text().$type<RefusedStart>().notNull(),
    /** In lived time. */
    refused_at: int().notNull(),
  })

  const copies = table('copies', {
    id: text().primaryKey(),
    /**
     * `restored`: the database or its file is another one. `failover`: the same database goes on on another server.
     * `behind`: a daemon has seen a higher count.
     */
    kind: text().$type<'restored' | 'failover' | 'behind'>().notNull(),
    /** The only realm that it concerns; null: all. */
    realm_id: text(),
    found_at: int().notNull(),
    /** The same in lived time; null: it was found before that was counted. */
    found_lived: int(),
    /** The last write in the copy. */
    written_at: int().notNull(),
    /** The count in the copy, and the one from which it goes on. What lies between them was lost. */
    count: int().notNull(),
    raised: int().notNull(),
    /** Whether commits were lost; null: that is not known yet. */
    lost: bool(),
    ended_at: int(),
  })

  /** The hubs and daemons that have to confirm what they know of the time after the copy. */
  const confirmations = table(
    'witnesses',
    {
      copy_id: text()
        .notNull()
        .references(() => copies.id, { onDelete: 'cascade' }),
      id: text().notNull(),
      kind: text().$type<'hub' | 'daemon'>().notNull(),
      name: text().notNull(),
      realm_id: text(),
      last_seen_at: int().notNull(),
      /** Null: the daemon came later, and no job waits for it. */
      offer: json<OfferAtCopy>(),
      /** When it has said the highest count that it knows. */
      compared_at: int(),
      /** When it had sent everything that it has. */
      reported_at: int(),
      /** When a person has decided to go on without it. */
      passed_at: int(),
    },
    row => [primaryKey({ columns: [row.copy_id, row.id] }), index('witnesses_daemon').on(row.id)],
  )

  return { lineage, livedTime, commitCounts, hubProcesses, sealingKeys, refusedStarts, copies, confirmations }
}
