// What the engine does differently for each type of phase: one object of this interface a type, in a file of its own.
// kinds.ts has the table.

import type { Phase } from '../../../team/team.ts'
import type { LiveRun, RunRow } from '../../core/core.ts'
import type { Store } from '../../store/store.ts'
import type { RunEnd } from '../run/run-end.ts'
import type { Completed } from '../state/effects.ts'
import type { EngineState } from '../state/state.ts'

export interface PhaseKind<P extends Phase = Phase> {
  /** Does what an attempt consists of. The phase is `running`. */
  start(engine: EngineState, live: LiveRun, phase: P): void
  /** Its run was asked to end while the phase is in progress. `live.cancelRequest` says whether it may clean up. */
  stop(engine: EngineState, live: LiveRun, phase: P): void
  /** Null for a phase that never executes anything itself. */
  readonly attempts: AttemptKind<P> | null
  /** Null for a phase that starts no sub-runs. */
  readonly subRuns: SubRunKind<P> | null
}

interface AttemptKind<P> {
  /** An attempt has done everything. Ends the phase with `result`, or asks a person. */
  completed(engine: EngineState, live: LiveRun, phase: P, result: Completed): void
  /** The entries that follow the last of `entries`: an attempt that stopped there has not come to them. */
  entriesAfter(phase: P, entries: readonly string[]): string[]
}

interface SubRunKind<P> {
  /** Continues a phase that was in progress when its tree was read from the rows. */
  continue(engine: EngineState, live: LiveRun, phase: P): void
  /** A sub-run ended or waits for a person, or a task is done: starts more sub-runs, or ends the phase. */
  proceed(engine: EngineState, live: LiveRun, phase: P): void
  /** A sub-run has ended. */
  ended(engine: EngineState, live: LiveRun, phase: P, child: LiveRun, end: SubRunEnd): void
  /** The files of a sub-run that had completed before were handed over; with a `fault` they could not be. */
  handed(engine: EngineState, live: LiveRun, phase: P, childId: string, fault: unknown): void
  /** The folder below `files/<phase>/` for the files of a sub-run; empty where the phase has no other sub-run. */
  folderOf(store: Store, live: LiveRun, phase: P, child: Pick<RunRow, 'item' | 'run_name'>): string
}

/** How a sub-run ended, and what became of its files: what it handed over, or why it could not. */
export interface SubRunEnd extends RunEnd {
  handed: string | null
  handFault: unknown
}
