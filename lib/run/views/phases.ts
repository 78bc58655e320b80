// Lists of runs, and of the phases of a run. Needs only the database, so it works with or without a running daemon.

import { CadreError } from '../../error.ts'
import type { Bundle } from '../../team/team.ts'
import { fitting, jsonBytes, REPLY_BYTES, within } from '../../wire/budget.ts'
import { counted } from '../../wire/page.ts'
import type { History, RunPhases, RunRecord, SubRun, Waiting } from '../../wire/records/run-records.ts'
import { type Found, findByLooking, isLongRead, type Reads, type SearchFilter } from '../search/search.ts'
import { written } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'
import { attemptRecord, phaseRecord, runHead } from './records.ts'

interface RunsListed {
  runs: RunRecord[]
  total: number
  total_more?: true
  /** Runs that changed later may be missing. */
  indexed_until?: number
}

/** Newest first: as many as fit into a reply. Long reads are made by the thread of `reads`. */
export async function listRuns(store: Store, filter: SearchFilter, reads: Reads): Promise<RunsListed> {
  const isLong = isLongRead(filter) || store.runLists.isOfMany(filter)
  return listed(isLong ? await reads.list(filter) : store.runLists.list(filter))
}

/** The same in a process of its own, which nobody waits for. */
export function listRunsHere(store: Store, { search, ...filter }: SearchFilter): RunsListed {
  return listed(search === undefined ? store.runLists.list(filter) : findByLooking(store.db, { ...filter, search }))
}

function listed({ rows, found, indexedUntil }: Found): RunsListed {
  const until = indexedUntil === undefined ? {} : { indexed_until: indexedUntil }
  return { runs: within(rows.map(runHead)), ...counted(found), ...until }
}

export type { RunPhases }

/** Sub-runs that are read for one reply; few of them have more than 200 bytes. */
const MOST_SUB_RUNS = 10_000

/**
 * The phases of a run in file order, with the sub-runs that each started, and with as much of their texts and data as a
 * reply holds. With `name`, the whole of the phase of that name; throws `not_found` when there is none.
 */
export function runPhases(
  store: Store,
  runId: string,
  bundleOf: (id: string) => Bundle,
  { name, waitOf = () => null }: { name?: string | undefined; waitOf?: (position: number) => Waiting | null } = {},
): RunPhases {
  const run = store.runs.get(runId)
  if (!run) throw new CadreError('not_found', `there is no run ${runId}`)
  const { phases } = bundleOf(run.bundle_id).team(run.team_key)
  const position = phases.findIndex(phase => phase.name === name)
  if (name !== undefined && position === -1) throw new CadreError('not_found', `run ${runId} has no phase ${name}`)
  const below = subRunsOf(store, runId)
  const rows =
    name === undefined
      ? fittingRows(store, runId, below.bytes)
      : [{ row: store.phases.get(runId, position)!, left: {} }]
  return {
    run_id: runId,
    state: run.state,
    phases: rows.map(({ row, left }) => ({
      ...phaseRecord(store, row, phases[row.position]!, phases),
      ...left,
      ...below.of(row.position),
      waiting: waitOf(row.position),
    })),
  }
}

/** The rows of the phases of a run, and what is told instead of texts and data for which a reply has no room. */
function fittingRows(store: Store, runId: string, taken: number) {
  const sizes = store.phases.sizes(runId)
  const rest = sizes.reduce((sum, { rest }) => sum + rest + PHASE_BYTES, taken)
  const fits = fitting(
    sizes.flatMap(({ text, data }) => [text, data]),
    REPLY_BYTES - rest,
  )
  const text = sizes.filter((_, at) => fits[2 * at])
  const data = sizes.filter((_, at) => fits[2 * at + 1])
  const rows = store.phases.some(
    runId,
    text.map(({ position }) => position),
    data.map(({ position }) => position),
  )
  return rows.map((row, at) => ({
    row,
    left: {
      ...(!fits[2 * at] && { text: null, text_bytes: sizes[at]!.text }),
      ...(!fits[2 * at + 1] && { data: null, data_bytes: sizes[at]!.data }),
    },
  }))
}

/** About what a phase has beside its result, its error and its files. */
const PHASE_BYTES = 500

/** The sub-runs of a run by the phase that started them, as many as there is room for, in the order of the phases. */
function subRunsOf(store: Store, runId: string) {
  const all = store.runLists.subRuns(runId, MOST_SUB_RUNS + 1)
  const shown = within(all, jsonBytes, REPLY_BYTES / 4)
  const byPhase = Map.groupBy(shown, row => row.position)
  const last = shown.length < all.length ? shown.at(-1)!.position : Number.POSITIVE_INFINITY
  return {
    bytes: jsonBytes(shown),
    of(position: number) {
      const sub_runs = (byPhase.get(position) ?? []).map(({ position: _, ...subRun }): SubRun => subRun)
      return { sub_runs, ...(position >= last && { sub_runs_more: true }) }
    },
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
