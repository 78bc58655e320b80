// Team phases: one sub-run, whose end is the end of the phase. With `repeat` each turn has a sub-run of its own.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { JsonObject } from '../../../json.ts'
import { type Masked, maskedText, recordedText } from '../../../secrets/masked.ts'
import type { TeamPhase } from '../../../team/team.ts'
import { bounded, type LiveRun, parse, phaseEnded, type RunError, type RunRow } from '../../core/core.ts'
import { dropSmallFilesBelow } from '../../store/store.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { sendTask } from '../phase/tasks.ts'
import { completeTurn } from '../phase/turn-end.ts'
import { createRuns } from '../run/create.ts'
import { openWhole } from '../run/reopen.ts'
import type { RunEnd } from '../run/run-end.ts'
import { errorOf, failureOf } from '../state/fault.ts'
import type { EngineState } from '../state/state.ts'
import type { PhaseKind } from './phase-kind.ts'
import { type CompletedChild, lacksHandOver, newSubRun, reopenSubRun, stopPhaseWithSubRuns } from './sub-runs.ts'

export const team: PhaseKind<TeamPhase> = {
  start(engine, live, phase) {
    const { index } = phase
    try {
      const { attempt, turn } = live.phases[index]!
      let earlier = childOf(engine, live, phase)
      if (earlier && turn?.since === attempt) {
        // The phase is repeated as a whole, and this turn had a sub-run before that.
        openWhole(engine, earlier.id)
        earlier = childOf(engine, live, phase)
      }
      if (earlier?.state === 'completed') return takeResult(engine, live, phase, earlier)
      if (attempt > 1) clearFiles(engine, live, phase)
      // A new attempt continues the sub-run of the earlier attempt and keeps its completed phases.
      if (earlier) {
        engine.notes.changedRows(engine.store.runs.requeue(earlier.id), [])
        reopenSubRun(engine, live, phase, earlier.id, undefined)
      } else createRuns(engine, [newSubRun(engine, live, phase, null, undefined)])
    } catch (thrown) {
      failPhase(engine, live, index, failureOf(thrown))
    }
  },

  stop: stopPhaseWithSubRuns,
  attempts: null,

  subRuns: {
    continue(engine, live, phase) {
      if (live.below(phase.index).runs.size > 0) return
      // The sub-run may have completed without its files being handed over.
      const child = childOf(engine, live, phase)
      if (child?.state === 'completed') takeResult(engine, live, phase, child)
    },

    proceed() {},

    ended(engine, live, phase, child, end) {
      const position = phase.index
      if (phaseEnded(live.phases[position]!.state)) return
      if (end.state === 'completed') {
        if (end.handFault !== null) return failPhase(engine, live, position, errorOf(end.handFault))
        return endTeam(engine, live, phase, { ...child.row, handed: end.handed })
      }
      const ending = live.cancelRequest(position)
      if (ending) return endPhase(engine, live, position, 'cancelled', { reason: ending.reason })
      const late = parse<RunError>(engine.store.phases.error(live.id, position))
      if (late) return failPhase(engine, live, position, late)
      if (end.state === 'cancelled') return endPhase(engine, live, position, 'cancelled', { reason: 'sub_run' })
      failPhase(engine, live, position, subRunError(child, end))
    },

    handed(engine, live, phase, childId, fault) {
      if (live.phases[phase.index]!.state !== 'running') return
      if (fault !== null) return failPhase(engine, live, phase.index, errorOf(fault))
      endTeam(engine, live, phase, engine.store.runs.get(childId)!)
    },

    folderOf: () => '',
  },
}

/** Where the sub-run of a phase stands among those of its turns. */
const itemOf = ({ phases }: LiveRun, { index }: TeamPhase): number => (phases[index]!.turn?.number ?? 1) - 1

const childOf = ({ store }: EngineState, live: LiveRun, phase: TeamPhase): RunRow | null =>
  store.runs.child(live.id, phase.index, itemOf(live, phase))

/** Removes what the earlier attempt got from its sub-run, which must not be restored after a power cut either. */
function clearFiles({ notes, store }: EngineState, live: LiveRun, { index, name }: TeamPhase): void {
  notes.after({ kind: 'clear', runId: live.id, position: index })
  dropSmallFilesBelow(store.db, live.id, `files/${name}`)
}

function takeResult(engine: EngineState, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  if (lacksHandOver(live, child)) sendTask(engine, live, phase.index, 'files', child.id)
  else endTeam(engine, live, phase, child)
}

function endTeam(engine: EngineState, live: LiveRun, phase: TeamPhase, child: CompletedChild): void {
  try {
    const handed = parse<{ outputs: Masked<JsonObject>; files: FileRecord[] }>(child.handed)
    const outputs = handed?.outputs ?? parse<Masked<JsonObject>>(child.outputs) ?? {}
    const files = handed?.files ?? []
    const data = bounded(outputs, phase.name, files)
    completeTurn(engine, live, phase, {
      text: maskedText`${recordedText(child.team)} completed`,
      data,
      files,
    })
  } catch (thrown) {
    failPhase(engine, live, phase.index, failureOf(thrown))
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
