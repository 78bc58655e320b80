// What team and map phases have in common: how their sub-runs are created, start a new attempt, hand files over, and
// are asked to end.

import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import type { PhaseWithSubRuns } from '../../../team/team.ts'
import { MAX_DEPTH } from '../../../wire/states.ts'
import { type LiveRun, NO_CLOCK, parse, type RunError, type RunRow, startClock } from '../../core/core.ts'
import { type ChildRow, dropSmallFilesBelow } from '../../store/store.ts'
import { setPhaseClock } from '../phase/clocks.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { CLEANUP_MS } from '../phase/transition.ts'
import { type Above, maskInputs, type NewRun } from '../run/create.ts'
import { openWhole, reopenRun } from '../run/reopen.ts'
import { fileOutputs } from '../run/run-end.ts'
import { type Item, subRunInputs } from '../run/sub-run-inputs.ts'
import type { EngineState } from '../state/state.ts'

/** A sub-run that is not created yet, with its inputs evaluated. */
export function newSubRun(
  engine: EngineState,
  live: LiveRun,
  phase: PhaseWithSubRuns,
  key: string | null,
  item: Item | undefined,
): { run: NewRun; above: Above } {
  const { row } = live
  if (row.call_depth + 1 > MAX_DEPTH) {
    throw new CadreError(
      'invalid_request',
      `${phase.place}: sub-runs nest at most ${MAX_DEPTH} levels deep, and ${live.bundle.team(phase.team).name} would be one more; end the recursion with \`when\``,
    )
  }
  const run = {
    id: engine.store.runs.newId(),
    bundle: live.bundle,
    teamKey: phase.team,
    inputs: subRunInputs(engine, live, phase, item),
    runName: null,
    workspace: row.workspace,
    environment: row.environment,
    review: null,
    fromPath: row.from_path === 1,
    synced: row.synced === 1,
  }
  const turn = live.phases[phase.index]!.turn?.number ?? 1
  return { run, above: { live, position: phase.index, item: item?.index ?? turn - 1, key } }
}

/** Starts the new attempt of a sub-run. Its completed phases are kept, unless its inputs have changed. */
export function reopenSubRun(
  engine: EngineState,
  live: LiveRun,
  phase: PhaseWithSubRuns,
  id: string,
  item: Item | undefined,
): void {
  const { store } = engine
  const folder = item ? store.items.folder(live.id, phase.index, item.index) : ''
  // The files of the sub-run are removed, and must not be restored after a power cut.
  if (folder !== null) dropSmallFilesBelow(store.db, live.id, ['files', phase.name, folder].filter(Boolean).join('/'))
  const inputs = inputsOfSubRun(engine, live, phase, item)
  if (inputs !== store.runs.get(id)!.inputs) {
    store.runs.setInputs(id, inputs)
    openWhole(engine, id)
  }
  reopenRun(engine, store.runs.get(id)!)
}

/** The inputs of a sub-run as its row has them. */
export function inputsOfSubRun(
  engine: EngineState,
  live: LiveRun,
  phase: PhaseWithSubRuns,
  item: Item | undefined,
): string {
  const { inputs: fields } = live.bundle.team(phase.team)
  return JSON.stringify(maskInputs(fields, subRunInputs(engine, live, phase, item)))
}

export type CompletedChild = Pick<RunRow, 'id' | 'team' | 'outputs' | 'handed' | 'team_key'>

/** Whether a completed sub-run has file outputs that have not been handed to the run above. */
export function lacksHandOver(live: LiveRun, child: Pick<ChildRow, 'team_key' | 'outputs' | 'handed'>): boolean {
  if (child.handed !== null || child.outputs === null) return false
  return fileOutputs({ team: live.bundle.team(child.team_key) }, JSON.parse(child.outputs)).length > 0
}

// The end of a phase before its sub-runs have ended

export function stopPhaseWithSubRuns(engine: EngineState, live: LiveRun, { index, timeout }: PhaseWithSubRuns): void {
  const ending = live.cancelRequest(index)
  // A map also cleans up when none of its sub-runs is open: it may be between two of them.
  if (!ending) {
    if (timeout === undefined) setPhaseClock(engine, live, index, startClock(CLEANUP_MS, engine.world.lived()))
  } else if (!stopSubRuns(engine, live, index, ending.hard ?? false)) {
    endPhase(engine, live, index, 'cancelled', { reason: ending.reason })
  }
}

/** After a restart: asks the sub-runs to end whose run was asked to end, or whose phase took too long. */
export function repeatStop(engine: EngineState, live: LiveRun, position: number): void {
  const { runs } = live.below(position)
  if (runs.size === 0) return
  const ending = live.cancelRequest(position)
  if (ending) stopSubRuns(engine, live, position, ending.hard ?? false)
  else if (parse<RunError>(engine.store.phases.error(live.id, position))?.code === 'timeout') {
    // A sub-run that was asked before the restart keeps how it was asked: the run may have been asked to end since.
    for (const child of runs) if (!child.ending) stopSoon(engine, child, live.ending !== null)
  }
}

/** A phase took longer than its timeout: its sub-runs are cancelled, and the phase fails. */
export function failOverduePhase(engine: EngineState, live: LiveRun, position: number): void {
  const limit = live.phase(position).timeout ?? CLEANUP_MS
  const error = { code: 'timeout', message: `the attempt took longer than ${formatDuration(limit)}` }
  const progress = live.maps.get(position)
  if (progress) progress.stopped = true
  setPhaseClock(engine, live, position, NO_CLOCK)
  // The row has the error before the last sub-run ends, whose end then makes the phase fail with it.
  engine.store.phases.setError(live.id, position, engine.world.mask(live.root, error))
  if (!stopSubRuns(engine, live, position, live.ending !== null)) failPhase(engine, live, position, error)
}

/** Asks the sub-runs of a phase to end, each in a step of its own. False when there is none. */
function stopSubRuns(engine: EngineState, live: LiveRun, position: number, hard: boolean): boolean {
  const { runs } = live.below(position)
  for (const child of runs) stopSoon(engine, child, hard)
  return runs.size > 0
}

function stopSoon({ agenda }: EngineState, child: LiveRun, hard: boolean): void {
  child.pendingStop = { state: 'cancelled', reason: 'parent', ...((hard || child.pendingStop?.hard) && { hard: true }) }
  agenda.add(child)
}
