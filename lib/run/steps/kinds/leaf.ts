// Phases that execute something themselves: an attempt is launched after the commit, and aborted when its run is asked
// to end.

import type { Phase } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import { CLEANUP_MS } from '../phase/transition.ts'
import type { EngineState } from '../state/state.ts'

export function launch({ notes }: EngineState, live: LiveRun, { index }: Phase): void {
  notes.after({ kind: 'launch', runId: live.id, position: index, attempt: live.phases[index]!.attempt })
}

export function stopAttempt({ notes }: EngineState, live: LiveRun, { index, timeout }: Phase): void {
  const attempt = { runId: live.id, position: index, attempt: live.phases[index]!.attempt }
  if (live.cancelRequest(index)) notes.after({ kind: 'abort', ...attempt })
  else if (timeout === undefined) notes.after({ kind: 'limit', ...attempt, ms: CLEANUP_MS })
}
