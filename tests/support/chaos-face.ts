// What the storms need of an engine in addition to its own methods. They read the rows of a home directly, so that the
// result is the same with or without a process that serves it.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Engine } from '../../lib/run/engine.ts'

const LIB = join(import.meta.dir, '../../lib/run')
/**
 * Whether lib/run is the second engine, with `core/` and `store/`. The first one stores no small files in the database
 * and resumes only by phase.
 */
export const SECOND = existsSync(join(LIB, 'core'))

/** The rules that a run database breaks, each with the number of rows that break it. */
export function brokenRules(db: Database): { rule: string; rows: number }[] {
  const { brokenInvariants } = require(join(LIB, SECOND ? 'store/invariants.ts' : 'invariants.ts'))
  return brokenInvariants(db)
}

export interface ResumeOptions {
  from?: string
  failed?: boolean
  inputs?: JsonObject
}

export async function resume(engine: Engine, runId: string, options: ResumeOptions = {}): Promise<void> {
  const face = engine as unknown as { resume(runId: string, options: ResumeOptions | string | null): Promise<unknown> }
  await face.resume(runId, SECOND ? options : (options.from ?? null))
}

/** Opens the database of a home, also while a process serves it. The caller must close it. */
export const openHome = (home: string): Database => openDatabase(join(home, 'daemon.db'))

export interface Question {
  id: string
  run_id: string
  position: number
  kind: 'gate' | 'escalation'
  reason: string
  entries: string
}

export const pendingReviews = (db: Database): Question[] =>
  db
    .query<Question, []>(
      "SELECT id, run_id, position, kind, reason, entries FROM reviews WHERE state = 'pending' ORDER BY created_at, id",
    )
    .all()

/** The possible answers to each kind of question. */
export const ANSWERS = {
  gate: ['approve', 'reject'],
  escalation: ['retry', 'skip', 'complete', 'fail'],
} as const

export interface RootRow {
  id: string
  state: string
  completed_at: number | null
}

/** Top runs, oldest first. */
export const rootsOf = (db: Database): RootRow[] =>
  db.query<RootRow, []>('SELECT id, state, completed_at FROM runs WHERE parent_id IS NULL ORDER BY id').all()

export interface TreeRow {
  id: string
  run_name: string | null
  state: string
  call_depth: number
  parent_phase: string | null
}

/** The runs of a tree, depth first. */
export const treeOf = (db: Database, rootId: string): TreeRow[] =>
  db
    .query<TreeRow, [string]>(
      'SELECT id, run_name, state, call_depth, parent_phase FROM runs WHERE root_id = ? ORDER BY tree_key',
    )
    .all(rootId)
