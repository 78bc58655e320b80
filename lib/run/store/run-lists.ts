// Table `runs` as people read it: lists with filters, pages of a tree, the sub-runs of a run. These statements only
// read. A list costs the same however many runs there are: each of its filters is an index in the order of the list.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../files/run-id.ts'
import { firstIdSince } from '../../files/run-ids.ts'
import { ERROR_BYTES, MOST_COUNTED, VALUE_BYTES } from '../../wire/budget.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { RUN_STATES, type RunRow, type RunState } from '../core/core.ts'
import { type GroupFilter, RunGroups } from './run-groups.ts'

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
  log_sent, log_ended, log_due, handed, settled, started_by, environment, review, lived_ms, lived_since,
  tolerated`

function small(name: string): string {
  return `CASE WHEN octet_length(${name}) <= ${VALUE_BYTES} THEN ${name} END AS ${name}`
}

function briefError(): string {
  const begin = (key: string, most: number) => `substr(json_extract(error, '$.${key}'), 1, ${most})`
  const parts = [`'code', ${begin('code', 100)}`, `'message', ${begin('message', ERROR_BYTES)}`]
  return `CASE WHEN octet_length(error) <= ${ERROR_BYTES} THEN error
    WHEN error IS NOT NULL THEN json_object(${parts.join(', ')}) END AS error`
}

export interface RunFilter extends GroupFilter {
  state?: string
  /** Runs whose id begins with this. */
  begins?: string
  /** Runs that started then or later, in epoch milliseconds. */
  since?: number
  /** Runs whose ids are not greater than this. */
  upto?: string
  /** Runs whose ids are greater than this. */
  newer_than?: string
  /** Runs of these trees, or of all but these. */
  trees?: { only: boolean; roots: readonly string[] }
  limit: number
  offset: number
}

/** What a run executes, and in which environment. */
export interface Executed {
  bundle_id: string
  team: string
  environment: string | null
}

/** Takes about a millisecond. */
const COUNTED_AT_ONCE = 10_000

export interface Statement {
  sql: string
  values: Value[]
}

/** Runs that began more than a minute after the time in their id are in the index `runs_late`. */
export const LATE = "id < format('%08x-%04x', (started_at - 60000) >> 16, (started_at - 60000) & 65535)"

export class RunLists {
  readonly #db: Database
  readonly #groups: RunGroups

  constructor(db: Database, groups = new RunGroups(db)) {
    this.#db = db
    this.#groups = groups
  }

  /** Newest first. At most `MOST_COUNTED + 1` runs are counted. */
  list(filter: RunFilter): { rows: RunHead[]; found: number } {
    const asked = this.statements(filter)
    if (!asked) return { rows: [], found: 0 }
    const { page, count } = asked
    const ids = this.#db.query<{ id: string }, Value[]>(page.sql).all(...page.values)
    const { found } = this.#db.query<{ found: number }, Value[]>(count.sql).get(...count.values)!
    return { rows: this.heads(ids.map(({ id }) => id)), found }
  }

  /** Whether a list is of so many groups that looking at each of them takes long. */
  isOfMany(filter: GroupFilter): boolean {
    return isOfGroups(filter) && this.#groups.that(filter, MANY_GROUPS).length === MANY_GROUPS
  }

  /** These runs, newest first. */
  heads(ids: readonly string[]): RunHead[] {
    return this.#db
      .query<RunHead, [string]>(
        `SELECT ${HEAD} FROM runs WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id DESC`,
      )
      .all(JSON.stringify(ids))
  }

  /**
   * What a list asks: the ids of its page and the number of all. Each part of the union reads ranges of an index in the
   * order of the ids, and stops when it has enough. Null where no run can be in the list.
   */
  statements(filter: RunFilter): { page: Statement; count: Statement } | null {
    const { limit, offset } = filter
    const most = offset + limit
    const parts = this.#parts(filter)
    if (parts.length === 0) return null
    const newest = unionOf(parts.map(part => part.newest(most)))
    // Each part is counted alone: a union would put each of its rows through two more loops.
    const counts = parts.map(({ some }) => `(SELECT count(*) FROM (${some.sql}))`)
    return {
      page: {
        sql: `SELECT id FROM (${newest.sql}) ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}`,
        values: newest.values,
      },
      count: {
        sql: `SELECT min(${ENOUGH}, ${counts.join(' + ')}) AS found`,
        values: parts.flatMap(({ some }) => some.values),
      },
    }
  }

  /** The ranges of indexes that together are the list, each with what is left to check of its rows. */
  #parts(filter: RunFilter): Part[] {
    const { state, root_only, since, trees } = filter
    if (trees?.only && trees.roots.length === 0) return []
    const groups = isOfGroups(filter) ? this.#groups.that(filter) : null
    if (groups?.length === 0) return []
    const begun = since === undefined ? null : firstIdSince(since)
    const rest = [...restOf(filter), ...(begun === null ? [] : [{ sql: 'id >= ?', values: [begun] }])]
    const states = state === undefined ? RUN_STATES : [state]
    const ended = states.filter(each => !isOpen(each))
    return [
      ...rangesOf(filter, groups).map(({ index, conditions }) => partOf(index, [...conditions, ...rest])),
      ...(groups && ended.length > 0 ? [partOfGroups(groups, ended, rest)] : []),
      ...(begun === null
        ? []
        : [
            partOf('runs_late', [
              { sql: `${LATE} AND id < ?`, values: [begun] },
              ...(state === undefined ? [] : [isIn(state)]),
              ...(root_only ? [isTop] : []),
              ...(groups ? [isOf(groups)] : []),
              ...restOf(filter),
            ]),
          ]),
    ]
  }

  /** What top runs that began since then execute, and in which environment: a part of the runs at a time, each once. */
  *begunSince(since: number): Generator<Executed[]> {
    const columns = 'DISTINCT bundle_id, team, environment'
    const rest = 'parent_id IS NULL AND coalesce(started_at, created_at) >= ?'
    let after = firstIdSince(since)
    yield this.#db
      .query<Executed, Value[]>(`SELECT ${columns} FROM runs INDEXED BY runs_late WHERE ${LATE} AND id < ? AND ${rest}`)
      .all(after, since)
    for (;;) {
      const { last } = this.#db
        .query<{ last: string | null }, Value[]>(
          `SELECT max(id) AS last FROM (SELECT id FROM runs WHERE parent_id IS NULL AND id > ? ORDER BY id LIMIT ${COUNTED_AT_ONCE})`,
        )
        .get(after)!
      if (last === null) return
      yield this.#db
        .query<Executed, Value[]>(`SELECT ${columns} FROM runs WHERE id > ? AND id <= ? AND ${rest}`)
        .all(after, last, since)
      after = last
    }
  }

  /** The teams of runs with this whole name, or with it after any scope. */
  teamsCalled(team: string): string[] {
    return this.#groups.teamsCalled(team)
  }

  /** The condition that a list puts on the team of a run and on what started it. */
  ofGroups(filter: GroupFilter): Statement[] {
    return isOfGroups(filter) ? [isOf(this.#groups.that(filter))] : []
  }

  /** The number of runs in a state, a part at a time. */
  *counts(state: RunState): Generator<number> {
    for (const isTop of [0, 1]) {
      for (let after: string | null = ''; after !== null; ) {
        const { count, last }: { count: number; last: string | null } = this.#db
          .query<{ count: number; last: string | null }, Value[]>(
            `SELECT count(*) AS count, max(id) AS last FROM (
               SELECT id FROM runs INDEXED BY ${isOpen(state) ? 'runs_open_by_state' : 'runs_by_state'}
               WHERE completed_at IS ${isOpen(state) ? 'NULL' : 'NOT NULL'} AND state = ? AND (parent_id IS NULL) = ? AND id > ? ORDER BY id LIMIT ${COUNTED_AT_ONCE})`,
          )
          .get(state, isTop, after)!
        yield count
        after = count < COUNTED_AT_ONCE ? null : last
      }
    }
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

  /** Whether two runs have the same inputs, however large. */
  haveSameInputs(one: string, other: string): boolean {
    const inputs = '(SELECT inputs FROM runs WHERE id = ?)'
    return (
      this.#db.query<{ same: number }, [string, string]>(`SELECT ${inputs} IS ${inputs} AS same`).get(one, other)!
        .same === 1
    )
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

interface Range {
  index: string
  conditions: Statement[]
}

/**
 * The ranges for what has to be equal, without the ended runs of groups. Open runs are few: of them one index has the
 * state, and no more.
 */
function rangesOf({ state, root_only }: RunFilter, groups: readonly number[] | null): Range[] {
  if (state === undefined && !groups) {
    if (root_only) return [{ index: 'runs_roots', conditions: [isTop] }]
    return [{ index: 'sqlite_autoindex_runs_1', conditions: [] }]
  }
  const states = state === undefined ? RUN_STATES : [state]
  const byState = (index: string, some: readonly string[], more: readonly Statement[]): Range[] =>
    some.flatMap(each =>
      (root_only ? [1] : [0, 1]).map(top => ({
        index,
        conditions: [isIn(each), { sql: '(parent_id IS NULL) = ?', values: [top] }, ...more],
      })),
    )
  const open = byState('runs_open_by_state', states.filter(isOpen), [
    { sql: 'completed_at IS NULL', values: [] },
    ...(groups ? [isOf(groups)] : []),
  ])
  if (groups) return open
  return [
    ...open,
    ...byState(
      'runs_by_state',
      states.filter(each => !isOpen(each)),
      [hasEnded],
    ),
  ]
}

/** Some of the runs of a list. */
interface Part {
  /** The ids of the newest of them. */
  newest(most: number): Statement
  /** As many as are counted, in any order. */
  some: Statement
}

function partOf(index: string, conditions: readonly Statement[]): Part {
  const { sql, values } = from(index, conditions)
  return {
    newest: most => ({ sql: `SELECT id FROM (${sql} ORDER BY id DESC LIMIT ${most})`, values }),
    some: { sql: `${sql} LIMIT ${ENOUGH}`, values },
  }
}

/**
 * The ended runs of groups. There may be thousands of groups, so the newest run of each is found first. The newest `most` of
 * these bound what else is read: no run of a page is of another group, or older than the last of them.
 */
function partOfGroups(groups: readonly number[], states: readonly string[], rest: readonly Statement[]): Part {
  const each = [JSON.stringify(groups), JSON.stringify(states)]
  const amongThem = { sql: 'state IN (SELECT value FROM json_each(?))', values: [JSON.stringify(states)] }
  const all = from('runs_by_group', [hasEnded, isOf(groups), amongThem, ...rest])
  const one = from('runs_by_group', [hasEnded, { sql: 'group_id = g.value AND state = s.value', values: [] }, ...rest])
  const those = { sql: 'group_id = firsts.group_id AND state = firsts.state AND id >= last', values: [] }
  const more = from('runs_by_group', [hasEnded, those, ...rest])
  return {
    newest: most => ({
      sql: `SELECT value AS id FROM (
          WITH found AS MATERIALIZED (
            SELECT g.value AS group_id, s.value AS state, (${one.sql} ORDER BY id DESC LIMIT 1) AS first
            FROM json_each(?) AS g, json_each(?) AS s ORDER BY first DESC LIMIT ${most}
          )
          SELECT group_id, state, (SELECT iif(count(first) = ${most}, min(first), '') FROM found) AS last FROM found
        ) AS firsts, json_each((SELECT json_group_array(id) FROM (${more.sql} ORDER BY id DESC LIMIT ${most})))`,
      values: [...one.values, ...each, ...more.values],
    }),
    some: { sql: `${all.sql} LIMIT ${ENOUGH}`, values: all.values },
  }
}

const from = (index: string, conditions: readonly Statement[]): Statement => {
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`
  return { sql: `SELECT id FROM runs INDEXED BY ${index}${where}`, values: conditions.flatMap(({ values }) => values) }
}

const unionOf = (all: readonly Statement[]): Statement => ({
  sql: all.map(({ sql }) => sql).join(' UNION ALL '),
  values: all.flatMap(({ values }) => values),
})

const isTop: Statement = { sql: 'parent_id IS NULL', values: [] }
const hasEnded: Statement = { sql: 'completed_at IS NOT NULL', values: [] }
const isIn = (state: string): Statement => ({ sql: 'state = ?', values: [state] })
const isOf = (groups: readonly number[]): Statement => ({
  sql: 'group_id IN (SELECT value FROM json_each(?))',
  values: [JSON.stringify(groups)],
})
const isOpen = (state: string): boolean => !ENDED_RUN_STATES.includes(state)

const isOfGroups = ({ team, started_by }: GroupFilter): boolean => team !== undefined || started_by !== undefined

/** As many runs as are counted. */
const ENOUGH = MOST_COUNTED + 1
/** A look at so many groups takes about five milliseconds. */
const MANY_GROUPS = 1_000

/** What is left to check of a row that an index found by state, team, or being a top run. */
export function restOf({ begins, since, upto, newer_than, trees }: Partial<RunFilter>): Statement[] {
  const rest: Statement[] = []
  if (upto !== undefined) rest.push({ sql: 'id <= ?', values: [upto] })
  if (newer_than !== undefined) rest.push({ sql: 'id > ?', values: [newer_than] })
  if (begins !== undefined) rest.push({ sql: "id >= ? AND id < ? || '~'", values: [begins, begins] })
  if (since !== undefined) rest.push({ sql: 'started_at >= ?', values: [since] })
  if (trees && (trees.only || trees.roots.length > 0)) {
    const sql = `root_id ${trees.only ? '' : 'NOT '}IN (SELECT value FROM json_each(?))`
    rest.push({ sql, values: [JSON.stringify(trees.roots)] })
  }
  return rest
}
