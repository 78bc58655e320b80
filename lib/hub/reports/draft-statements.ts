// The statements of a draft: what the changes of a batch build on is read for many rows at once, and what has come of
// them is written likewise.

import { and, eq, inArray, isNotNull, or, sql } from 'drizzle-orm'
import { isAmong, prepared, rowsFrom, type Slot } from '../../../db/hub/prepared.ts'
import { rowWriter } from '../../../db/hub/row-writer.ts'
import { adoptable } from '../core/older-copy.ts'

export const runFacts = prepared((store, db, slot: Slot<'ids'>) => {
  const { runs } = store
  const { run_id, realm_id, daemon_id, root_run_id, parent_run_id, parent_phase, call_path, call_depth } = runs
  const { tree_key, team, state, attempt, created_at, completed_at, concurrency_key, beside } = runs
  const { log_lines, log_last, log_missing, log_ended, log_kept, log_bytes, log_cut } = runs
  const place = { run_id, realm_id, daemon_id, root_run_id, parent_run_id, parent_phase, call_path, call_depth }
  const standing = { tree_key, team, state, attempt, created_at, completed_at, concurrency_key, beside }
  const log = { log_lines, log_last, log_missing, log_ended, log_kept, log_bytes, log_cut }
  return db
    .select({ ...place, ...standing, ...log })
    .from(runs)
    .where(isAmong(store, run_id, slot('ids')))
})

/** Who holds the jobs of runs, and whether they waited in an older copy and nobody holds them. */
export const holders = prepared((store, db, slot: Slot<'ids'>) => {
  const { jobs } = store
  const isOwnerless = sql<number>`CASE WHEN ${adoptable(store)} THEN 1 ELSE 0 END`.mapWith(Number)
  return db
    .select({ run_id: jobs.run_id, leased_to: jobs.leased_to, isOwnerless })
    .from(jobs)
    .where(and(isAmong(store, jobs.run_id, slot('ids')), eq(jobs.kind, 'run')))
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

/** The highest revision in each of some trees. The greatest of a tree is found by its index, however large the tree is. */
export const revisions = prepared((store, db, slot: Slot<'roots'>) => {
  const { runs } = store
  const root = store.dialect === 'sqlite' ? sql<string>`t.value` : sql<string>`t.value#>>'{}'`
  return db
    .select({
      root,
      rev: sql<number | null>`(SELECT max(${runs.rev}) FROM ${runs} WHERE ${runs.root_run_id} = ${root})`,
    })
    .from(rowsFrom(store, slot('roots')))
})

/** The columns of runs that only the hub fills, for runs of which nothing else is told. */
export const putNumbers = prepared((store, db, slot: Slot<'rows'>) => {
  const { runs } = store
  return db
    .update(runs)
    .set({
      rev: sql`CAST(t.value->>1 AS bigint)`,
      log_lines: sql`CAST(t.value->>2 AS bigint)`,
      log_last: sql`CAST(t.value->>3 AS bigint)`,
      log_missing: sql`t.value->>4`,
      log_ended: sql`CAST(t.value->>5 AS boolean)`,
      log_kept: sql`CAST(t.value->>6 AS boolean)`,
      log_bytes: sql`CAST(t.value->>7 AS bigint)`,
      log_cut: sql`CAST(t.value->>8 AS boolean)`,
    })
    .from(rowsFrom(store, slot('rows')))
    .where(eq(runs.run_id, sql`t.value->>0`))
})

/** Ends the jobs of runs that have ended. */
export const endJobs = prepared((store, db, slot: Slot<'ids' | 'now'>) => {
  const { jobs } = store
  const held = and(isAmong(store, jobs.run_id, slot('ids')), eq(jobs.kind, 'run'), eq(jobs.state, 'accepted'))
  return db
    .update(jobs)
    .set({ state: 'done', finished_at: sql`${slot('now')}` })
    .where(held)
})

/** Gives a daemon the jobs of runs that it has executed, and the orders about them that waited. */
export const adoptJobs = prepared((store, db, slot: Slot<'runs' | 'daemonId'>) => {
  const { jobs } = store
  const isRun = eq(jobs.kind, 'run')
  const those = or(and(isRun, adoptable(store)), inArray(jobs.state, ['held', 'waiting']))
  const daemon = sql`${slot('daemonId')}`
  return db
    .update(jobs)
    .set({
      daemon_id: daemon,
      state: sql`CASE WHEN ${isRun} THEN 'accepted' ELSE ${jobs.state} END`,
      leased_to: sql`CASE WHEN ${isRun} THEN ${daemon} ELSE ${jobs.leased_to} END`,
      finished_at: null,
    })
    .where(and(isAmong(store, jobs.run_id, slot('runs')), those))
})

/** Ends the held orders to resume runs that were resumed. */
export const endResumptions = prepared((store, db, slot: Slot<'runs' | 'now'>) => {
  const { jobs } = store
  const held = and(isNotNull(jobs.copy_id), inArray(jobs.state, ['held', 'blocked']), eq(jobs.kind, 'resume'))
  return db
    .update(jobs)
    .set({ state: 'done', finished_at: sql`${slot('now')}` })
    .where(and(isAmong(store, jobs.run_id, slot('runs')), held))
})

const TOLD = ['daemon_id', 'run_name', 'team', 'version', 'state', 'reason', 'error', 'inputs', 'outputs'] as const
const TIMES = ['workspace', 'attempt', 'started_at', 'completed_at'] as const
const PLACE = ['realm_id', 'root_run_id', 'parent_run_id', 'parent_phase', 'call_path', 'call_depth'] as const

const LOG = ['log_lines', 'log_last', 'log_missing', 'log_ended', 'log_kept', 'log_bytes', 'log_cut'] as const
const NUMBERS = ['rev', 'beside', ...LOG] as const

export const putRuns = rowWriter({
  table: ({ runs }) => runs,
  columns: ['run_id', ...PLACE, 'tree_key', 'created_at', ...TOLD, ...TIMES, 'deliveries', ...NUMBERS],
  known: { key: ['run_id'], set: [...TOLD, ...TIMES, ...NUMBERS], fill: ['deliveries'] },
})

const OF_PHASE = ['name', 'type', 'agent', 'action', 'state', 'reason', 'attempt', 'depends_on', 'error', 'ok'] as const
const RESULT = ['text', 'data', 'files', 'started_at', 'completed_at', 'beside'] as const

export const putPhases = rowWriter({
  table: ({ phases }) => phases,
  columns: ['run_id', 'index', ...OF_PHASE, ...RESULT],
  known: { key: ['run_id', 'index'], set: [...OF_PHASE, ...RESULT] },
})

export const putLogs = rowWriter({
  table: ({ logs }) => logs,
  columns: ['run_id', 'seq', 'phase', 'at', 'stream', 'text'],
  known: 'kept',
})

export const putEvents = rowWriter({
  table: ({ events }) => events,
  columns: ['run_id', 'name', 'phase', 'at', 'data'],
})

export const putArtifacts = rowWriter({
  table: ({ artifacts }) => artifacts,
  columns: ['run_id', 'path', 'phase', 'name', 'bytes', 'sha256'],
  known: { key: ['run_id', 'path'], set: ['phase', 'name', 'bytes', 'sha256'] },
})

export const putReceipts = rowWriter({
  table: ({ receipts }) => receipts,
  columns: ['run_id', 'phase', 'entry', 'state', 'receipt'],
  known: { key: ['run_id', 'phase', 'entry'], set: ['state', 'receipt'] },
})

const QUESTION = [
  'run_name',
  'phase',
  'entries',
  'kind',
  'reason',
  'prompt',
  'inputs',
  'reviewers',
  'created_at',
] as const
const DECISION = ['state', 'decision', 'decided_by', 'comment', 'decided_at', 'beside'] as const

export const putReviews = rowWriter({
  table: ({ reviews }) => reviews,
  columns: ['id', 'run_id', 'realm_id', ...QUESTION, ...DECISION],
  known: { key: ['id'], set: [...QUESTION, ...DECISION] },
})
