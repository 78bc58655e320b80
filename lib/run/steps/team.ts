// Team phases: one sub-run, whose end is the end of the phase.

import type { FileRecord } from '../../agent/define.ts'
import type { JsonObject } from '../../json.ts'
import type { TeamPhase } from '../../team/team.ts'
import { bounded, type LiveRun, parse, phaseEnded, type RunError } from '../core/core.ts'
import type { RunEnd } from './end.ts'
import { errorOf } from './fault.ts'
import type { Machine } from './machine.ts'
import { type CompletedChild, createSubRun, errandDone, lacksHandOver, reopenSubRun, sendErrand } from './sub-run.ts'

export function startTeam(machine: Machine, live: LiveRun, phase: TeamPhase): void {
  try {
    // A new attempt continues the sub-run of the earlier attempt and keeps what that completed.
    machine.noteRows(machine.store.runs.requeueChildren(live.id, phase.index, 1), [])
    const earlier = machine.store.runs.child(live.id, phase.index, 0)
    if (earlier?.state === 'completed') return completed(machine, live, phase, earlier)
    if (live.phases[phase.index]!.attempt > 1) machine.after({ kind: 'clear', runId: live.id, position: phase.index })
    if (earlier) reopenSubRun(machine, live, phase, earlier.id, undefined)
    else createSubRun(machine, live, phase, null, undefined)
  } catch (thrown) {
    machine.failPhase(live, phase.index, errorOf(thrown))
  }
}

/** Continues a team phase after a restart: its sub-run may have completed without its files being handed over. */
export function takeUpTeam(machine: Machine, live: LiveRun, phase: TeamPhase): void {
  if (live.below(phase.index).runs.size > 0) return
  const child = machine.store.runs.child(live.id, phase.index, 0)
  if (child?.state === 'completed') completed(machine, live, phase, child)
}

export function teamChildEnded(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase,
  child: LiveRun,
  end: RunEnd,
  handed: string | null,
  fault: unknown,
): void {
  const position = phase.index
  if (phaseEnded(live.phases[position]!.state)) return
  if (end.state === 'completed') {
    if (fault !== null) return machine.failPhase(live, position, errorOf(fault))
    return endTeam(machine, live, phase, { ...child.row, handed })
  }
  if (live.ending && (live.ending.hard || !phase.always)) {
    return machine.endPhase(live, position, 'cancelled', { reason: live.ending.reason })
  }
  const late = parse<RunError>(machine.store.phases.error(live.id, position))
  if (late) return machine.failPhase(live, position, late)
  if (end.state === 'cancelled') return machine.endPhase(live, position, 'cancelled', { reason: 'sub_run' })
  machine.failPhase(live, position, subRunError(child, end))
}

/** The files of an already completed sub-run were handed over, or (`fault`) could not be. */
export function teamHanded(machine: Machine, live: LiveRun, phase: TeamPhase, fault: unknown): void {
  errandDone(live, phase.index)
  if (live.phases[phase.index]!.state !== 'running') return
  if (fault !== null) return machine.failPhase(live, phase.index, errorOf(fault))
  endTeam(machine, live, phase, machine.store.runs.child(live.id, phase.index, 0)!)
}

function completed(machine: Machine, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  if (lacksHandOver(live, child)) sendErrand(machine, live, phase.index, 'hand', child.id)
  else endTeam(machine, live, phase, child)
}

function endTeam(machine: Machine, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  try {
    const handed = parse<{ outputs: JsonObject; files: FileRecord[] }>(child.handed)
    const outputs = handed?.outputs ?? parse<JsonObject>(child.outputs) ?? {}
    const files = handed?.files ?? []
    const data = bounded(outputs, phase.name, files)
    machine.endPhase(live, phase.index, 'completed', { text: `${child.team} completed`, data, files })
  } catch (thrown) {
    machine.failPhase(live, phase.index, errorOf(thrown))
  }
}

/** The error of the phase. It names the deepest sub-run that failed by itself, through any number of levels. */
function subRunError(child: LiveRun, end: RunEnd): RunError {
  const inner = end.error
  const own = `${child.row.team} ${end.reason === 'timeout' ? 'timed out' : 'failed'}${inner ? `: ${inner.message}` : ''}`
  return {
    code: 'sub_run_failed',
    message: inner?.code === 'sub_run_failed' ? inner.message : own,
    run_id: inner?.run_id ?? child.id,
    ...(inner?.phase && { phase: inner.phase }),
  }
}
