// Who or what started a run, in the columns of runs: as JSON, and its kind and name, by which lists find it.

import { and, eq, type SQL, sql } from 'drizzle-orm'
import { kindOfStarter } from '../../../db/hub/run-tables.ts'
import type { Store } from '../../../db/hub/store.ts'
import { type StartedBy, starterName, starterOf } from '../../wire/records/started-by.ts'

/** What an index of PostgreSQL takes of a name. */
const MOST_NAME = 300

export function starterColumns(by: StartedBy | null) {
  return {
    started_by: by,
    starter_kind: by?.kind ?? null,
    starter_name: by && (starterName(by)?.slice(0, MOST_NAME) ?? null),
  }
}

/**
 * The top runs that this started: a kind, or a kind and a name, such as `schedule:nightly`. They are found by another index
 * if the condition is only `checked`.
 */
export function startedByThis({ runs }: Store, filter: string, checked: boolean): SQL {
  const { kind, name } = starterOf(filter)
  const known = kindOfStarter(runs)
  const ofKind = sql`${checked ? unindexed(known) : known} = ${kind}`
  return name === null ? ofKind : and(ofKind, eq(runs.starter_name, name))!
}

/** The same text, in a form by which no index is chosen. */
export const unindexed = (text: SQL): SQL => sql`(${text} || '')`
