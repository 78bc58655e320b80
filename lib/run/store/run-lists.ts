// Table `runs` as people read it: lists with filters, pages of a tree, the sub-runs of a run. These statements only
// read.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../files/run-id.ts'
import { ERROR_BYTES, VALUE_BYTES } from '../../wire/budget.ts'
import type { RunRow, RunState } from '../core/core.ts'

type Value = string | number | null

/** A run without its large values, but with their number of bytes. */
export interface RunHead extends Omit<RunRow, 'inputs' | 'outputs'> {
  inputs: string | null
  inputs_bytes: number
  outputs: string | null
  outputs_bytes: number | null
}

/** SQLite knows the length of a value without reading it. The order of the columns is that of the table. */
const HEAD = `id, root_id, tree_key, parent_id, parent_position, parent_phase, item, run_name, call_path, call_depth,
  bundle_id, team_key, team, version, state, reason, ${briefError()},
  ${small('inputs')}, octet_length(inputs) AS inputs_bytes, ${small('outputs')}, octet_length(outputs) AS outputs_bytes,
  workspace, from_path, synced, attempt, ending, created_at, started_at, completed_at, deadline, time_left, logged,
  log_sent, log_ended, log_due, handed, settled`

function small(name: string): string {
  return `CASE WHEN octet_length(${name}) <= ${VALUE_BYTES} THEN ${name} END AS ${name}`
}

function briefError(): string {
  const begin = (key: string, most: number) => `substr(json_extract(error, '$.${key}'), 1, ${most})`
  const parts = [`'code', ${begin('code', 100)}`, `'message', ${begin('message', ERROR_BYTES)}`]
  return `CASE WHEN octet_length(error) <= ${ERROR_BYTES} THEN error
    WHEN error IS NOT NULL THEN json_object(${parts.join(', ')}) END AS error`
}

export interface RunFilter {
  state?: string
  /** A whole name, or the part after the scope. */
  team?: string
  /** Part of the name, the team or the id, in any case. */
  search?: string
  root_only?: boolean
  /** Runs whose id begins with this. */
  begins?: string
  /** Runs that started then or later, in epoch milliseconds. */
  since?: number
  /** Runs of these trees, or of all but these. */
  trees?: { only: boolean; roots: readonly string[] }
  limit: number
  offset: number
}

export class RunLists {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Newest first. */
  list(filter: RunFilter): { rows: RunHead[]; total: number } {
    const { state, team, search, root_only, begins, since, trees, limit, offset } = filter
    const conditions: string[] = []
    const values: Value[] = []
    const wanted = (condition: string, ...given: Value[]) => {
      conditions.push(condition)
      values.push(...given)
    }
    if (state !== undefined) wanted('state = ?', state)
    if (team !== undefined) wanted(team.includes('/') ? 'team = ?' : "substr(team, instr(team, '/') + 1) = ?", team)
    if (begins !== undefined) wanted("id >= ? AND id < ? || '~'", begins, begins)
    if (search !== undefined) {
      wanted("instr(lower(coalesce(run_name, '') || char(10) || team || char(10) || id), lower(?))", search)
    }
    if (since !== undefined) wanted('started_at >= ?', since)
    if (trees) {
      wanted(`root_id ${trees.only ? '' : 'NOT '}IN (SELECT value FROM json_each(?))`, JSON.stringify(trees.roots))
    }
    if (root_only) wanted('parent_id IS NULL')
    const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
    // The page is read in the order of ids, whatever index the count takes.
    const rows = this.#db
      .query<RunHead, Value[]>(
        `SELECT ${HEAD} FROM runs ${where.replace('state =', '+state =')} ORDER BY id DESC LIMIT ? OFFSET ?`,
      )
      .all(...values, limit, offset)
    const { total } = this.#db
      .query<{ total: number }, Value[]>(`SELECT count(*) AS total FROM runs ${where}`)
      .get(...values)!
    return { rows, total }
  }

  /** A page of the tree below a tree key, depth first. */
  below(rootId: string, treeKey: string, after: string, limit: number): RunHead[] {
    return this.#db
      .query<RunHead, [string, string, string, number]>(
        `SELECT ${HEAD} FROM runs WHERE root_id = ? AND tree_key > ? AND tree_key < ? || '~' ORDER BY tree_key LIMIT ?`,
      )
      .all(rootId, after, treeKey, limit)
  }

  /** Runs at and below a tree key that were open at `since` or later. */
  openSince(rootId: string, treeKey: string, since: number): RunId[] {
    return this.#db
      .query<{ id: RunId }, [string, string, number]>(
        `SELECT id FROM runs WHERE root_id = ?1 AND tree_key >= ?2 AND tree_key < ?2 || '~'
           AND (completed_at IS NULL OR completed_at >= ?3) ORDER BY tree_key`,
      )
      .all(rootId, treeKey, since)
      .map(row => row.id)
  }

  /** Sub-runs of a run by the phase that started them, in the order of the items. */
  subRuns(
    runId: string,
    limit: number,
  ): { run_id: string; run_name: string | null; state: RunState; position: number }[] {
    return this.#db
      .query<{ run_id: string; run_name: string | null; state: RunState; position: number }, [string, number]>(
        `SELECT id AS run_id, run_name, state, parent_position AS position FROM runs
         WHERE parent_id = ? ORDER BY parent_position, item LIMIT ?`,
      )
      .all(runId, limit)
  }
}
