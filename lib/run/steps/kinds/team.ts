// Team phases: one sub-run, whose end is the end of the phase.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { JsonObject } from '../../../json.ts'
import type { TeamPhase } from '../../../team/team.ts'
import { bounded, type LiveRun, parse, phaseEnded, type RunError } from '../../core/core.ts'
import { errorOf, failureOf } from '../state/fault.ts'
import type { RunEnd } from '../state/run-end.ts'
import type { Work } from '../state/state.ts'
import { startTask } from '../state/task.ts'
import { endPhase, failPhase } from './settle.ts'
import { type CompletedChild, createSubRun, lacksHandOver, reopenSubRun } from './sub-run.ts'

export function startTeam(work: Work, live: LiveRun, phase: TeamPhase): void {
  try {
    // A new attempt continues the sub-run of the earlier attempt and keeps its completed phases.
    work.notes.changedRows(work.store.runs.requeueChildren(live.id, phase.index, 1), [])
    const earlier = work.store.runs.child(live.id, phase.index, 0)
    if (earlier?.state === 'completed') return completed(work, live, phase, earlier)
    if (live.phases[phase.index]!.attempt > 1)
      work.notes.after({ kind: 'clear', runId: live.id, position: phase.index })
    if (earlier) reopenSubRun(work, live, phase, earlier.id, undefined)
    else createSubRun(work, live, phase, null, undefined)
  } catch (thrown) {
    failPhase(work, live, phase.index, failureOf(thrown))
  }
}

/** Continues a team phase after a restart: its sub-run may have completed without its files being handed over. */
export function takeUpTeam(work: Work, live: LiveRun, phase: TeamPhase): void {
  if (live.below(phase.index).runs.size > 0) return
  const child = work.store.runs.child(live.id, phase.index, 0)
  if (child?.state === 'completed') completed(work, live, phase, child)
}

export function teamChildEnded(
  work: Work,
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
    if (fault !== null) return failPhase(work, live, position, errorOf(fault))
    return endTeam(work, live, phase, { ...child.row, handed })
  }
  const ending = live.callsOff(position)
  if (ending) return endPhase(work, live, position, 'cancelled', { reason: ending.reason })
  const late = parse<RunError>(work.store.phases.error(live.id, position))
  if (late) return failPhase(work, live, position, late)
  if (end.state === 'cancelled') return endPhase(work, live, position, 'cancelled', { reason: 'sub_run' })
  failPhase(work, live, position, subRunError(child, end))
}

/** Called when the files of an already completed sub-run were handed over, or could not be (`fault`). */
export function teamHanded(work: Work, live: LiveRun, phase: TeamPhase, fault: unknown): void {
  if (live.phases[phase.index]!.state !== 'running') return
  if (fault !== null) return failPhase(work, live, phase.index, errorOf(fault))
  endTeam(work, live, phase, work.store.runs.child(live.id, phase.index, 0)!)
}

function completed(work: Work, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  if (lacksHandOver(live, child)) startTask(work, live, phase.index, 'hand', child.id)
  else endTeam(work, live, phase, child)
}

function endTeam(work: Work, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  try {
    const handed = parse<{ outputs: JsonObject; files: FileRecord[] }>(child.handed)
    const outputs = handed?.outputs ?? parse<JsonObject>(child.outputs) ?? {}
    const files = handed?.files ?? []
    const data = bounded(outputs, phase.name, files)
    endPhase(work, live, phase.index, 'completed', { text: `${child.team} completed`, data, files })
  } catch (thrown) {
    failPhase(work, live, phase.index, failureOf(thrown))
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
