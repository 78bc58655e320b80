// Ends a run whose phases have all ended, and informs the phase above it.

import { CadreError } from '../../../error.ts'
import type { LiveRun } from '../../core/core.ts'
import { OF_RUN } from '../state/effects.ts'
import { errorOf } from '../state/fault.ts'
import { giveUpPlace } from '../state/key-place.ts'
import { endOf, failedOutputs, fileOutputs, type RunEnd } from '../state/run-end.ts'
import type { Work } from '../state/state.ts'
import { startTask } from '../state/task.ts'
import { followBelow } from '../state/transition.ts'
import { mapChildEnded } from './map.ts'
import { teamChildEnded } from './team.ts'

const EVENT_OF = { completed: 'on_complete', failed: 'on_fail', cancelled: 'on_cancel' } as const

/**
 * Ends a run whose phases have all ended. Its file outputs are checked first, by a task, which puts its result into
 * `live.outputs` and has this called again.
 */
export function finish(work: Work, live: LiveRun): void {
  const computed = endOf(work, live)
  if (!computed) return work.agenda.add(live)
  let end = work.world.mask(live.root, computed)
  let handed: string | null = null
  let handFault: unknown = null
  if (end.state === 'completed' && fileOutputs(live, end.outputs).length > 0) {
    if (live.tasks.has(OF_RUN)) return
    if (!live.outputs) return startTask(work, live, OF_RUN, 'outputs')
    const { fault } = live.outputs
    handed = live.outputs.handed
    if (fault?.of === 'phase') handFault = fault.error
    if (fault?.of === 'run') end = work.world.mask(live.root, failedOutputs(live, errorOf(fault.error)))
  }
  const at = work.world.now()
  if (!work.store.runs.end(live.id, end.state, { ...end, handed, at })) {
    throw new CadreError('internal', `run ${live.id} may not become ${end.state} now`)
  }
  leave(work, live, end)
  work.notes.changed(live)
  work.notes.event(live, EVENT_OF[end.state], null)
  const { settled, synced } = live.row
  work.notes.after({ kind: 'ended', runId: live.id, root: live.root, settled: settled === 1 && synced === 0 })
  const { parent } = live
  if (!parent) {
    if (live.team.key) giveUpPlace(work, live.id)
    return
  }
  const position = live.row.parent_position!
  const phase = parent.phase(position)
  // This may have been the last run below the phase that was waiting for a person.
  followBelow(work, parent, position, null)
  if (phase.type === 'team') teamChildEnded(work, parent, phase, live, end, handed, handFault)
  else if (phase.type === 'map') mapChildEnded(work, parent, phase, live, end, handFault)
  work.agenda.add(parent)
}

/** Takes an ended run out of memory, and out of the counters of the run above. */
function leave(work: Work, live: LiveRun, end: RunEnd): void {
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
  work.lives.delete(live.id)
  work.slots.drop(live)
}
