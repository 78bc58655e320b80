// What tests read from the rows of a home directly, so that the result is the same with or without a process that
// serves it.

import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'

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
