// Ends runs whose phases have all ended, and reports each end to the phase above.

import { CadreError } from '../../../error.ts'
import type { Masked } from '../../../secrets/masked.ts'
import { hasSubRuns } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { sendTask } from '../phase/tasks.ts'
import { takeStateFromSubRuns } from '../phase/transition.ts'
import { endOf, failedOutputs, fileOutputs, type RunEnd } from '../run/run-end.ts'
import { OF_RUN } from '../state/effects.ts'
import { errorOf } from '../state/fault.ts'
import type { EngineState } from '../state/state.ts'
import { releaseKey } from './release-key.ts'

const ENDS = ['completed', 'failed', 'cancelled'] as const
const EVENT_OF = { completed: 'on_complete', failed: 'on_fail', cancelled: 'on_cancel' } as const

/** How runs end whose rows have not been written yet. They count as running until then, but take no more steps. */
export type EndingRuns = Map<LiveRun, Ending>

interface Ending {
  end: Masked<RunEnd>
  handed: string | null
  /** Why its files cannot be handed to the phase above. */
  handFault: unknown
}

/**
 * Decides how a run ends whose phases have all ended. Tasks come first: one writes what is still to be written of the
 * files of the tree, and one checks its file outputs and puts its result into `live.outputs`. Each schedules another
 * step, which calls this again.
 */
export function finishRun(engine: EngineState, live: LiveRun, ending: EndingRuns): void {
  if (!live.parent && !live.filesWritten && engine.world.hasUnwritten(live.root)) {
    if (!live.tasks.has(OF_RUN)) sendTask(engine, live, OF_RUN, 'written')
    return
  }
  const computed = endOf(engine, live)
  if (!computed) return engine.agenda.add(live)
  let end = engine.world.mask(live.root, computed)
  let handed: string | null = null
  let handFault: unknown = null
  if (end.state === 'completed' && fileOutputs(live, end.outputs).length > 0) {
    if (live.tasks.has(OF_RUN)) return
    if (!live.outputs) return sendTask(engine, live, OF_RUN, 'outputs')
    const { fault } = live.outputs
    handed = live.outputs.handed
    if (fault?.of === 'phase') handFault = fault.error
    if (fault?.of === 'run') end = engine.world.mask(live.root, failedOutputs(live, errorOf(fault.error)))
  }
  ending.set(live, { end, handed, handFault })
}

/** Writes how the runs end, many by one statement, and tells the phases above. */
export function recordEnds(engine: EngineState, ending: EndingRuns): void {
  if (ending.size === 0) return
  const ends = [...ending]
  ending.clear()
  const [at, lived] = [engine.world.now(), engine.world.lived()]
  for (const state of ENDS) {
    const some = ends
      .filter(([, { end }]) => end.state === state)
      .map(([live, { end, handed }]) => ({
        ...{ ...end, id: live.id, isTop: !live.parent, handed, at, lived },
        tolerated: state === 'completed' ? toleratedIn(engine, live) : null,
      }))
    if (engine.store.runs.end(state, some)) continue
    throw new CadreError('internal', `run ${some.map(({ id }) => id).join(' or ')} may not become ${state} now`)
  }
  for (const [live, end] of ends) afterEnd(engine, live, end, at)
}

/** How many failures a run passed over that completes: of its phases, and below them. */
function toleratedIn({ store }: EngineState, { id, row, team, phases }: LiveRun): number {
  const own = phases.filter(({ state }) => state === 'failed').length
  return own + (team.phases.some(hasSubRuns) ? store.phases.toleratedBelow(id, row.root_id, row.tree_key) : 0)
}

function afterEnd(engine: EngineState, live: LiveRun, { end, handed, handFault }: Ending, at: number): void {
  removeFromMemory(engine, live, end)
  engine.notes.changed(live)
  const { state }: RunEnd = end
  engine.notes.event(live, EVENT_OF[state], null)
  const { parent, row } = live
  const { team, started_at, reason } = { ...row, ...end }
  engine.notes.after({
    kind: 'ended',
    runId: live.id,
    root: live.root,
    settled: row.settled === 1 && row.synced === 0,
    ...(!parent && { counted: { team, state, reason, started_at, completed_at: at } }),
  })
  if (!parent) {
    if (live.team.key) releaseKey(engine, live.id)
    return
  }
  const position = live.row.parent_position!
  // This may have been the last run below the phase that was waiting for a person.
  takeStateFromSubRuns(engine, parent, position, null)
  const phase = parent.phase(position)
  kindOf(phase).subRuns!.ended(engine, parent, phase, live, { ...end, handed, handFault })
  engine.agenda.add(parent)
}

/** Takes an ended run out of memory, and out of the counters of the run above. */
function removeFromMemory(engine: EngineState, live: LiveRun, end: RunEnd): void {
  const above = live.siblings
  if (above) {
    if (live.row.state === 'awaiting_input') above.asked--
    if (live.idle) above.idle--
    if (live.parked) above.parked--
    above.wanting.delete(live)
    above.runs.delete(live)
  }
  live.row.state = end.state
  live.row.outputs = end.outputs && JSON.stringify(end.outputs)
  engine.lives.delete(live.id)
  engine.slots.drop(live)
}
