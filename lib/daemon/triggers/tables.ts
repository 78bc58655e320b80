// The tables of triggers, and the clock by which they are judged.

import type { Database } from 'bun:sqlite'
import { FiringTable } from './firing-table.ts'
import { HookTable } from './hook-table.ts'
import { TriggerTable } from './trigger-table.ts'
import { WatchTable } from './watch-table.ts'

export interface Tables {
  triggers: TriggerTable
  firings: FiringTable
  hooks: HookTable
  watches: WatchTable
  /** The wall clock, by which slots are due. Epoch milliseconds. */
  now(): number
}

export const tablesOf = (db: Database, now: () => number): Tables => ({
  ...{ triggers: new TriggerTable(db), firings: new FiringTable(db), hooks: new HookTable(db) },
  ...{ watches: new WatchTable(db), now },
})
