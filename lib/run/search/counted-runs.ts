// What is counted of the runs of a team. The indexes of lists find them, but each of their rows is read, so a thread does
// it in a daemon (reads.ts).

import type { Database } from 'bun:sqlite'
import { firstIdSince } from '../../files/run-ids.ts'
import { type CountedRun, type RunStats, RunTally } from '../../wire/run-stats.ts'
import { ENDED_RUN_STATES, RUN_STATES } from '../../wire/states.ts'
import { RunLists, type Statement } from '../store/store.ts'

export interface StatsFilter {
  /** A whole name, or the part after the scope. */
  team: string
  /** Only runs that were asked for then or later, in epoch milliseconds. */
  since: number
  now: number
}

const COLUMNS = `state, created_at AS at,
  CASE WHEN started_at IS NULL OR completed_at IS NULL THEN NULL
    ELSE coalesce(lived_ms, max(0, completed_at - started_at)) END AS took`
const AMONG = 'IN (SELECT value FROM json_each(?))'
const SINCE = 'id >= ? AND created_at >= ?'

/** Counts the top runs of a team. */
export function statsOfTeam(db: Database, { team, since, now }: StatsFilter): RunStats {
  const tally = new RunTally(since, now)
  for (const { sql, values } of statsStatements(db, { team, since })) {
    tally.add(db.query<CountedRun, Statement['values']>(sql).iterate(...values))
  }
  return tally.stats()
}

/** One for those that have ended, by their groups, and one for the few that have not. */
export function statsStatements(db: Database, { team, since }: Omit<StatsFilter, 'now'>): Statement[] {
  const [isOf] = new RunLists(db).ofGroups({ team, root_only: true })
  const begin = [firstIdSince(since), since]
  const open = RUN_STATES.filter(state => !ENDED_RUN_STATES.includes(state))
  return [
    {
      sql: `SELECT ${COLUMNS} FROM runs INDEXED BY runs_by_group
        WHERE completed_at IS NOT NULL AND ${isOf!.sql} AND state ${AMONG} AND ${SINCE}`,
      values: [...isOf!.values, JSON.stringify(ENDED_RUN_STATES), ...begin],
    },
    {
      sql: `SELECT ${COLUMNS} FROM runs INDEXED BY runs_open_by_state
        WHERE completed_at IS NULL AND state ${AMONG} AND (parent_id IS NULL) = 1 AND ${isOf!.sql} AND ${SINCE}`,
      values: [JSON.stringify(open), ...isOf!.values, ...begin],
    },
  ]
}
