// Who or what started a run, in the columns of runs: as JSON, and its kind and name, by which lists find it.

import { and, eq, isNull, or, type SQL, sql } from 'drizzle-orm'
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

/** The top runs that this started: a kind, or a kind and a name, such as `schedule:nightly`. */
export function startedByThis({ runs }: Store, filter: string): SQL {
  const { kind, name } = starterOf(filter)
  const isTop = sql`${runs.run_id} = ${runs.root_run_id}`
  const ofKind = eq(runs.starter_kind, kind)
  // Nobody has said it of runs from before it was recorded.
  if (kind === 'unknown' && name === null) return and(isTop, or(ofKind, isNull(runs.starter_kind)))!
  return and(isTop, ofKind, name === null ? undefined : eq(runs.starter_name, name))!
}
