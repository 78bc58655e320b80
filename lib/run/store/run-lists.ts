// Table `runs` as people read it: lists with filters, pages of a tree, the sub-runs of a run. These statements only
// read. A list costs the same however many runs there are: each of its filters is an index in the order of the list.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../files/run-id.ts'
import { ERROR_BYTES, MOST_COUNTED, VALUE_BYTES } from '../../wire/budget.ts'
import { starterOf } from '../../wire/records/started-by.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { RUN_STATES, type RunRow, type RunState } from '../core/core.ts'

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
  log_sent, log_ended, log_due, handed, settled, started_by`

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
  root_only?: boolean
  /** What started them: a kind, or a kind and a name, such as `schedule:nightly`. Only top runs have one. */
  started_by?: string
  /** Runs whose id begins with this. */
  begins?: string
  /** Runs that started then or later, in epoch milliseconds. */
  since?: number
  /** Runs of these trees, or of all but these. */
  trees?: { only: boolean; roots: readonly string[] }
  limit: number
  offset: number
}

/** Takes about a millisecond. */
const COUNTED_AT_ONCE = 10_000

export interface Statement {
  sql: string
  values: Value[]
}

/** Runs that began later than this after the time in their id are in the index `runs_late`. */
const LATE_MS = 60_000
export const LATE = "id < format('%08x-%04x', (started_at - 60000) >> 16, (started_at - 60000) & 65535)"

export class RunLists {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Newest first. At most `MOST_COUNTED + 1` runs are counted. */
  list(filter: RunFilter): { rows: RunHead[]; found: number } {
    const { page, count } = this.statements(filter)
    if (!page || !count) return { rows: [], found: 0 }
    const ids = this.#db.query<{ id: string }, Value[]>(page.sql).all(...page.values)
    const { found } = this.#db.query<{ found: number }, Value[]>(count.sql).get(...count.values)!
    return { rows: this.heads(ids.map(({ id }) => id)), found }
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
   * What a list asks: the ids of its page and the number of all. Each part of the union reads one range of an index in the
   * order of the ids, and stops when it has enough. Absent where no run can be in the list.
   */
  statements(filter: RunFilter): { page?: Statement; count?: Statement } {
    const { limit, offset } = filter
    const parts = this.#parts(filter)
    if (parts.length === 0) return {}
    const union = (most: number, order: string) => ({
      sql: parts.map(({ sql }) => `SELECT id FROM (${sql} ${order} LIMIT ${most})`).join(' UNION ALL '),
      values: parts.flatMap(({ values }) => values),
    })
    const page = union(offset + limit, 'ORDER BY id DESC')
    const count = union(MOST_COUNTED + 1, '')
    return {
      page: { ...page, sql: `SELECT id FROM (${page.sql}) ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}` },
      count: {
        ...count,
        sql: `SELECT count(*) AS found FROM (SELECT 1 FROM (${count.sql}) LIMIT ${MOST_COUNTED + 1})`,
      },
    }
  }

  /** The ranges of indexes that together are the list, each with what is left to check of its rows. */
  #parts(filter: RunFilter): Statement[] {
    const { since, trees } = filter
    if (trees?.only && trees.roots.length === 0) return []
    const rest = restOf(filter)
    const ranges = this.#ranges(filter)
    const part = (index: string, ...conditions: Statement[]): Statement => {
      const where = [...conditions, ...rest]
      const text = where.length === 0 ? '' : `WHERE ${where.map(({ sql }) => sql).join(' AND ')}`
      return { sql: `SELECT id FROM runs INDEXED BY ${index} ${text}`, values: where.flatMap(({ values }) => values) }
    }
    if (since === undefined) return ranges.map(({ index, conditions }) => part(index, ...conditions))
    const from = firstIdSince(since)
    return ranges.flatMap(({ index, conditions }) => [
      part(index, ...conditions, { sql: 'id >= ?', values: [from] }),
      part('runs_late', { sql: `${LATE} AND id < ?`, values: [from] }, ...conditions),
    ])
  }

  /** The ranges of indexes for what has to be equal. Open runs are few: of them one index has the state, and no more. */
  #ranges({ state, team, root_only, started_by }: RunFilter): { index: string; conditions: Statement[] }[] {
    if (state === undefined && team === undefined && started_by === undefined) {
      if (root_only) return [{ index: 'runs_roots', conditions: [isTop] }]
      return [{ index: 'sqlite_autoindex_runs_1', conditions: [] }]
    }
    const states = state === undefined ? RUN_STATES : [state]
    const tops = root_only || started_by !== undefined ? [1] : [0, 1]
    const starter = started_by === undefined ? [] : startedConditions(started_by)
    const called = team === undefined ? [] : [isCalled(team)]
    const inStates = (index: string, isWanted: (state: string) => boolean, more: Statement[]) =>
      states.filter(isWanted).flatMap(each =>
        tops.map(top => ({
          index,
          conditions: [
            { sql: 'state = ?', values: [each] },
            { sql: '(parent_id IS NULL) = ?', values: [top] },
            ...more,
          ],
        })),
      )
    const open = inStates('runs_open_by_state', isOpen, [
      { sql: 'completed_at IS NULL', values: [] },
      ...starter,
      ...called,
    ])
    const { index, ofTeam } = indexesFor(started_by)
    const ended = { sql: 'completed_at IS NOT NULL', values: [] }
    if (team === undefined) return [...open, ...inStates(index, each => !isOpen(each), [ended, ...starter])]
    return [
      ...open,
      ...this.#endedTeams(team).flatMap(name =>
        inStates(ofTeam, each => !isOpen(each), [ended, { sql: 'team = ?', values: [name] }, ...starter]),
      ),
    ]
  }

  /** The teams of runs with this whole name, or with it after any scope. */
  teamsCalled(team: string): string[] {
    if (team.startsWith('@')) return [team]
    const { sql, values } = isCalled(team)
    const open = this.#db
      .query<{ team: string }, Value[]>(`SELECT DISTINCT team FROM runs WHERE completed_at IS NULL AND ${sql}`)
      .all(...values)
    return [...new Set([...this.#endedTeams(team), ...open.map(row => row.team)])]
  }

  /** The same of ended runs. Jumps from team to team in the index. */
  #endedTeams(team: string): string[] {
    if (team.startsWith('@')) return [team]
    const { sql, values } = isCalled(team)
    const next = (after: string) =>
      `SELECT min(team) FROM runs INDEXED BY runs_by_team WHERE completed_at IS NOT NULL ${after}`
    return this.#db
      .query<{ team: string }, Value[]>(
        `WITH RECURSIVE names (team) AS (
           ${next('')} UNION ALL SELECT (${next('AND team > names.team')}) FROM names WHERE team IS NOT NULL)
         SELECT team FROM names WHERE ${sql}`,
      )
      .all(...values)
      .map(row => row.team)
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

const isTop: Statement = { sql: 'parent_id IS NULL', values: [] }
const isOpen = (state: string): boolean => !ENDED_RUN_STATES.includes(state)

/** Whether a team has this whole name, or, where it is without scope, this name after any scope. */
function isCalled(team: string): Statement {
  if (team.startsWith('@')) return { sql: 'team = ?', values: [team] }
  return { sql: "(team = ? OR substr(team, instr(team, '/') + 1) = ?)", values: [team, team] }
}

/** The indexes of ended runs, of all teams and by team. */
function indexesFor(startedBy: string | undefined): { index: string; ofTeam: string } {
  if (startedBy === undefined) return { index: 'runs_by_state', ofTeam: 'runs_by_team' }
  if (starterOf(startedBy).name === null) return { index: 'runs_by_starter_kind', ofTeam: 'runs_by_team_starter_kind' }
  return { index: 'runs_by_starter', ofTeam: 'runs_by_team_starter' }
}

/** What is true of top runs that this started, as the indexes have it. */
export function startedConditions(startedBy: string): Statement[] {
  const { kind, name } = starterOf(startedBy)
  return [
    isTop,
    { sql: "coalesce(started_by ->> 'kind', 'unknown') = ?", values: [kind] },
    ...(name === null ? [] : [{ sql: `${STARTER_NAME} = ?`, values: [name] }]),
  ]
}
/** A service is found by its identity, and a move by the person who moved. */
const STARTER_NAME = "coalesce(started_by ->> 'name', started_by ->> 'identity', started_by ->> 'by')"

/** What is left to check of a row that an index found by state, team, or being a top run. */
export function restOf({ begins, since, trees }: Partial<RunFilter>): Statement[] {
  const rest: Statement[] = []
  if (begins !== undefined) rest.push({ sql: "id >= ? AND id < ? || '~'", values: [begins, begins] })
  if (since !== undefined) rest.push({ sql: 'started_at >= ?', values: [since] })
  if (trees && (trees.only || trees.roots.length > 0)) {
    const sql = `root_id ${trees.only ? '' : 'NOT '}IN (SELECT value FROM json_each(?))`
    rest.push({ sql, values: [JSON.stringify(trees.roots)] })
  }
  return rest
}

/** Runs that began since a moment have ids from this one on, or are in the index `runs_late`. */
export const firstIdSince = (since: number): string => idAt(since - LATE_MS)

/** The least id that a run of this moment has. */
function idAt(ms: number): string {
  const time = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}`
}
