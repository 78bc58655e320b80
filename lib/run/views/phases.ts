// Lists of runs, and of the phases of a run. Needs only the database, so it works with or without a running daemon.

import { CadreError } from '../../error.ts'
import type { Bundle } from '../../team/team.ts'
import type { History, RunPhases, RunRecord } from '../../wire/run-records.ts'
import { written } from '../steps/steps.ts'
import type { RunFilter, Store } from '../store/store.ts'
import { attemptRecord, phaseRecord, runRecord } from './records.ts'

/** Newest first. */
export function listRuns(store: Store, filter: RunFilter): { runs: RunRecord[]; total: number } {
  const { rows, total } = store.runLists.list(filter)
  return { runs: rows.map(runRecord), total }
}

export type { RunPhases }

/** The phases of a run in file order, with the sub-runs that each started. */
export function runPhases(
  store: Store,
  runId: string,
  bundleOf: (id: string) => Bundle,
  waitOf: (position: number) => string | null = () => null,
): RunPhases {
  const run = store.runs.get(runId)
  if (!run) throw new CadreError('not_found', `there is no run ${runId}`)
  const { phases } = bundleOf(run.bundle_id).team(run.team_key)
  const subRuns = Map.groupBy(store.runLists.subRuns(runId), row => row.position)
  return {
    run_id: runId,
    state: run.state,
    phases: store.phases.of(runId).map(row => {
      const below = (subRuns.get(row.position) ?? []).map(({ position: _, ...subRun }) => subRun)
      return { ...phaseRecord(row, phases[row.position]!, phases, below), waiting: waitOf(row.position) }
    }),
  }
}

/** The earlier attempts of the phases of a run, and the outside writes that must not happen twice. */
export function runHistory(store: Store, runId: string, bundleOf: (id: string) => Bundle): History {
  const run = store.runs.get(runId)
  if (!run) throw new CadreError('not_found', `there is no run ${runId}`)
  const { phases } = bundleOf(run.bundle_id).team(run.team_key)
  return {
    attempts: store.attempts.of(runId).map(row => attemptRecord(row, phases[row.position]!.name)),
    written: written(store, store.receipts.ofRun(runId), () => phases),
  }
}
