// What a search looks in: the id, the name and the team of a run, the first 4 KiB of the inputs and of the error of a top
// run, and of the errors of failed phases that start no runs. All of it is masked where it is stored.

import type { Database } from 'bun:sqlite'
import type { Json } from '../../json.ts'
import type { RunState } from '../core/core.ts'
import type { Statement } from '../store/store.ts'

/** No text of a run is read further. */
const MOST_CHARACTERS = 4_096

/** `number` is the rowid, by which the index knows the run. */
export interface SearchedRun {
  number: number
  id: string
  is_top: number
  run_name: string | null
  team: string
  state: RunState
  inputs: string | null
  error: string | null
  errors: string
}

const COLUMNS = `runs.rowid AS number, id, parent_id IS NULL AS is_top, run_name, team, state,
  iif(parent_id IS NULL, inputs, NULL) AS inputs, iif(parent_id IS NULL, error, NULL) AS error,
  (SELECT json_group_array(json(phases.error)) FROM phases
   WHERE phases.run_id = runs.id AND phases.state = 'failed' AND phases.error IS NOT NULL AND NOT EXISTS (
     SELECT 1 FROM runs AS below WHERE below.parent_id = runs.id AND below.parent_position = phases.position)) AS errors`

/** The searched parts of the runs with these numbers that `where` allows. */
export function searchedRuns(db: Database, numbers: readonly number[], where: Statement = ALL): SearchedRun[] {
  return db
    .query<SearchedRun, Statement['values']>(
      `SELECT ${COLUMNS} FROM runs WHERE runs.rowid IN (SELECT value FROM json_each(?)) AND ${where.sql}`,
    )
    .all(JSON.stringify(numbers), ...where.values)
}

/** The same of all runs, newest first. */
export function* allSearchedRuns(db: Database, where: Statement): Generator<SearchedRun> {
  yield* db
    .prepare<SearchedRun, Statement['values']>(
      `SELECT ${COLUMNS} FROM runs INDEXED BY sqlite_autoindex_runs_1 WHERE ${where.sql} ORDER BY id DESC`,
    )
    .iterate(...where.values)
}

const ALL: Statement = { sql: 'true', values: [] }

/** How texts are compared: in any case. Control characters, which mark the parts of an indexed text, are spaces. */
export const folded = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\0-\x08]/g, ' ')
    .toLowerCase()

export function textOf({ id, run_name, team, inputs, error, errors }: SearchedRun): string {
  const parts = [id, run_name ?? '', team, plain(inputs), plain(error), plain(errors)]
  return folded(parts.filter(part => part !== '').join('\n'))
}

/** The text of a run as it is indexed: with marks by which the index also finds team, state and top runs. */
export function indexedText(run: SearchedRun): string {
  return `${textOf(run)}\x01${marks.team(run.team)}${marks.state(run.state)}${run.is_top ? marks.top : ''}`
}

const STATE_MARKS: Record<RunState, string> = {
  queued: '\x03\x05\x05',
  running: '\x03\x05\x06',
  awaiting_input: '\x03\x05\x07',
  completed: '\x03\x06\x05',
  failed: '\x03\x06\x06',
  cancelled: '\x03\x06\x07',
}

/**
 * Each has three characters or more, the shortest text that the index can look for. What is not a text of the run consists
 * of control characters, which no folded text holds, so that no search finds it.
 */
export const marks = {
  team: (team: string): string => `\x02${team}\x02`,
  state: (state: RunState): string => STATE_MARKS[state],
  top: '\x04\x04\x04',
}

/** The values of JSON, as a person would type them. */
function plain(json: string | null): string {
  if (json === null || json === '{}' || json === '[]') return ''
  let text = ''
  const add = (value: Json): void => {
    if (text.length >= MOST_CHARACTERS) return
    if (Array.isArray(value)) for (const each of value) add(each)
    else if (typeof value === 'object' && value !== null) {
      for (const each of Object.values(value)) add(each as Json)
    } else if (value !== null) text += `${value}\n`
  }
  add(JSON.parse(json))
  return text.slice(0, MOST_CHARACTERS).trimEnd()
}
