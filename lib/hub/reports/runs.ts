// Runs as the hub shows them. Their state comes from the daemons. The hub itself knows only the queue before that, and
// that the runs of a silent daemon count as crashed, which is not final.

import { and, eq, inArray, isNull, lt, notInArray, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Static } from 'typebox'
import { isLive } from '../../../db/hub/run-tables.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { matches } from '../../schema/schema.ts'
import { Uuid } from '../../wire/parts.ts'
import { DeliveryRecord, type TreeView } from '../../wire/records/run-records.ts'
import { type StartedBy, UNKNOWN_STARTER } from '../../wire/records/started-by.ts'
import { ENDED_RUN_STATES, RUN_STATES } from '../../wire/states.ts'
import type { UserCaller } from '../access/callers.ts'
import { CRASHED_MS } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import { runWithLargeValues } from './large-values.ts'
import { isAfter, isBelow, treeOrder } from './tree-order.ts'

type TreeEntry = Static<typeof TreeView>['runs'][number]
export type ReportedRun = Tables['runs']['$inferSelect']

/** The daemon of a run is silent. A run that waits has none. `now` is in lived time, here and below. */
const isSilent = ({ daemons }: Store, now: number): SQL => lt(daemons.last_seen_at, now - CRASHED_MS)

/** The state that is shown: `crashed` while a run has not ended and its daemon is silent. */
export function stateColumn(store: Store, now: number): SQL<string> {
  const { runs } = store
  const live = and(notInArray(runs.state, [...ENDED_RUN_STATES]), isSilent(store, now))
  return sql<string>`CASE WHEN ${live} THEN 'crashed' ELSE ${runs.state} END`
}

/**
 * The runs that are shown with `state`, said in a way that leads to them by the index of states. Those that have ended
 * are found without their daemons, because a list counts all of them.
 */
export function inState(store: Store, state: string, now: number): SQL | undefined {
  const { runs } = store
  if (ENDED_RUN_STATES.includes(state)) return eq(runs.state, state)
  if (state === 'crashed') return and(isLive(runs), isSilent(store, now))
  return and(eq(runs.state, state), sql`${isSilent(store, now)} IS NOT TRUE`)
}

/**
 * A run as lists and events have it: its row without the columns that only the hub uses. Of inputs and outputs that are
 * large it has the number of bytes.
 */
export function runRecord(
  { tree_key: _, deliveries: __, rev: ___, kept_since: ____, job_id, ...row }: ReportedRun,
  state = row.state,
) {
  const { concurrency_key, log_lines, log_last, log_missing, log_ended, log_kept, ...rest } = row
  const { log_bytes, log_cut, beside, inputs, version, starter_kind, starter_name, ...shown } = rest
  const { inputs: inputs_bytes, outputs: outputs_bytes } = beside ?? {}
  return {
    ...shown,
    version: version ?? '',
    started_by: starterOfRow(row),
    inputs: inputs_bytes === undefined ? inputs : null,
    ...(inputs_bytes !== undefined && { inputs_bytes }),
    ...(outputs_bytes !== undefined && { outputs_bytes }),
    job_id,
    state,
  }
}

/** Null for a sub-run. */
export const starterOfRow = (row: Pick<ReportedRun, 'parent_run_id' | 'started_by'>): StartedBy | null =>
  row.parent_run_id === null ? (row.started_by ?? UNKNOWN_STARTER) : null

/** A run as `runs/get` has it. */
export async function wholeRecord(store: Store, found: { row: ReportedRun; state: string }) {
  const row = { ...(await runWithLargeValues(store, store.db, found.row)), beside: null }
  return {
    ...runRecord(row, found.state),
    inputs: row.inputs,
    deliveries: (row.deliveries ?? []).filter(each => matches(DeliveryRecord, each)),
  }
}

/** A run with the state that is shown. */
export async function shownRun(
  { store, lived }: Hub,
  where: SQL,
  db = store.db,
): Promise<{ row: ReportedRun; state: string } | null> {
  const { runs, daemons } = store
  const [found] = await db
    .select({ row: runs, state: stateColumn(store, lived()) })
    .from(runs)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(where)
  return found ?? null
}

/** A run that the caller may read. A run that the caller may not see gives the same error as a missing one. */
export async function readableRun(hub: Hub, caller: UserCaller, runId: string, db = hub.store.db) {
  if (!matches(Uuid, runId)) throw new CadreError('invalid_request', `run_id: expected a UUID, got ${runId}`)
  const { store, lived } = hub
  const { runs, daemons } = store
  const { columns, ofRealm, ofOrg, ofMember } = caller.rolesIn(runs.realm_id)
  const [found] = await db
    .select({ row: runs, state: stateColumn(store, lived()), ...columns })
    .from(runs)
    .innerJoin(store.realms, ofRealm)
    .leftJoin(store.orgMembers, ofOrg)
    .leftJoin(store.realmMembers, ofMember)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(eq(runs.run_id, runId))
  const missing = new CadreError('not_found', `no run ${runId} that you may see`)
  if (!found) throw missing
  const { row, state, ...roles } = found
  try {
    return { row, state, realm: caller.realmOf(row.realm_id, roles) }
  } catch (error) {
    throw error instanceof CadreError && error.code === 'not_found' ? missing : error
  }
}

/** The highest revision of a change in a tree. */
export async function lastRev({ runs }: Store, db: Db, rootId: string): Promise<number> {
  const [row] = await db
    .select({ rev: sql<number>`coalesce(max(${runs.rev}), 0)`.mapWith(Number) })
    .from(runs)
    .where(eq(runs.root_run_id, rootId))
  return row!.rev
}

const TREE_PAGE = 500

/** Every run of the tree of a run, depth first. Reads a range of the index (root_run_id, tree_key), one page at a time. */
export async function* treeEntries({ store, lived }: Hub, runId: string): AsyncGenerator<TreeEntry> {
  const { runs, daemons, db } = store
  const one = alias(runs, 'one')
  const root = db.select({ id: one.root_run_id }).from(one).where(eq(one.run_id, runId))
  for (let after: string | null = null; ; ) {
    const rows: (TreeEntry & { tree_key: string })[] = await db
      .select({
        run_id: runs.run_id,
        run_name: runs.run_name,
        state: stateColumn(store, lived()),
        call_path: runs.call_path,
        call_depth: runs.call_depth,
        parent_phase: runs.parent_phase,
        started_at: runs.started_at,
        completed_at: runs.completed_at,
        tolerated: runs.tolerated,
        tree_key: runs.tree_key,
      })
      .from(runs)
      .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
      .where(and(eq(runs.root_run_id, root), after === null ? undefined : isAfter(store, after)))
      .orderBy(...treeOrder(store))
      .limit(TREE_PAGE)
    for (const { tree_key: _, ...entry } of rows) yield entry
    if (rows.length < TREE_PAGE) return
    after = rows.at(-1)!.tree_key
  }
}

/** The runs that the phases of `parent` started, in order. */
export function subRuns(store: Store, parent: ReportedRun, now: number) {
  const { runs, daemons, db } = store
  return db
    .select({
      run_id: runs.run_id,
      run_name: runs.run_name,
      state: stateColumn(store, now),
      parent_phase: runs.parent_phase,
    })
    .from(runs)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(
      and(
        eq(runs.root_run_id, parent.root_run_id),
        isBelow(store, parent.tree_key, false),
        eq(runs.parent_run_id, parent.run_id),
      ),
    )
    .orderBy(...treeOrder(store))
}

/**
 * Whether a run of these realms has not ended; such a realm cannot be deleted. `realmIds` is a list of ids or a query.
 */
export async function hasLiveRuns({ store }: Hub, tx: Db, realmIds: string[] | SQLWrapper): Promise<boolean> {
  const { runs } = store
  // A run in a state that only its daemon knows goes on as long as it says no end.
  const isUnknown = and(isNull(runs.completed_at), notInArray(runs.state, [...RUN_STATES]))
  const live = and(inArray(runs.realm_id, realmIds as string[]), or(isLive(runs), isUnknown))
  const rows = await tx.select({ id: runs.run_id }).from(runs).where(live).limit(1)
  return rows.length > 0
}

export function liveRunsError(what: string): CadreError {
  return new CadreError(
    'conflict',
    `${what} has runs that have not ended; cancel them or wait for them, then delete it`,
  )
}
