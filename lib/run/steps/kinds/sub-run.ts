// Sub-runs of team and map phases: how they are created, how they begin a new attempt, and what they hand over.

import { CadreError } from '../../../error.ts'
import { newRunId } from '../../../files/run-id.ts'
import type { MapPhase, TeamPhase } from '../../../team/team.ts'
import { MAX_DEPTH } from '../../../wire/states.ts'
import type { LiveRun, RunRow } from '../../core/core.ts'
import { type ChildRow, dropSmallFilesBelow } from '../../store/store.ts'
import { fileOutputs } from '../state/run-end.ts'
import type { Work } from '../state/state.ts'
import { type Item, subRunInputs } from '../state/sub-run-inputs.ts'
import { create, maskInputs } from './create.ts'
import { openWhole, reopenRun } from './reopen.ts'

export function createSubRun(
  work: Work,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  key: string | null,
  item: Item | undefined,
): void {
  const { row } = live
  if (row.call_depth + 1 > MAX_DEPTH) {
    throw new CadreError(
      'invalid_request',
      `${phase.place}: sub-runs nest at most ${MAX_DEPTH} levels deep, and ${live.bundle.team(phase.team).name} would be one more; end the recursion with \`when\``,
    )
  }
  const run = {
    id: newRunId(),
    bundle: live.bundle,
    teamKey: phase.team,
    inputs: subRunInputs(work, live, phase, item),
    runName: null,
    workspace: row.workspace,
    fromPath: row.from_path === 1,
    synced: row.synced === 1,
  }
  create(work, run, { live, position: phase.index, item: item?.index ?? 0, key })
}

/** Begins the new attempt of a sub-run. Its completed phases are kept, unless its inputs have changed. */
export function reopenSubRun(
  work: Work,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  id: string,
  item: Item | undefined,
): void {
  const { store } = work
  const folder = phase.type === 'map' ? store.items.folder(live.id, phase.index, item!.index) : ''
  // The files of the sub-run are removed, and must not be restored after a power cut.
  if (folder !== null) dropSmallFilesBelow(store.db, live.id, ['files', phase.name, folder].filter(Boolean).join('/'))
  const { inputs: fields } = live.bundle.team(phase.team)
  const inputs = JSON.stringify(maskInputs(fields, subRunInputs(work, live, phase, item)))
  if (inputs !== work.store.runs.get(id)!.inputs) {
    work.store.runs.setInputs(id, inputs)
    openWhole(work, id)
  }
  reopenRun(work, work.store.runs.get(id)!)
}

/** Whether a completed sub-run has file outputs that have not been handed to the run above. */
export function lacksHandOver(live: LiveRun, child: Pick<ChildRow, 'team_key' | 'outputs' | 'handed'>): boolean {
  if (child.handed !== null || child.outputs === null) return false
  return fileOutputs({ team: live.bundle.team(child.team_key) }, JSON.parse(child.outputs)).length > 0
}

export type CompletedChild = Pick<RunRow, 'id' | 'team' | 'outputs' | 'handed' | 'team_key'>
