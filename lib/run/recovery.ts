// Reading runs that have not ended back into memory, after a restart or a rollback. A leaf phase that was running and
// is executed by nobody becomes one that may start: its next attempt is a new one. Everything else follows from rows.

import type { JsonObject } from '../json.ts'
import type { Bundle, MapPhase, TeamPhase } from '../team/team.ts'
import { itemOf } from './children.ts'
import { dropStale } from './handover.ts'
import { isLeaf, LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import type { RunRow } from './records.ts'
import { pendingReview, watchReview } from './reviews.ts'
import { mapProgress, subRunInputs } from './subruns.ts'

/** Parents have to be loaded before their sub-runs. */
export function loadRun(machine: Machine, row: RunRow): LiveRun {
  const parent = row.parent_id === null ? null : (machine.lives.get(row.parent_id) ?? null)
  const bundle = machine.host.bundle(row.bundle_id)
  const { phases } = bundle.team(row.team_key)
  const states = machine.store.phaseStates(row.id).map(({ due_at, ...phase }, position) => {
    const lost =
      phase.state === 'running' && isLeaf(phases[position]!) && !machine.host.executing(row.id, position, phase.attempt)
    return { ...phase, state: lost ? ('pending' as const) : phase.state, dueAt: due_at, open: 0, blocked: false }
  })
  const live = new LiveRun(row, bundle, parent, states, inputsOf(machine, row, bundle, parent))
  machine.lives.set(row.id, live)
  parent?.below(row.parent_position!).add(live)
  return live
}

/** Takes up the phases that stand above sub-runs; a kill may have come before what is stale there was removed. */
export function reopenAbove(machine: Machine, live: LiveRun): void {
  for (const phase of live.team.phases) {
    const { state } = live.phases[phase.index]!
    if ((phase.type !== 'map' && phase.type !== 'team') || (state !== 'running' && state !== 'awaiting_input')) continue
    machine.after(() => dropStale(machine, live, phase))
    if (phase.type === 'map') live.maps.set(phase.index, mapProgress(machine.store, live.id, phase))
  }
}

export function reopenReview(machine: Machine, live: LiveRun, position: number): void {
  const deadline = pendingReview(machine.store, live.id, position)?.deadline
  if (deadline) watchReview(machine, live, position, deadline)
}

/** Secret inputs are recorded masked: a root's come from its sealed file, a sub-run's follow from its parent again. */
function inputsOf(machine: Machine, row: RunRow, bundle: Bundle, parent: LiveRun | null): JsonObject {
  const recorded: JsonObject = JSON.parse(row.inputs)
  if (!bundle.team(row.team_key).inputs.some(input => input.secret)) return recorded
  if (!parent) return { ...recorded, ...machine.host.secretInputs(row.id) }
  const phase = parent.phase(row.parent_position!) as TeamPhase | MapPhase
  const item = phase.type === 'map' ? itemOf(machine.store, parent.id, phase.index, row.item!) : null
  return subRunInputs(machine, parent, phase, item ? { value: JSON.parse(item.value), index: item.item } : undefined)
}
