// What can be asked of recorded runs. Needs the database only, so that it answers with or without a running daemon.

import { CadreError } from '../error.ts'
import type { Bundle } from '../team/team.ts'
import { type PhaseRecord, phaseRecord, type RunRecord, type RunRow, runRecord, type SubRun } from './records.ts'
import type { RunStore } from './store.ts'
import type { RunState } from './transitions.ts'

export interface ListQuery {
  state?: string
  team?: string
  root_only?: boolean
  limit: number
  offset: number
}

/** Newest first. */
export function listRuns(store: RunStore, query: ListQuery): { runs: RunRecord[]; total: number } {
  const where = `WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR team = ?2) ${query.root_only ? 'AND parent_id IS NULL' : ''}`
  const filter = [query.state ?? null, query.team ?? null] as const
  const rows = store.db
    .query<RunRow, (string | number | null)[]>(`SELECT * FROM runs ${where} ORDER BY id DESC LIMIT ?3 OFFSET ?4`)
    .all(...filter, query.limit, query.offset)
  const { total } = store.db
    .query<{ total: number }, (string | null)[]>(`SELECT count(*) AS total FROM runs ${where}`)
    .get(...filter)!
  return { runs: rows.map(runRecord), total }
}

export interface RunPhases {
  run_id: string
  state: RunState
  phases: PhaseRecord[]
}

/** The phases of a run in file order, with the sub-runs that each started. */
export function runPhases(
  store: RunStore,
  runId: string,
  bundleOf: (id: string) => Bundle,
  waitOf: (position: number) => string | null = () => null,
): RunPhases {
  const run = store.run(runId)
  if (!run) throw new CadreError('not_found', `no run ${runId}`)
  const { phases } = bundleOf(run.bundle_id).team(run.team_key)
  const subRuns = Map.groupBy(
    store.db
      .query<SubRun & { position: number }, [string]>(
        `SELECT id AS run_id, run_name, state, parent_position AS position FROM runs
         WHERE parent_id = ? ORDER BY parent_position, item`,
      )
      .all(runId),
    row => row.position,
  )
  return {
    run_id: runId,
    state: run.state,
    phases: store.phases(runId).map(row => {
      const below = (subRuns.get(row.position) ?? []).map(({ position: _, ...subRun }) => subRun)
      return { ...phaseRecord(row, phases[row.position]!, phases, below), waiting: waitOf(row.position) }
    }),
  }
}
