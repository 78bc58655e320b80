// The top runs of a team: what is counted of them, and each with what differs from the last completed run before it.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { and, asc, desc, eq, exists, gt, inArray, isNotNull, lt, type SQL, sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import { firstIdSince } from '../../files/run-ids.ts'
import { tookMs } from '../../wire/records/words.ts'
import { type RunStats, RunTally } from '../../wire/run-stats.ts'
import { type Compared, changesOf } from '../../wire/team-history.ts'
import type { Hub } from '../core/hub.ts'
import { ownerOf } from './large-values.ts'
import { listRuns, ofTeam } from './run-lists.ts'
import type { Where } from './run-texts.ts'
import { type ReportedRun, runRecord } from './runs.ts'

/** So many runs are read at once. In SQLite nothing else of the hub goes on meanwhile, for some ten milliseconds. */
const PART = 2_500

/** Counts the runs of a team in these realms that were asked for since then. */
export async function statsOfTeam(
  store: Store,
  where: Where,
  { team, since, now }: { team: string; since: number; now: number },
): Promise<RunStats> {
  const { db, runs } = store
  const tally = new RunTally(since, now)
  const isOfTeam = ofTeam(store, team, false)
  for (const realm of await realmsWith(store, where, isOfTeam)) {
    for (let after = firstIdSince(since); ; ) {
      const rows = await db
        .select({
          id: runs.run_id,
          state: runs.state,
          at: runs.created_at,
          started_at: runs.started_at,
          completed_at: runs.completed_at,
          lived_ms: runs.lived_ms,
          isCounted: sql<number | boolean>`${runs.run_id} = ${runs.root_run_id} AND ${runs.created_at} >= ${since}`,
        })
        .from(runs)
        .where(and(eq(runs.realm_id, realm), isOfTeam, gt(runs.run_id, after)))
        .orderBy(asc(runs.run_id))
        .limit(PART)
      tally.add(rows.filter(({ isCounted }) => isCounted).map(row => ({ ...row, took: tookMs(row) })))
      if (rows.length < PART) break
      after = rows.at(-1)!.id
      await nextTurn()
    }
  }
  return tally.stats()
}

/** Each of these realms by itself is in the order of its index. */
async function realmsWith({ db, realms, runs }: Store, where: Where, isOfTeam: SQL): Promise<string[]> {
  if ('realm' in where) return [where.realm]
  const some = db
    .select({ one: sql`1` })
    .from(runs)
    .where(and(eq(runs.realm_id, realms.id), isOfTeam))
  const found = await db
    .select({ id: realms.id })
    .from(realms)
    .where(and(where.reached, exists(some)))
  return found.map(({ id }) => id)
}

interface HistoryFilter {
  team: string
  upto?: string
}

/** A page of the runs of a team in these realms, newest first. */
export async function historyOfTeam(
  hub: Hub,
  where: Where,
  filter: HistoryFilter,
  page: { limit: number; offset: number },
) {
  const { store } = hub
  const { rows, ...totals } = await listRuns(hub, where, { ...filter, root_only: true }, page)
  const compared = rows.map(({ row }) => comparedOf(row))
  const olderOf = await completedBefore(store, compared)
  const agents = await agentsOf(store, [...compared, ...olderOf.values()])
  const changes = await changesOf(compared, last => olderOf.get(last.group) ?? null, {
    haveSameInputs: (run, before) => haveSameInputs(store, run.row, before.row),
    haveSameAgents: (run, before) => agents(run.run_id) === agents(before.run_id),
  })
  return { runs: rows.map(({ row, state }, at) => ({ ...runRecord(row, state), ...changes[at]! })), ...totals }
}

type ComparedRow = Compared & { row: ReportedRun }

function comparedOf(row: ReportedRun): ComparedRow {
  const { realm_id, team, run_id, state, version, environment, workspace, daemon_id: daemon, beside } = row
  const inputs = beside?.inputs === undefined ? row.inputs : null
  const known = { group: `${realm_id} ${team}`, run_id, state, version: version ?? '', environment, workspace }
  return { ...known, daemon, inputs, row }
}

/** The last completed run before all of its group, by the group. */
async function completedBefore(store: Store, runsOfPage: readonly ComparedRow[]): Promise<Map<string, ComparedRow>> {
  const { db, runs } = store
  const oldest = new Map(runsOfPage.map(run => [run.group, run.row]))
  const found = [...oldest.values()].map(({ realm_id, team, run_id }) =>
    db
      .select()
      .from(runs)
      .where(
        and(
          eq(runs.realm_id, realm_id),
          ofTeam(store, team, false),
          lt(runs.run_id, run_id),
          eq(runs.run_id, runs.root_run_id),
          // Found by the index of teams, whose order this is.
          sql`${runs.state} || '' = 'completed'`,
        ),
      )
      .orderBy(desc(runs.run_id))
      .limit(1),
  )
  const rows = (await Promise.all(found)).flat().map(comparedOf)
  return new Map(rows.map(run => [run.group, run]))
}

/** The names of the agents of the phases of each of these runs, in one text. */
async function agentsOf({ db, phases }: Store, some: readonly ComparedRow[]): Promise<(id: string) => string> {
  const ids = some.map(({ run_id }) => run_id)
  const rows = await db
    .selectDistinct({ run_id: phases.run_id, agent: phases.agent })
    .from(phases)
    .where(and(inArray(phases.run_id, ids), isNotNull(phases.agent)))
  const byRun = Map.groupBy(rows, ({ run_id }) => run_id)
  return id =>
    (byRun.get(id) ?? [])
      .map(({ agent }) => agent)
      .sort()
      .join(' ')
}

/** Where those of either are large. Without a difference in their bytes, the values themselves are compared. */
async function haveSameInputs({ db, largeValues }: Store, one: ReportedRun, other: ReportedRun): Promise<boolean> {
  if (one.beside?.inputs !== other.beside?.inputs) return false
  const [found] = await db
    .select({ values: sql<number>`count(distinct ${largeValues.value})`.mapWith(Number) })
    .from(largeValues)
    .where(
      and(
        inArray(largeValues.run_id, [one.run_id, other.run_id]),
        eq(largeValues.owner, ownerOf.run),
        eq(largeValues.name, 'inputs'),
      ),
    )
  return found!.values === 1
}
