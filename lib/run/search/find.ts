// The runs in which a text occurs, newest first. The index finds most of them; what has changed since it was filled is
// looked at directly, so that a run is found as soon as it was started.

import type { Database } from 'bun:sqlite'
import { MOST_COUNTED } from '../../wire/budget.ts'
import type { RunState } from '../core/core.ts'
import { firstIdSince, LATE, type RunFilter, type RunHead, RunLists, restOf, type Statement } from '../store/store.ts'
import type { SearchIndex } from './search-index.ts'
import { allSearchedRuns, folded, marks, searchedRuns, textOf } from './text.ts'

export type SearchFilter = RunFilter & { search?: string }

export interface Found {
  rows: RunHead[]
  /** At most `MOST_COUNTED + 1`. */
  found: number
  /** Runs that changed later may be missing. */
  indexedUntil?: number
}

/** Changes that the index does not have, and that a search looks at by itself. */
const MOST_DIRECT = 2_000
/** A search does not mention a smaller lag. */
const LAG_MS = 2_000
/** The index finds texts from this length on. */
const SHORTEST = 3
/** Shorter texts are looked for in as many of the newest runs first: most of them are in very many. */
const NEWEST = 30_000
const AT_ONCE = 2_500

export function find(runs: Database, index: SearchIndex, filter: SearchFilter & { search: string }): Found {
  // All statements see the same runs: one that is deleted in between would be counted and not shown.
  return runs.transaction(() => findNow(runs, index, filter))()
}

function findNow(runs: Database, index: SearchIndex, filter: SearchFilter & { search: string }): Found {
  const lists = new RunLists(runs)
  const { limit, offset, search } = filter
  const text = folded(search)
  const most = Math.max(MOST_COUNTED + 1, offset + limit)
  const missing = notIndexed(runs, index)
  const direct = missing.slice(0, MOST_DIRECT)
  const ids = searchedRuns(runs, direct, whereOf(lists, filter))
    .filter(run => textOf(run).includes(text))
    .map(({ id }) => id)
  const isBehind = missing.length > MOST_DIRECT
  ids.push(...indexed({ runs, index, lists, filter, text, most, without: new Set(direct), isBehind }))
  ids.sort((one, other) => (one < other ? 1 : -1))
  const indexedUntil = isBehind ? lag(runs, index) : null
  return {
    rows: lists.heads(ids.slice(offset, offset + limit)),
    found: Math.min(ids.length, MOST_COUNTED + 1),
    ...(indexedUntil !== null && { indexedUntil }),
  }
}

/** The runs that the index does not know as they are, at most one more than are looked at directly. */
function notIndexed(runs: Database, { seq, filled }: SearchIndex): number[] {
  return runs
    .query<{ run: number }, [number, number]>(
      `SELECT run FROM (SELECT DISTINCT run FROM search_changes WHERE seq > ? ORDER BY seq DESC)
       UNION ALL SELECT run FROM (SELECT rowid AS run FROM runs WHERE rowid > ? ORDER BY rowid DESC)
       LIMIT ${MOST_DIRECT + 1}`,
    )
    .all(seq, filled)
    .map(({ run }) => run)
}

/** The same without an index: looks at all runs. */
export function findByLooking(runs: Database, filter: SearchFilter & { search: string }): Found {
  const lists = new RunLists(runs)
  const { limit, offset } = filter
  const text = folded(filter.search)
  const most = Math.max(MOST_COUNTED + 1, offset + limit)
  const ids: string[] = []
  for (const run of allSearchedRuns(runs, whereOf(lists, filter))) {
    if (!textOf(run).includes(text)) continue
    ids.push(run.id)
    if (ids.length === most) break
  }
  return { rows: lists.heads(ids.slice(offset, offset + limit)), found: Math.min(ids.length, MOST_COUNTED + 1) }
}

/** All filters but the text. */
function whereOf(lists: RunLists, filter: SearchFilter): Statement {
  const { state, root_only } = filter
  const all = [...restOf(filter), ...lists.ofGroups(filter)]
  if (state !== undefined) all.push({ sql: 'state = ?', values: [state] })
  if (root_only) all.push({ sql: 'parent_id IS NULL', values: [] })
  return and(all)
}

const and = (all: readonly Statement[]): Statement => ({
  sql: ['true', ...all.map(({ sql }) => sql)].join(' AND '),
  values: all.flatMap(({ values }) => values),
})

interface Looked {
  runs: Database
  index: SearchIndex
  lists: RunLists
  filter: SearchFilter
  text: string
  most: number
  /** Runs that have changed since they were indexed. */
  without: ReadonlySet<number>
  /** More runs have changed than those. They may be deleted, and their numbers may be those of other runs by now. */
  isBehind: boolean
}

/** The ids of at most `most` runs that the index finds. */
function indexed({ runs, index, lists, filter, text, most, without, isBehind }: Looked): string[] {
  const { state, team, root_only, started_by, since } = filter
  const teams = team === undefined ? null : lists.teamsCalled(team)
  if (teams?.length === 0) return []
  const wanted = [
    ...(teams ? [teams.map(marks.team)] : []),
    ...(state === undefined ? [] : [[marks.state(state as RunState)]]),
    ...(root_only || started_by !== undefined ? [[marks.top]] : []),
  ]
  const first = since === undefined ? 0 : firstNumber(runs, since)
  // The text has marks of the team.
  const rest = and([...restOf(filter), ...(started_by === undefined ? [] : lists.ofGroups(filter))])
  const ids: string[] = []
  const amongThese = 'IN (SELECT value FROM json_each(?))'
  // An indexed text begins with the id, and is a shorter row than that of the run.
  const indexedIds = (numbers: string): string[] =>
    db
      .query<{ id: string }, [string]>(`SELECT substr(c0, 1, 36) AS id FROM texts_content WHERE id ${amongThese}`)
      .all(numbers)
      .map(({ id }) => id)
  const idsOfRuns = (column: 'rowid' | 'id', values: string): string[] =>
    runs
      .query<{ id: string }, Statement['values']>(
        `SELECT id FROM runs WHERE runs.${column} ${amongThese} AND ${rest.sql}`,
      )
      .all(values, ...rest.values)
      .map(({ id }) => id)
  const idsOf = (numbers: string): string[] => {
    if (isBehind) return idsOfRuns('id', JSON.stringify(indexedIds(numbers)))
    return rest.values.length === 0 ? indexedIds(numbers) : idsOfRuns('rowid', numbers)
  }
  const take = (numbers: readonly number[]): boolean => {
    for (const id of idsOf(JSON.stringify(numbers.filter(number => !without.has(number))))) ids.push(id)
    return ids.length < most
  }
  const { db } = index
  if (Array.from(text).length < SHORTEST) {
    const { from, isAll } = db
      .query<{ from: number; isAll: number }, []>(
        // Each end of a table is a look of its own; both at once read all of it.
        `SELECT last - ${NEWEST} AS "from", first > last - ${NEWEST} AS isAll FROM (
           SELECT (SELECT min(id) FROM texts_content) AS first, (SELECT max(id) FROM texts_content) AS last)`,
      )
      .get()!
    const parts = [[text], ...wanted]
    const within = parts.map(some => `(${some.map(() => 'instr(text, ?) > 0').join(' OR ')})`).join(' AND ')
    const newest = db
      .query<{ number: number }, (string | number)[]>(
        `SELECT rowid AS number FROM texts WHERE rowid > ? AND ${within} ORDER BY rowid DESC LIMIT ${most}`,
      )
      .all(isAll ? from : Math.max(from, first - 1), ...parts.flat())
      .map(({ number }) => number)
    if ((isAll || newest.length === most) && (!take(newest) || isAll)) return ids
    ids.length = 0
  }
  const texts = Array.from(text).length < SHORTEST ? termsWith(db, text) : [text]
  if (texts.length === 0) return []
  const query = [texts, ...wanted].map(some => `(${some.map(phrase).join(' OR ')})`).join(' AND ')
  const matching = db.prepare<{ number: number }, [string, number]>(
    'SELECT rowid AS number FROM texts WHERE texts MATCH ? AND rowid >= ? ORDER BY rowid DESC',
  )
  let some: number[] = []
  for (const { number } of matching.iterate(query, first)) {
    some.push(number)
    if (some.length < AT_ONCE) continue
    if (!take(some)) return ids
    some = []
  }
  if (take(some) && since !== undefined) {
    const late = runs
      .query<{ number: number }, [number, number]>(
        `SELECT rowid AS number FROM runs INDEXED BY runs_late WHERE ${LATE} AND started_at >= ? AND rowid < ?`,
      )
      .all(since, first)
      .map(({ number }) => number)
    const found = db
      .query<{ number: number }, [string, string]>(
        'SELECT rowid AS number FROM texts WHERE texts MATCH ? AND rowid IN (SELECT value FROM json_each(?))',
      )
      .all(query, JSON.stringify(late))
    take(found.map(({ number }) => number))
  }
  return ids
}

/** The least number of the runs whose ids are of that moment or later. */
function firstNumber(runs: Database, since: number): number {
  const { first } = runs
    .query<{ first: number | null }, [string]>(
      'SELECT min(rowid) AS first FROM runs INDEXED BY sqlite_autoindex_runs_1 WHERE id >= ?',
    )
    .get(firstIdSince(since))!
  return first ?? Number.MAX_SAFE_INTEGER
}

/** A text in the language of FTS5, in which nothing has a meaning any more. */
const phrase = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** The terms of three characters that begin with a text. The marks at the end of each indexed text follow its last ones. */
function termsWith(db: Database, text: string): string[] {
  return db
    .query<{ term: string }, [string, string]>('SELECT term FROM terms WHERE term >= ? AND term < ?')
    .all(text, `${text}\u{10ffff}`)
    .map(({ term }) => term)
}

/** Until when all changes of runs that are still there are indexed, if that is longer ago than is passed over. */
function lag(runs: Database, index: SearchIndex): number | null {
  const { at } = runs
    .query<Moment, [number, number]>(
      `SELECT min(at) AS at FROM (
         SELECT * FROM (SELECT ${MOMENT} FROM runs WHERE rowid > ? ORDER BY rowid LIMIT 1)
         UNION ALL SELECT * FROM (
           SELECT ${MOMENT} FROM search_changes CROSS JOIN runs ON runs.rowid = run WHERE seq > ? ORDER BY seq LIMIT 1))`,
    )
    .get(index.filled, index.seq)!
  return at !== null && Date.now() - at > LAG_MS ? at : null
}

interface Moment {
  at: number | null
}
const MOMENT = 'max(created_at, coalesce(completed_at, 0)) AS at'
