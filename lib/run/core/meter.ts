// What the engine tells whoever counts what it does. Runs and phases are told after the commit of their end, and again
// when they end again after a resume; nothing is told of what an earlier process has done.

import type { Effect } from '../../agent/core/effect.ts'
import type { RunRow } from './rows.ts'
import type { PhaseState } from './states.ts'

/** Whether an entry was written: `doubtful` if nobody knows. */
export type WriteResult = 'written' | 'failed' | 'doubtful'

export type CountedRun = Pick<RunRow, 'team' | 'state' | 'reason' | 'started_at' | 'completed_at'>

export interface Meter {
  /** A top run has ended. */
  runEnded(run: CountedRun): void
  /** A phase that calls an agent has ended. */
  phaseEnded(agent: string, end: { state: PhaseState; reason: string | null }): void
  /** An entry that changes something outside was sent, or another system was asked whether it was. */
  writeEnded(agent: string, effect: Effect, result: WriteResult): void
}
