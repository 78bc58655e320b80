// The runs in which a text occurs, newest first. The index finds most of them; what has changed since it was filled is
// looked at directly, so that a run is found as soon as it was started.

import type { Database } from 'bun:sqlite'
import { firstIdSince } from '../../files/run-ids.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import type { RunState } from '../core/core.ts'
import { LATE, type RunFilter, type RunHead, RunLists, restOf, type Statement } from '../store/store.ts'
import type { SearchIndex } from './search-index.ts'
import { isTerm, rarestTerms, TERM } from './terms.ts'
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
/** So many texts tell which terms are rare. One that is in none of them is in about a hundredth of all, or in fewer. */
const SAMPLE = 200
/** Texts that are shorter than a term are looked for in as many of the newest runs first: most of them are in very many. */
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
  const idsOfRuns = (column: 'rowid' | 'id', values: readonly (number | string)[]): string[] =>
    runs
      .query<{ id: string }, Statement['values']>(
        `SELECT id FROM runs WHERE runs.${column} ${AMONG_THESE} AND ${rest.sql}`,
      )
      .all(JSON.stringify(values), ...rest.values)
      .map(({ id }) => id)
  const take = (some: readonly IndexedRun[]): boolean => {
    const those = some.filter(({ number }) => !without.has(number))
    const theirs = those.map(({ id }) => id)
    if (isBehind) ids.push(...idsOfRuns('id', theirs))
    else if (rest.values.length === 0) ids.push(...theirs)
    else
      ids.push(
        ...idsOfRuns(
          'rowid',
          those.map(({ number }) => number),
        ),
      )
    return ids.length < most
  }
  const { db } = index
  const isShort = Array.from(text).length < TERM
  if (isShort) {
    const { from, isAll } = db
      .query<{ from: number; isAll: number }, []>(
        `SELECT last - ${NEWEST} AS "from", first > last - ${NEWEST} AS isAll FROM (${ENDS})`,
      )
      .get()!
    const within = having([[text], ...wanted])
    const newest = db
      .query<IndexedRun, Statement['values']>(
        `SELECT ${INDEXED} FROM texts WHERE rowid > ? AND ${within.sql} ORDER BY rowid DESC LIMIT ${most}`,
      )
      .all(isAll ? from : Math.max(from, first - 1), ...within.values)
    if ((isAll || newest.length === most) && (!take(newest) || isAll)) return ids
    ids.length = 0
  }
  const texts = isShort ? termsWith(db, text) : [text]
  if (texts.length === 0) return []
  const matching = matchOf(db, [texts, ...wanted])
  const newest = db.prepare<IndexedRun, Statement['values']>(
    `SELECT ${INDEXED} FROM texts WHERE ${matching.sql} AND rowid >= ? ORDER BY rowid DESC`,
  )
  let some: IndexedRun[] = []
  for (const run of newest.iterate(...matching.values, first)) {
    some.push(run)
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
      .query<IndexedRun, Statement['values']>(
        `SELECT ${INDEXED} FROM texts WHERE ${matching.sql} AND rowid ${AMONG_THESE}`,
      )
      .all(...matching.values, JSON.stringify(late))
    take(found)
  }
  return ids
}

interface IndexedRun {
  number: number
  id: string
}

/** An indexed text begins with the id, and is a shorter row than that of the run. */
const INDEXED = 'rowid AS number, substr(text, 1, 36) AS id'
const AMONG_THESE = 'IN (SELECT value FROM json_each(?))'
/** The numbers at both ends of the index. Each is a look of its own; both at once would read all of it. */
const ENDS = `SELECT (SELECT min(id) FROM texts_content) AS first, (SELECT max(id) FROM texts_content) AS last`

/** The condition that a text has one of each of these groups of texts. */
const having = (groups: readonly (readonly string[])[]): Statement => ({
  sql: ['true', ...groups.map(some => `(${some.map(() => 'instr(text, ?) > 0').join(' OR ')})`)].join(' AND '),
  values: groups.flat(),
})

/** The same by the terms of the index. */
function matchOf(db: Database, groups: readonly (readonly string[])[]): Statement {
  const longer = groups.filter(some => !some.every(isTerm))
  const sample = longer.length === 0 ? '' : sampleOf(db)
  const termsOf = (text: string) => `(${rarestTerms(text, sample).map(quoted).join(' AND ')})`
  const terms = groups.map(some => `(${some.map(termsOf).join(' OR ')})`).join(' AND ')
  const { sql, values } = having(longer)
  return { sql: `texts MATCH ? AND ${sql}`, values: [terms, ...values] }
}

/** Some of the indexed texts, of old and new runs alike. */
function sampleOf(db: Database): string {
  const { first, last } = db.query<{ first: number | null; last: number | null }, []>(ENDS).get()!
  const distance = ((last ?? 0) - (first ?? 0) + 1) / SAMPLE
  // Not one of each so many: a sample of trees of one size would have only one of their places.
  const numbers = Array.from({ length: SAMPLE }, (_, n) => (first ?? 0) + Math.floor((n + Math.random()) * distance))
  return db
    .query<{ text: string }, [string]>(`SELECT c0 AS text FROM texts_content WHERE id ${AMONG_THESE}`)
    .all(JSON.stringify(numbers))
    .map(({ text }) => text)
    .join('\0')
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

/** A term in the language of FTS5, in which nothing has a meaning any more. */
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

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
