// The statements of a report: what its changes build on is read for many rows at once, and what has come of them is
// written likewise. Who fills a column of runs is said here, and nowhere else.

import { and, eq, isNull, sql } from 'drizzle-orm'
import { batchUpdater, batchWriter } from '../../../db/hub/batch-writer.ts'
import { isAmong, prepared, rowsFrom, type Slot } from '../../../db/hub/prepared.ts'
import { pick } from '../../pick.ts'
import { isAdoptable } from '../core/job-rows.ts'
import { LOG_COLUMNS } from './log-state.ts'
import type { ReportedRun } from './runs.ts'

/** Columns that the hub fills when it dispatches a run. Reports leave them as they are. */
const OF_DISPATCH = ['job_id', 'concurrency_key'] as const
/** Columns that the hub counts as it applies reports. */
const COUNTED = ['rev', ...LOG_COLUMNS] as const
/** What a daemon reports of a run: all other columns, large values included. */
export type RunReport = Omit<ReportedRun, (typeof OF_DISPATCH | typeof COUNTED)[number] | 'beside'>

/** What changes build on of a run. What it was given and what came of it may be large, and is only written. */
export const REPORTED_FACTS = [
  ...(['run_id', 'realm_id', 'daemon_id', 'root_run_id', 'parent_run_id', 'parent_phase', 'call_path'] as const),
  ...(['call_depth', 'tree_key', 'team', 'state', 'attempt', 'created_at', 'completed_at'] as const),
] as const
const FACTS = [...REPORTED_FACTS, 'concurrency_key', 'beside', ...LOG_COLUMNS] as const
export type RunFacts = Pick<ReportedRun, (typeof FACTS)[number]>

export const runFacts = prepared((store, db, slot: Slot<'ids'>) => {
  const { runs } = store
  return db
    .select(pick(runs, FACTS))
    .from(runs)
    .where(isAmong(store, runs.run_id, slot('ids')))
})

/** Who holds the jobs of runs that have no daemon, and whether they waited in an older copy and nobody holds them. */
export const jobHolders = prepared((store, db, slot: Slot<'ids'>) => {
  const { jobs, runs } = store
  const daemon = sql`(SELECT ${runs.daemon_id} FROM ${runs} WHERE ${runs.run_id} = ${jobs.run_id})`
  const isOwnerless = sql<number>`CASE WHEN ${isAdoptable(store)} THEN 1 ELSE 0 END`.mapWith(Number)
  return db
    .select({ run_id: jobs.run_id, leased_to: jobs.leased_to, isOwnerless })
    .from(jobs)
    .where(and(isAmong(store, jobs.run_id, slot('ids')), eq(jobs.kind, 'run'), isNull(daemon)))
})

export const phaseAttempts = prepared((store, db, slot: Slot<'keys'>) => {
  const { phases } = store
  const key = and(eq(phases.run_id, sql`t.value->>0`), eq(phases.index, sql`CAST(t.value->>1 AS bigint)`))
  return db
    .select({ run_id: phases.run_id, index: phases.index, attempt: phases.attempt, beside: phases.beside })
    .from(rowsFrom(store, slot('keys')))
    .innerJoin(phases, key)
})

export const reviewStates = prepared((store, db, slot: Slot<'ids'>) => {
  const { reviews } = store
  return db
    .select({ id: reviews.id, run_id: reviews.run_id, state: reviews.state, beside: reviews.beside })
    .from(reviews)
    .where(isAmong(store, reviews.id, slot('ids')))
})

/** The highest revision in the trees of runs. The greatest of a tree is found by its index, however large the tree is. */
export const treeRevisions = prepared((store, db, slot: Slot<'ids'>) => {
  const { runs } = store
  const roots = db
    .selectDistinct({ root: sql<string>`${runs.root_run_id}`.as('root') })
    .from(runs)
    .where(isAmong(store, runs.run_id, slot('ids')))
    .as('roots')
  // A column of a subquery would stand here without its name, and be taken for that of the table.
  const rev = sql<number>`(SELECT max(${runs.rev}) FROM ${runs} WHERE ${runs.root_run_id} = roots.root)`
  return db.select({ root: roots.root, rev }).from(roots)
})

/** For runs of which only details were reported. */
export const updateCounted = batchUpdater(({ runs }) => runs, { key: 'run_id', set: COUNTED })

export const putRuns = batchWriter(({ runs }) => runs, {
  left: OF_DISPATCH,
  key: ['run_id'],
  keeps: [
    ...(['realm_id', 'root_run_id', 'parent_run_id', 'parent_phase', 'call_path', 'call_depth'] as const),
    ...(['tree_key', 'created_at', 'started_by', 'starter_kind', 'starter_name'] as const),
  ],
  keepsForNull: ['deliveries', 'environment'],
})

export const putExplanations = batchWriter(({ explanations }) => explanations, { key: ['run_id'] })
export const putPhases = batchWriter(({ phases }) => phases, { key: ['run_id', 'index'] })
export const putLogs = batchWriter(({ logs }) => logs, { key: ['run_id', 'seq'], keeps: 'all' })
export const putEvents = batchWriter(({ events }) => events, { left: ['id'] })
export const putArtifacts = batchWriter(({ artifacts }) => artifacts, { key: ['run_id', 'path'] })
export const putReceipts = batchWriter(({ receipts }) => receipts, { key: ['run_id', 'phase', 'entry'] })
export const putReviews = batchWriter(({ reviews }) => reviews, {
  key: ['id'],
  keeps: ['run_id', 'realm_id', 'placed_at'],
})
